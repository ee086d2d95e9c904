"""Hints that are called once per template return the same for every pod of the template."""

from __future__ import annotations

import pytest

from kubesched.config.feature_gates import FeatureGates
from kubesched.framework.cluster_event import ASSIGNED_POD, NODE, Action, ClusterEvent
from kubesched.plugins.registry import in_tree_setup
from kubesched.simulator.cluster import ClusterState
from kubesched.snapshot.pod_info import PodInfo
from kubesched.testing.builders import make_node, make_pod


@pytest.mark.parametrize(
    ("event", "old", "new"),
    [
        pytest.param(
            ClusterEvent(NODE, Action.ADD),
            None,
            make_node("n", allocatable={"cpu": "4"}),
            id="node",
        ),
        pytest.param(
            ClusterEvent(NODE, Action.UPDATE_NODE_LABEL),
            make_node("n"),
            make_node("n", labels={"zone": "a"}),
            id="label",
        ),
        pytest.param(
            ClusterEvent(ASSIGNED_POD, Action.ADD), None, make_pod("x", node_name="n"), id="pod"
        ),
        pytest.param(
            ClusterEvent(ASSIGNED_POD, Action.DELETE),
            make_pod("x", node_name="n"),
            None,
            id="no pod",
        ),
    ],
)
def test_in_tree_hints_per_template_do_not_look_further(
    event: ClusterEvent, old: object, new: object
) -> None:
    """Name, uid, annotations and status of the waiting pod change no answer."""
    gates = FeatureGates()
    cluster = ClusterState(in_tree_setup(gates))
    profile = cluster.profiles["default-scheduler"]
    profile.objects = cluster.cache.objects
    one = make_pod("a", requests={"cpu": "1"})
    other = make_pod(
        "b",
        requests={"cpu": "1"},
        metadata={"annotations": {"a": "b"}},
        status={"nominatedNodeName": "n"},
    )
    assert PodInfo(one).template is PodInfo(other).template
    hints = [
        each.hint
        for plugin in profile.plugins.values()
        for each in plugin.events_to_register() or ()
        if each.per_template and each.event.matches(event) and each.hint is not None
    ]
    assert hints
    assert [hint(one, old, new) for hint in hints] == [hint(other, old, new) for hint in hints]
