"""Which registration covers which event, and the labels of events."""

from __future__ import annotations

import pytest

from kubesched.framework.cluster_event import (
    ASSIGNED_POD,
    NODE,
    POD,
    UNSCHEDULABLE_POD,
    WILDCARD,
    Action,
    ClusterEvent,
)


def test_bits() -> None:
    """The bits are in upstream's order; Update has all bits except Add and Delete."""
    single = [action for action in Action if action.bit_count() == 1]
    assert [1 << at for at in range(13)] == [int(action) for action in single]
    assert Action.ALL == Action.ADD | Action.DELETE | Action.UPDATE
    assert not Action.UPDATE & (Action.ADD | Action.DELETE)


@pytest.mark.parametrize(
    ("registered", "incoming", "matches"),
    [
        pytest.param(
            ClusterEvent(NODE, Action.ADD), ClusterEvent(NODE, Action.ADD), True, id="same"
        ),
        pytest.param(
            ClusterEvent(NODE, Action.ADD),
            ClusterEvent(NODE, Action.DELETE),
            False,
            id="another action",
        ),
        pytest.param(
            ClusterEvent(NODE, Action.ADD),
            ClusterEvent(POD, Action.ADD),
            False,
            id="another resource",
        ),
        pytest.param(
            ClusterEvent(WILDCARD, Action.ALL),
            ClusterEvent(NODE, Action.DELETE),
            True,
            id="wildcard",
        ),
        pytest.param(
            ClusterEvent(WILDCARD, Action.ADD),
            ClusterEvent(NODE, Action.DELETE),
            False,
            id="any resource, one action",
        ),
        pytest.param(
            ClusterEvent(WILDCARD, Action.ADD),
            ClusterEvent(NODE, Action.ADD),
            True,
            id="any resource, that action",
        ),
        pytest.param(
            ClusterEvent(POD, Action.DELETE),
            ClusterEvent(ASSIGNED_POD, Action.DELETE),
            True,
            id="pod covers assigned pod",
        ),
        pytest.param(
            ClusterEvent(POD, Action.UPDATE_POD_LABEL),
            ClusterEvent(UNSCHEDULABLE_POD, Action.UPDATE_POD_LABEL),
            True,
            id="pod covers unschedulable pod",
        ),
        pytest.param(
            ClusterEvent(ASSIGNED_POD, Action.DELETE),
            ClusterEvent(POD, Action.DELETE),
            False,
            id="assigned pod does not cover pod",
        ),
        pytest.param(
            ClusterEvent(NODE, Action.ADD | Action.UPDATE_NODE_TAINT),
            ClusterEvent(NODE, Action.UPDATE_NODE_TAINT),
            True,
            id="one of several",
        ),
        pytest.param(
            ClusterEvent(NODE, Action.UPDATE),
            ClusterEvent(NODE, Action.UPDATE_NODE_LABEL),
            True,
            id="update covers a part",
        ),
        pytest.param(
            ClusterEvent(NODE, Action.UPDATE_NODE_LABEL),
            ClusterEvent(NODE, Action.UPDATE),
            False,
            id="a part does not cover an unspecific update",
        ),
        pytest.param(
            ClusterEvent(NODE, Action.UPDATE_NODE_TAINT),
            ClusterEvent(NODE, Action.UPDATE_NODE_TAINT | Action.UPDATE_NODE_ALLOCATABLE),
            False,
            id="more bits make a larger number",
        ),
        pytest.param(
            ClusterEvent(NODE, Action.UPDATE_NODE_TAINT | Action.ADD),
            ClusterEvent(NODE, Action.UPDATE_NODE_TAINT | Action.DELETE),
            False,
            id="larger by another bit",
        ),
        pytest.param(
            ClusterEvent(NODE, Action.UPDATE_NODE_TAINT | Action.DELETE),
            ClusterEvent(NODE, Action.UPDATE_NODE_TAINT | Action.ADD),
            True,
            id="smaller by another bit",
        ),
    ],
)
def test_matches(registered: ClusterEvent, incoming: ClusterEvent, *, matches: bool) -> None:
    """A registration covers events as upstream compares them."""
    assert matches == registered.matches(incoming)


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


@pytest.mark.parametrize(
    ("event", "is_wildcard"),
    [
        (ClusterEvent(WILDCARD, Action.ALL), True),
        (ClusterEvent(WILDCARD, Action.ADD), False),
        (ClusterEvent(NODE, Action.ALL), False),
    ],
    ids=str,
)
def test_is_wildcard(event: ClusterEvent, *, is_wildcard: bool) -> None:
    """Only all actions on all resources are the wildcard."""
    assert is_wildcard == event.is_wildcard
