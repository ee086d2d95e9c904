"""Which registration covers which event, labels of events, and the events of an update."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from kubesched.framework.cluster_event import (
    ASSIGNED_POD,
    NODE,
    POD,
    UNSCHEDULABLE_POD,
    WILDCARD,
    Action,
    ClusterEvent,
    node_events,
    pod_events,
)
from kubesched.testing.builders import PodFields, make_node, make_pod_info


def test_bits() -> None:
    """The bits are in upstream's order; Update has all bits except Add and Delete."""
    single = [action for action in Action if action.bit_count() == 1]
    assert [1 << at for at in range(13)] == [int(action) for action in single]
    assert Action.ALL == Action.ADD | Action.DELETE | Action.UPDATE
    assert not Action.UPDATE & (Action.ADD | Action.DELETE)


TAINT, LABEL = Action.UPDATE_NODE_TAINT, Action.UPDATE_POD_LABEL
TAINT_OR_ALLOCATABLE = TAINT | Action.UPDATE_NODE_ALLOCATABLE
TAINT_OR_ADD = TAINT | Action.ADD
TAINT_OR_DELETE = TAINT | Action.DELETE


@pytest.mark.parametrize(
    ("registered", "incoming", "matches"),
    [
        pytest.param((NODE, Action.ADD), (NODE, Action.ADD), True, id="same"),
        pytest.param((NODE, Action.ADD), (NODE, Action.DELETE), False, id="another action"),
        pytest.param((NODE, Action.ADD), (POD, Action.ADD), False, id="another resource"),
        pytest.param((WILDCARD, Action.ALL), (NODE, Action.DELETE), True, id="wildcard"),
        pytest.param((WILDCARD, Action.ADD), (NODE, Action.DELETE), False, id="one action"),
        pytest.param((WILDCARD, Action.ADD), (NODE, Action.ADD), True, id="that action"),
        pytest.param((POD, Action.DELETE), (ASSIGNED_POD, Action.DELETE), True, id="assigned pod"),
        pytest.param((POD, LABEL), (UNSCHEDULABLE_POD, LABEL), True, id="unschedulable pod"),
        pytest.param((ASSIGNED_POD, Action.DELETE), (POD, Action.DELETE), False, id="any pod"),
        pytest.param((NODE, TAINT_OR_ADD), (NODE, TAINT), True, id="one of several"),
        pytest.param((NODE, Action.UPDATE), (NODE, TAINT), True, id="update covers a part"),
        pytest.param(
            (NODE, TAINT), (NODE, Action.UPDATE), False, id="a part does not cover all updates"
        ),
        pytest.param(
            (NODE, TAINT), (NODE, TAINT_OR_ALLOCATABLE), False, id="more bits make a larger number"
        ),
        pytest.param(
            (NODE, TAINT_OR_ADD), (NODE, TAINT_OR_DELETE), False, id="larger by another bit"
        ),
        pytest.param(
            (NODE, TAINT_OR_DELETE), (NODE, TAINT_OR_ADD), True, id="smaller by another bit"
        ),
    ],
)
def test_matches(
    registered: tuple[str, Action], incoming: tuple[str, Action], *, matches: bool
) -> None:
    """A registration covers events as upstream compares them."""
    assert matches == ClusterEvent(*registered).matches(ClusterEvent(*incoming))


@pytest.mark.parametrize(
    ("event", "label"),
    [
        (ClusterEvent(NODE, Action.ADD), "NodeAdd"),
        (ClusterEvent(ASSIGNED_POD, Action.DELETE), "AssignedPodDelete"),
        (ClusterEvent(POD, Action.UPDATE), "PodUpdate"),
        (ClusterEvent(POD, Action.UPDATE_POD_SCALE_DOWN), "PodUpdatePodScaleDown"),
        (ClusterEvent(WILDCARD, Action.ALL, "UnschedulableTimeout"), "UnschedulableTimeout"),
        (ClusterEvent(WILDCARD, Action.ALL), "*All"),
        (ClusterEvent(NODE, Action.ADD | Action.DELETE), "Node"),
    ],
    ids=str,
)
def test_label(event: ClusterEvent, label: str) -> None:
    """A label has resource and action; a combination of actions has no name."""
    assert label == event.label


def test_is_wildcard() -> None:
    """Only all actions on all resources are the wildcard."""
    assert ClusterEvent(WILDCARD, Action.ALL).is_wildcard
    assert not ClusterEvent(WILDCARD, Action.ADD).is_wildcard
    assert not ClusterEvent(NODE, Action.ALL).is_wildcard


# Updates of nodes.


NODE_TAINT = {"key": "k", "value": "v", "effect": "NoSchedule"}
READY = {"type": "Ready", "status": "True", "reason": "fine", "lastHeartbeatTime": "t1"}
PRESSED = {"type": "MemoryPressure", "status": "True"}


def having(*conditions: dict[str, str]) -> dict[str, Any]:
    """Return the fields of a node with these conditions."""
    return {"status": {"conditions": conditions}}


def labels_of_node_events(
    old: dict[str, Any], new: dict[str, Any], *, declared_features: bool = True
) -> str:
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
        pytest.param({}, {"taints": [NODE_TAINT]}, "Taint", id="tainted"),
        pytest.param({"taints": [NODE_TAINT]}, {}, "Taint", id="taint-gone"),
        pytest.param(
            {"taints": [NODE_TAINT]},
            {"taints": [{**NODE_TAINT, "value": "w"}]},
            "Taint",
            id="taint-changed",
        ),
        pytest.param({}, {"allocatable": {"cpu": 5}}, "Allocatable", id="more-cpu"),
        pytest.param({}, {"allocatable": {"gpu": 1}}, "Allocatable", id="new-resource"),
        pytest.param({"allocatable": {"gpu": 1}}, {}, "Allocatable", id="resource-gone"),
        pytest.param({}, {"allocatable": {"cpu": "4000m"}}, "", id="same-amount"),
        pytest.param({}, {"labels": {"a": "b"}}, "Label", id="label"),
        pytest.param({}, having(READY), "Condition", id="condition"),
        pytest.param(
            having(READY),
            having({**READY, "reason": "x", "lastHeartbeatTime": "t2"}),
            "",
            id="heartbeat",
        ),
        pytest.param(
            having(READY),
            having({**READY, "status": "False"}),
            "Condition",
            id="status-of-condition",
        ),
        pytest.param(having(READY, PRESSED), having(PRESSED, READY), "", id="order-of-conditions"),
        pytest.param({}, {"metadata": {"annotations": {"a": "b"}}}, "Annotation", id="annotation"),
        pytest.param({}, {"declared_features": ["F"]}, "DeclaredFeature", id="features"),
        pytest.param(
            {"unschedulable": True, "taints": [NODE_TAINT]},
            {
                "allocatable": {"cpu": 9},
                "labels": {"a": "b"},
                "metadata": {"annotations": {"a": "b"}},
                "declared_features": ["F"],
                **having(READY),
            },
            "Taint Allocatable Label Taint Condition Annotation DeclaredFeature",
            id="all-in-order",
        ),
    ],
)
def test_node_events(old: dict[str, Any], new: dict[str, Any], expected: str) -> None:
    """One event per changed property, in upstream's order; none if nothing relevant changed."""
    assert expected == labels_of_node_events(old, new)


def test_declared_features_have_a_gate() -> None:
    """With the gate off, declared features are ignored."""
    assert "" == labels_of_node_events({}, {"declared_features": ["F"]}, declared_features=False)


# Updates of pods.


TOLERATION = {"key": "k", "operator": "Exists"}
RESIZED = {
    "containerStatuses": [
        {
            "name": "container",
            "resources": {"requests": {"cpu": "500m"}},
            "allocatedResources": {"cpu": "500m"},
        }
    ]
}
BIG = {
    "containerStatuses": [{"name": "container", "resources": {"requests": {"cpu": "4"}}}],
}
CLAIM = {"resourceClaimStatuses": [{"name": "gpu", "resourceClaimName": "gpu-1"}]}
CLAIM_2 = {"resourceClaimStatuses": [{"name": "gpu", "resourceClaimName": "gpu-2"}]}
GENERATED = "UpdatePodGeneratedResourceClaim"
EXTENDED = {"extendedResourceClaimStatus": {"resourceClaimName": "x", "requestMappings": []}}


def asking(cpu: str | int, status: Mapping[str, object] | None = None) -> PodFields:
    """Return the fields of a pod that requests so much cpu."""
    return {"requests": {"cpu": cpu}, "status": status or {}}


def labels_of_pod_events(old: PodFields, new: PodFields) -> str:
    """Return the labels of an update's events without their resource."""
    found = pod_events(make_pod_info("p", **old), make_pod_info("p", **new))
    return " ".join(event.label.removeprefix("UnschedulablePod") for event in found)


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        pytest.param({}, {}, "Update", id="nothing"),
        pytest.param({}, {"priority": 5}, "Update", id="something-else"),
        pytest.param({}, {"status": {"phase": "Pending"}}, "Update", id="status"),
        pytest.param({}, {"labels": {"a": "b"}}, "UpdatePodLabel", id="label-added"),
        pytest.param({"labels": {"a": "b"}}, {}, "UpdatePodLabel", id="label-removed"),
        pytest.param(
            {"labels": {"a": "b"}}, {"labels": {"a": "c"}}, "UpdatePodLabel", id="label-changed"
        ),
        pytest.param(asking(2), asking(1), "UpdatePodScaleDown", id="less-cpu"),
        pytest.param(asking(1), asking(2), "Update", id="more-cpu"),
        pytest.param(asking(1), {}, "UpdatePodScaleDown", id="request-removed"),
        pytest.param({}, asking(1), "Update", id="request-added"),
        pytest.param(asking(0), {}, "UpdatePodScaleDown", id="zero-removed"),
        pytest.param(asking("1"), asking("1000m"), "Update", id="same-amount"),
        pytest.param(asking("1500u"), asking("1200u"), "Update", id="less-than-a-thousandth"),
        pytest.param(
            {"requests": {"cpu": 2, "memory": "1Gi"}},
            {"requests": {"cpu": 3, "memory": "1Mi"}},
            "UpdatePodScaleDown",
            id="any-resource",
        ),
        pytest.param(asking(2, BIG), asking(1, BIG), "Update", id="resize-not-in-force"),
        pytest.param(
            asking(1, BIG), asking(1, RESIZED), "UpdatePodScaleDown", id="resize-in-force"
        ),
        pytest.param(
            {"scheduling_gates": ["a"]},
            {},
            "UpdatePodSchedulingGatesEliminated",
            id="last-gate-gone",
        ),
        pytest.param(
            {"scheduling_gates": ["a", "b"]}, {"scheduling_gates": ["a"]}, "Update", id="one-left"
        ),
        pytest.param({}, {"scheduling_gates": ["a"]}, "Update", id="gate-added"),
        pytest.param(
            {}, {"tolerations": [TOLERATION]}, "UpdatePodToleration", id="toleration-added"
        ),
        pytest.param(
            {"tolerations": [TOLERATION]},
            {"tolerations": [{"key": "other", "operator": "Exists"}]},
            "Update",
            id="as-many-tolerations",
        ),
        pytest.param({}, {"status": CLAIM}, GENERATED, id="claim-generated"),
        pytest.param({"status": CLAIM}, {"status": CLAIM_2}, GENERATED, id="claim-changed"),
        pytest.param({"status": CLAIM}, {"status": CLAIM}, "Update", id="same-claim"),
        pytest.param({}, {"status": EXTENDED}, GENERATED, id="extended-claim"),
        pytest.param(
            {
                "labels": {"a": "b"},
                "requests": {"cpu": 1},
                "scheduling_gates": ["a"],
                "tolerations": [TOLERATION],
                "status": CLAIM,
            },
            {},
            "UpdatePodLabel UpdatePodScaleDown UpdatePodSchedulingGatesEliminated"
            " UpdatePodToleration UpdatePodGeneratedResourceClaim",
            id="all-in-order",
        ),
    ],
)
def test_one_event_per_changed_property(old: PodFields, new: PodFields, expected: str) -> None:
    """In upstream's order; Update if there is none."""
    assert expected == labels_of_pod_events(old, new)


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        pytest.param("", "", "UnschedulablePodUpdate", id="waits"),
        pytest.param("n", "n", "AssignedPodUpdate", id="assigned"),
        pytest.param("", "n", "AssignedPodUpdate", id="being-bound"),
    ],
)
def test_the_events_resource_depends_on_the_node(old: str, new: str, expected: str) -> None:
    """The new version's node counts."""
    found = pod_events(make_pod_info("p", node_name=old), make_pod_info("p", node_name=new))
    assert [expected] == [event.label for event in found]
