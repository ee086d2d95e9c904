"""Names of events."""

from __future__ import annotations

import pytest

from kubesched.explain.explain import ANY_EVENT, event_names
from kubesched.framework.cluster_event import Action, ClusterEvent, ClusterEventWithHint


@pytest.mark.parametrize(
    ("resource", "action", "names"),
    [
        pytest.param("Node", Action.ADD, ("Node added",), id="one"),
        pytest.param(
            "Node",
            Action.ADD | Action.UPDATE_NODE_TAINT,
            ("Node added", "Node taints updated"),
            id="two",
        ),
        pytest.param(
            "storage.k8s.io/CSINode",
            Action.ADD | Action.UPDATE,
            ("CSINode added", "CSINode updated"),
            id="any-update",
        ),
        pytest.param("Pod", Action.ALL, ("Pod added", "Pod deleted", "Pod updated"), id="all"),
        pytest.param("*", Action.ALL, ANY_EVENT, id="wildcard"),
    ],
)
def test_event_names(resource: str, action: Action, names: tuple[str, ...]) -> None:
    """Each action of a registration has its name; the group of the resource is left out."""
    registered = [ClusterEventWithHint(ClusterEvent(resource, action))]
    assert names == event_names(registered)


def test_every_action_has_a_name() -> None:
    """Every action has a name."""
    for action in Action:
        assert event_names([ClusterEventWithHint(ClusterEvent("Thing", action))])


def test_no_registration() -> None:
    """None means any event, an empty list none; names are not repeated."""
    twice = [ClusterEventWithHint(ClusterEvent("Pod", Action.DELETE))] * 2
    assert event_names(None) == ANY_EVENT
    assert event_names([]) == ()
    assert event_names(twice) == ("Pod deleted",)
