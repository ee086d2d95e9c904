"""NodeUnschedulable: keep pods off cordoned nodes, unless they tolerate the cordon's taint.

Upstream: pkg/scheduler/framework/plugins/nodeunschedulable (v1.36)
Reads:    pod.spec.tolerations; nodes.unschedulable
Rejects:  UnschedulableAndUnresolvable, because evicting a pod does not uncordon a node.
Differs:  nothing.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import ClassVar, Final

from kubesched.api.core import Node, Pod, Taint, Toleration
from kubesched.api.tolerations import tolerates
from kubesched.framework.cluster_event import NODE, POD, Action, ClusterEventWithHint, retry_on
from kubesched.framework.handle import Handle
from kubesched.framework.plugin import FilterPlugin, Scope
from kubesched.framework.status import NodeToStatus, unresolvable
from kubesched.snapshot.node_table import NodeTable
from kubesched.snapshot.pod_info import PodInfo

_CORDON: Final = Taint(key="node.kubernetes.io/unschedulable", effect="NoSchedule")


class NodeUnschedulable(FilterPlugin[None]):
    """Filter on `spec.unschedulable`."""

    name: ClassVar = "NodeUnschedulable"
    scope: ClassVar = Scope.NODE
    signs_base: ClassVar = True
    rejection: ClassVar = unresolvable("node(s) were unschedulable")

    def __init__(self, args: object, handle: Handle) -> None:
        super().__init__(args, handle)
        self._comparison = handle.feature_gates.enabled("TaintTolerationComparisonOperators")

    def filter(self, state: None, pod: PodInfo, nodes: NodeTable) -> NodeToStatus:
        """Reject cordoned rows if the pod does not tolerate the taint."""
        if self._tolerates_cordon(pod.spec.tolerations):
            return NodeToStatus.passing(len(nodes))
        return NodeToStatus.rejecting(nodes.unschedulable, self.rejection)

    def describe(self, state: None, pod: PodInfo, nodes: NodeTable) -> str:
        """Return what kubectl calls such a node."""
        return "cordoned"

    def events_to_register(self) -> Sequence[ClusterEventWithHint]:
        """Return node additions and uncordonings, and new tolerations of the pod."""
        nodes = Action.ADD | Action.UPDATE_NODE_TAINT
        return (
            retry_on(NODE, nodes, _after_node_change, per_template=True),
            retry_on(POD, Action.UPDATE_POD_TOLERATION, self._after_pod_change),
        )

    def sign(self, pod: PodInfo) -> Hashable:
        """Return whether the pod tolerates the taint."""
        return self._tolerates_cordon(pod.spec.tolerations)

    def _tolerates_cordon(self, tolerations: tuple[Toleration, ...]) -> bool:
        return any(tolerates(toleration, _CORDON, self._comparison) for toleration in tolerations)

    def _after_pod_change(self, pod: Pod, old: object | None, new: object | None) -> bool:
        if not isinstance(new, Pod):
            return True
        same = new.metadata.uid == pod.metadata.uid
        return same and self._tolerates_cordon(new.spec.tolerations)


def _after_node_change(_pod: Pod, old: object | None, new: object | None) -> bool:
    if not isinstance(new, Node):
        return True
    was_schedulable = isinstance(old, Node) and not old.spec.unschedulable
    return not new.spec.unschedulable and not was_schedulable
