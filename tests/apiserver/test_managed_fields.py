from __future__ import annotations

from typing import Any

import pytest

from kubesched.apiserver import managed_fields
from kubesched.apiserver.plain import Plain, deep_copy

from .verdicts import operation_on, served

NOW = "2024-05-02T00:00:00Z"
LATER = "2024-05-02T00:00:09Z"


PODS = served("pods")


def _pod(**status: Any) -> Plain:
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "p", "namespace": "default", "labels": {"a": "1"}},
        "spec": {
            "containers": [{"name": "c", "image": "i", "resources": {}}],
            "securityContext": {},
            "restartPolicy": "Always",
        },
        "status": status or {"phase": "Pending"},
    }


def _track(old: Plain | None, new: Plain, manager: str, subresource: str = "") -> Plain:
    return managed_fields.track(operation_on(PODS, manager, subresource), old, new, NOW)


def _entries(value: Plain) -> list[Plain]:
    entries: list[Plain] = value["metadata"]["managedFields"]
    return entries


def test_created_objects_belong_to_who_creates_them() -> None:
    """All fields but those of the server and of the status have the creator as manager."""
    created = _track(None, _pod(), "kubectl-create")
    expected = {
        "manager": "kubectl-create",
        "operation": "Update",
        "apiVersion": "v1",
        "time": NOW,
        "fieldsType": "FieldsV1",
        "fieldsV1": {
            "f:metadata": {"f:labels": {".": {}, "f:a": {}}},
            "f:spec": {
                "f:containers": {
                    'k:{"name":"c"}': {".": {}, "f:image": {}, "f:name": {}, "f:resources": {}}
                },
                "f:restartPolicy": {},
                "f:securityContext": {},
            },
        },
    }
    assert [expected] == _entries(created)


def test_the_status_is_tracked_through_its_subresource() -> None:
    """Writers of the status are separate managers, which own nothing of the spec."""
    created = _track(None, _pod(), "maker")
    new = deep_copy(created)
    new["status"] = {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}
    new["spec"]["nodeName"] = "n1"
    written = _track(created, new, "kubelet", "status")
    maker, kubelet = _entries(written)[::-1]
    assert "maker" == maker["manager"]
    assert ("kubelet", "status") == (kubelet["manager"], kubelet["subresource"])
    condition: Plain = {".": {}, "f:status": {}, "f:type": {}}
    assert {
        "f:status": {"f:conditions": {".": {}, 'k:{"type":"Ready"}': condition}, "f:phase": {}}
    } == kubelet["fieldsV1"]


def test_changing_a_field_takes_its_ownership() -> None:
    """The former manager loses it; a removed field has no manager."""
    created = _track(None, _pod(), "one")
    new = deep_copy(created)
    new["metadata"]["labels"] = {"b": "2"}
    new["spec"]["restartPolicy"] = "Never"
    changed = _track(created, new, "two")
    one, two = _entries(changed)
    assert {"f:labels": {}} == one["fieldsV1"]["f:metadata"]
    assert "f:restartPolicy" not in one["fieldsV1"]["f:spec"]
    expected = {"f:metadata": {"f:labels": {"f:b": {}}}, "f:spec": {"f:restartPolicy": {}}}
    assert expected == two["fieldsV1"]


def test_nothing_changes_without_a_change() -> None:
    """Times stay as well, and so does the order."""
    created = _track(None, _pod(), "one")
    same = managed_fields.track(operation_on(PODS, "two"), created, deep_copy(created), LATER)
    assert created == same


def test_clients_may_rewrite_managed_fields() -> None:
    """Clients may change them; an empty list ends tracking, except in a subresource."""
    created = _track(None, _pod(), "one")
    renamed = deep_copy(created)
    renamed["metadata"]["managedFields"][0]["manager"] = "renamed"
    assert "renamed" == _entries(_track(created, renamed, "two"))[0]["manager"]
    resets: list[list[Plain]] = [[], [{}]]
    for sent in resets:
        reset = deep_copy(created)
        reset["metadata"]["managedFields"] = sent
        ended = _track(created, reset, "two")
        assert "managedFields" not in ended["metadata"]
        assert "managedFields" not in _track(ended, ended, "two")["metadata"]
        assert created == _track(created, reset, "two", "status")


@pytest.mark.parametrize(
    "entry",
    [
        pytest.param({"manager": "x"}, id="no operation"),
        pytest.param(
            {"manager": "x", "operation": "Update", "fieldsType": "FieldsV1"}, id="version"
        ),
        pytest.param(
            {"manager": "x", "operation": "Update", "apiVersion": "v1", "fieldsType": "FieldsV2"},
            id="type",
        ),
        pytest.param(
            {
                "manager": "x",
                "operation": "Update",
                "apiVersion": "v1",
                "fieldsType": "FieldsV1",
                "fieldsV1": {"x": {}},
            },
            id="fields",
        ),
    ],
)
def test_managed_fields_that_make_no_sense(entry: Plain) -> None:
    """Those of the stored object are kept instead."""
    created = _track(None, _pod(), "one")
    new = deep_copy(created)
    new["metadata"]["managedFields"] = [entry]
    assert _entries(created) == _entries(_track(created, new, "two"))


def test_times_alone_are_no_change() -> None:
    """An object that differs in times only is the old one; any other difference counts."""
    old = _track(None, _pod(), "one")
    new = deep_copy(old)
    new["metadata"]["managedFields"][0]["time"] = LATER
    assert old is managed_fields.keep_times(old, new)
    new["metadata"]["labels"]["a"] = "2"
    assert new is managed_fields.keep_times(old, new)


def test_kinds_without_a_status_are_tracked_whole() -> None:
    """A lease has nothing that is written elsewhere."""
    leases = served("leases", "coordination.k8s.io")
    lease = {"metadata": {"name": "l"}, "spec": {"holderIdentity": "a"}}
    created = managed_fields.track(operation_on(leases, ""), None, lease, NOW)
    assert "unknown" == _entries(created)[0]["manager"]
    assert {"f:spec": {"f:holderIdentity": {}}} == _entries(created)[0]["fieldsV1"]
