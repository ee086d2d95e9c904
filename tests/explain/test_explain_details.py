"""Details that plugins give, and what happens if they cannot."""

from __future__ import annotations

from typing import ClassVar

import pytest

from kubesched.config.feature_gates import FeatureGates
from kubesched.explain.explain import Details
from kubesched.framework.plugin import FilterPlugin
from kubesched.framework.status import NodeToStatus, Status, unschedulable
from kubesched.plugins.registry import in_tree_setup
from kubesched.scheduler.trace import Trace
from kubesched.simulator.cluster import ClusterState
from kubesched.snapshot.node_table import NodeTable
from kubesched.snapshot.pod_info import PodInfo
from kubesched.testing.builders import make_node, make_pod_info


class Mute(FilterPlugin[None]):
    """Rejects everything; its `describe` raises."""

    name: ClassVar = "Mute"

    def filter(self, state: None, pod: PodInfo, nodes: NodeTable) -> NodeToStatus:
        """Reject."""
        return NodeToStatus.everywhere(len(nodes), unschedulable("no"))

    def describe(self, state: None, pod: PodInfo, nodes: NodeTable) -> str:
        """Fail."""
        raise RuntimeError("cannot say")


@pytest.mark.parametrize(
    "plugin",
    [
        pytest.param("Mute", id="raises"),
        pytest.param("PrioritySort", id="no-filter"),
        pytest.param("Nobody", id="no-plugin"),
        pytest.param("", id="nobody"),
    ],
)
def test_no_detail(plugin: str) -> None:
    """Without a plugin that knows details there are none."""
    gates = FeatureGates()
    cluster = ClusterState(in_tree_setup(gates))
    cluster.load([make_node("a")])
    profile = cluster.profiles["default-scheduler"]
    profile.plugins["Mute"] = Mute(None, profile)
    details = Details(profile, cluster.snapshot(), Trace(), make_pod_info())
    assert details.of(0, Status(reasons=("no",), plugin=plugin)) == ""
