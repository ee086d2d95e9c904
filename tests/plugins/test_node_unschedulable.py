from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubesched.framework.cluster_event import NODE, POD
from kubesched.framework.status import Code
from kubesched.plugins.node_unschedulable import NodeUnschedulable
from kubesched.testing.builders import Json, make_node, make_pod, make_pod_info, make_table
from kubesched.testing.handle import FakeHandle
from tests.plugins.building import hint_of

KEY = "node.kubernetes.io/unschedulable"
TABLE = make_table([make_node("open"), make_node("cordoned", unschedulable=True)])
TOLERATING: Json = {"key": KEY, "operator": "Exists", "effect": "NoSchedule"}


def make_plugin(comparison: bool = False) -> NodeUnschedulable:
    """Build the plugin, with or without numeric operators."""
    return NodeUnschedulable(None, FakeHandle({"TaintTolerationComparisonOperators": comparison}))


@pytest.mark.parametrize(
    ("toleration", "fits"),
    [
        pytest.param({}, True, id="empty-key-equal-compares-empty-values"),
        pytest.param({"operator": "Exists"}, True, id="tolerates-everything"),
        pytest.param(TOLERATING, True, id="tolerates-the-cordon"),
        pytest.param({"key": KEY}, True, id="equal-empty-value"),
        pytest.param({"key": KEY, "value": "x"}, False, id="other-value"),
        pytest.param({"key": "x", "operator": "Exists"}, False, id="other-key"),
        pytest.param({"key": KEY, "operator": "Exists", "effect": "NoExecute"}, False, id="effect"),
        pytest.param({"key": KEY, "operator": "Gt", "value": "1"}, False, id="no-number"),
    ],
)
@pytest.mark.parametrize("comparison", [False, True])
def test_filter(toleration: Json, fits: bool, comparison: bool) -> None:
    """A cordoned node takes only pods that tolerate the cordon's taint; one-row tables agree."""
    plugin, pod = make_plugin(comparison), make_pod_info(tolerations=[toleration])
    answers = plugin.filter(None, pod, TABLE)
    assert [True, fits] == answers.passed.tolist()
    assert fits == plugin.sign(pod)
    for row in range(2):
        assert answers[row] == plugin.filter(None, pod, TABLE.take(np.array([row])))[0]


tolerations = st.fixed_dictionaries(
    {},
    optional={
        "key": st.sampled_from(["", KEY, "other"]),
        "operator": st.sampled_from(["", "Equal", "Exists", "Lt"]),
        "value": st.sampled_from(["", "1"]),
        "effect": st.sampled_from(["", "NoSchedule", "NoExecute"]),
    },
)


def tolerates_cordon(toleration: Json) -> bool:
    """The rule for the cordon's taint, which has a key, no value, and effect NoSchedule."""
    if toleration.get("effect", "") not in ("", "NoSchedule"):
        return False
    if toleration.get("key", "") not in ("", KEY):
        return False
    operator = toleration.get("operator", "")
    return operator == "Exists" or (operator in ("", "Equal") and toleration.get("value", "") == "")


@given(st.lists(tolerations, max_size=3))
def test_a_pod_fits_with_any_toleration_of_the_cordon(borne: list[Json]) -> None:
    """One of several tolerations is enough."""
    answers = make_plugin().filter(None, make_pod_info(tolerations=borne), TABLE)
    assert [True, any(map(tolerates_cordon, borne))] == answers.passed.tolist()


def test_rejection() -> None:
    """A cordon is unresolvable, with upstream's message."""
    pod = make_pod_info()
    status = make_plugin().filter(None, pod, TABLE)[1]
    assert Code.UNSCHEDULABLE_AND_UNRESOLVABLE == status.code
    assert ("node(s) were unschedulable",) == status.reasons
    assert "cordoned" == make_plugin().describe(None, pod, TABLE.take(np.array([1])))


OPEN, CORDONED = make_node(), make_node(unschedulable=True)


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        pytest.param(None, OPEN, True, id="open-node-came"),
        pytest.param(None, CORDONED, False, id="cordoned-node-came"),
        pytest.param(CORDONED, OPEN, True, id="uncordoned"),
        pytest.param(OPEN, CORDONED, False, id="cordoned"),
        pytest.param(OPEN, OPEN, False, id="stayed-open"),
        pytest.param(CORDONED, CORDONED, False, id="stayed-cordoned"),
        pytest.param(None, None, True, id="unknown-object"),
    ],
)
def test_hint_after_node_change(old: object, new: object, expected: bool) -> None:
    """A new node that is not cordoned, or an uncordoned one, causes a retry."""
    assert expected == hint_of(make_plugin(), NODE)(make_pod(), old, new)


@pytest.mark.parametrize(
    ("new", "expected"),
    [
        pytest.param(make_pod("a", tolerations=[TOLERATING]), True, id="tolerates-now"),
        pytest.param(make_pod("a", tolerations=[{"key": "x"}]), False, id="tolerates-other-things"),
        pytest.param(make_pod("b", tolerations=[TOLERATING]), False, id="other-pod"),
    ],
)
def test_hint_after_pod_change(new: object, expected: bool) -> None:
    """The pod is retried when it tolerates the cordon."""
    assert expected == hint_of(make_plugin(), POD)(make_pod("a"), make_pod("a"), new)


def test_events() -> None:
    """The events are those of upstream."""
    registered = [
        (one.event.resource, int(one.event.action)) for one in make_plugin().events_to_register()
    ]
    assert [("Node", 1 | 1 << 4), ("Pod", 1 << 10)] == registered
