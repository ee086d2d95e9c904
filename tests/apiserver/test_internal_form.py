"""Objects are shown in messages as upstream's programs hold them."""

from __future__ import annotations

from kubesched.apiserver.validation.internal_form import difference, internal_form, ordered


def test_nothing_is_left_out() -> None:
    """Fields have other names, and what is not there is shown as nothing."""
    taint = {"key": "k", "effect": "NoSchedule"}
    expected = {"Key": "k", "Value": "", "Effect": "NoSchedule", "TimeAdded": None}
    assert expected == internal_form("core/Taint", taint)
    assert list(expected) == list(internal_form("core/Taint", taint))


def test_fields_that_live_elsewhere() -> None:
    """What a pod says of its node's namespaces belongs to its security context."""
    spec = {"containers": [], "hostNetwork": True, "securityContext": {}}
    shown = internal_form("core/PodSpec", spec)
    assert True is shown["SecurityContext"]["HostNetwork"]


def test_differences() -> None:
    """Lines that differ are shown with three around them."""
    old = {"key": "k", "effect": "NoSchedule"}
    expected = (
        '@@ -1,6 +1,6 @@\n {\n  "Key": "k",\n- "Value": "",\n+ "Value": "v",\n'
        '  "Effect": "NoSchedule",\n  "TimeAdded": null\n }\n'
    )
    assert expected == difference("core/Taint", old, {**old, "value": "v"})
    assert "" == difference("core/Taint", old, old)


def test_order() -> None:
    """Selectors are shown with their fields in Go's order."""
    expression = {"values": ["b"], "operator": "In", "key": "a"}
    selector = {"matchExpressions": [expression], "matchLabels": {"c": "d"}}
    shown = ordered("LabelSelector", selector)
    assert ["matchLabels", "matchExpressions"] == list(shown)
    assert ["key", "operator", "values"] == list(shown["matchExpressions"][0])
