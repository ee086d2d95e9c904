from __future__ import annotations

import pytest

from kubesched.framework.cluster_event import node_events
from kubesched.testing.builders import NodeFields, make_node

TAINT = {"key": "k", "value": "v", "effect": "NoSchedule"}
READY = {"type": "Ready", "status": "True", "reason": "fine", "lastHeartbeatTime": "t1"}
PRESSED = {"type": "MemoryPressure", "status": "True"}


def events(old: NodeFields, new: NodeFields, *, declared_features: bool = True) -> str:
    """Return the labels of an update's events."""
    found = node_events(
        make_node("n", **old), make_node("n", **new), declared_features=declared_features
    )
    return " ".join(event.label.removeprefix("NodeUpdateNode") for event in found)


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        pytest.param({}, {}, "", id="nothing"),
        pytest.param({}, {"images": {"i": 5}}, "", id="nothing-that-matters"),
        pytest.param({"unschedulable": True}, {}, "Taint", id="schedulable-again"),
        pytest.param({}, {"unschedulable": True}, "", id="unschedulable-now"),
        pytest.param({}, {"taints": [TAINT]}, "Taint", id="tainted"),
        pytest.param({"taints": [TAINT]}, {}, "Taint", id="taint-gone"),
        pytest.param(
            {"taints": [TAINT]}, {"taints": [{**TAINT, "value": "w"}]}, "Taint", id="taint-changed"
        ),
        pytest.param({}, {"allocatable": {"cpu": 5}}, "Allocatable", id="more-cpu"),
        pytest.param({}, {"allocatable": {"gpu": 1}}, "Allocatable", id="new-resource"),
        pytest.param({"allocatable": {"gpu": 1}}, {}, "Allocatable", id="resource-gone"),
        pytest.param({}, {"allocatable": {"cpu": "4000m"}}, "", id="same-amount"),
        pytest.param({}, {"labels": {"a": "b"}}, "Label", id="label"),
        pytest.param({}, {"status": {"conditions": [READY]}}, "Condition", id="condition"),
        pytest.param(
            {"status": {"conditions": [READY]}},
            {"status": {"conditions": [{**READY, "reason": "x", "lastHeartbeatTime": "t2"}]}},
            "",
            id="heartbeat",
        ),
        pytest.param(
            {"status": {"conditions": [READY]}},
            {"status": {"conditions": [{**READY, "status": "False"}]}},
            "Condition",
            id="status-of-condition",
        ),
        pytest.param(
            {"status": {"conditions": [READY, PRESSED]}},
            {"status": {"conditions": [PRESSED, READY]}},
            "",
            id="order-of-conditions",
        ),
        pytest.param({}, {"metadata": {"annotations": {"a": "b"}}}, "Annotation", id="annotation"),
        pytest.param({}, {"declared_features": ["F"]}, "DeclaredFeature", id="features"),
        pytest.param(
            {"unschedulable": True, "taints": [TAINT]},
            {
                "allocatable": {"cpu": 9},
                "labels": {"a": "b"},
                "metadata": {"annotations": {"a": "b"}},
                "declared_features": ["F"],
                "status": {"conditions": [READY]},
            },
            "Taint Allocatable Label Taint Condition Annotation DeclaredFeature",
            id="all-in-order",
        ),
    ],
)
def test_node_events(old: NodeFields, new: NodeFields, expected: str) -> None:
    """One event per changed property, in upstream's order; none if nothing relevant changed."""
    assert expected == events(old, new)


def test_declared_features_have_a_gate() -> None:
    """With the gate off, declared features are ignored."""
    assert "" == events({}, {"declared_features": ["F"]}, declared_features=False)
