"""NodeName: a pod that names a node fits only there.

Upstream: pkg/scheduler/framework/plugins/nodename (v1.36)
Reads:    pod.spec.nodeName; nodes.names
Rejects:  UnschedulableAndUnresolvable, because no eviction renames a node.
Differs:  nothing.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import ClassVar

import numpy as np

from kubesched.framework.cluster_event import NODE, Action, ClusterEventWithHint, retry_on
from kubesched.framework.plugin import FilterPlugin, Scope
from kubesched.framework.status import NodeToStatus, unresolvable
from kubesched.snapshot.node_table import NodeTable
from kubesched.snapshot.pod_info import PodInfo


class NodeName(FilterPlugin[None]):
    """Filter on `spec.nodeName`."""

    name: ClassVar = "NodeName"
    scope: ClassVar = Scope.NODE
    signs_base: ClassVar = True
    rejection: ClassVar = unresolvable("node(s) didn't match the requested node name")

    def filter(self, state: None, pod: PodInfo, nodes: NodeTable) -> NodeToStatus:
        """Reject all rows except the one that the pod names, if it names one."""
        wanted = pod.spec.node_name
        if not wanted:
            return NodeToStatus.passing(len(nodes))
        rejected = np.ones(len(nodes), np.bool_)
        row = nodes.row_of.get(wanted)
        if row is not None:
            rejected[row] = False
        return NodeToStatus.rejecting(rejected, self.rejection)

    def describe(self, state: None, pod: PodInfo, nodes: NodeTable) -> str:
        """Return the node that the pod names."""
        return f"pod asks for node {pod.spec.node_name}"

    def events_to_register(self) -> Sequence[ClusterEventWithHint]:
        """Return node additions."""
        return (retry_on(NODE, Action.ADD),)

    def sign(self, pod: PodInfo) -> Hashable:
        """Return the node name."""
        return pod.spec.node_name
