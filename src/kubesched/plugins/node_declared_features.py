"""NodeDeclaredFeatures: a pod that needs a kubelet feature fits only where a node declares it.

Upstream: pkg/scheduler/framework/plugins/nodedeclaredfeatures,
          component-helpers/nodedeclaredfeatures (v1.36)
Reads:    pod.spec.hostNetwork, hostUsers, containers' restartPolicyRules; nodes.declared_features
Rejects:  UnschedulableAndUnresolvable, because no eviction upgrades a kubelet.
Differs:  a node may list its features in any order; upstream loses those that are out of order,
          which the API server rejects.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import ClassVar, Final

import numpy as np

from kubesched.api.core import Node, Pod, PodSpec
from kubesched.framework.cluster_event import NODE, POD, Action, ClusterEventWithHint, retry_on
from kubesched.framework.cycle_state import CycleState
from kubesched.framework.handle import Handle
from kubesched.framework.plugin import (
    PRE_FILTER_SKIP,
    FilterPlugin,
    NoState,
    PreFilterPlugin,
    PreFilterResult,
    Scope,
)
from kubesched.framework.status import NodeToStatus, unresolvable
from kubesched.snapshot.node_table import NodeTable
from kubesched.snapshot.pod_info import PodInfo
from kubesched.snapshot.snapshot import Snapshot

RESTART_ALL_CONTAINERS: Final = "RestartAllContainersOnContainerExits"
USER_NAMESPACES_HOST_NETWORK: Final = "UserNamespacesHostNetworkSupport"

Features = frozenset[str]


class NodeDeclaredFeatures(PreFilterPlugin[Features], FilterPlugin[Features]):
    """Filter on the features that the pod's spec requires."""

    name: ClassVar = "NodeDeclaredFeatures"
    scope: ClassVar = Scope.NODE
    signs_base: ClassVar = True
    rejection: ClassVar = unresolvable("node(s) didn't match Pod's required features")
    no_filter_state: ClassVar = (
        'error reading "PreFilterNodeDeclaredFeatures" from cycle-state: not found'
    )

    def __init__(self, args: object, handle: Handle) -> None:
        super().__init__(args, handle)
        self._enabled = handle.feature_gates.enabled("NodeDeclaredFeatures")

    def pre_filter(
        self, cycle: CycleState, pod: PodInfo, snapshot: Snapshot
    ) -> PreFilterResult[Features]:
        """Return the required features; skip if there are none, as for most pods."""
        needed = required_features(pod.spec) if self._enabled else None
        return PreFilterResult(needed) if needed else PRE_FILTER_SKIP

    def filter_state(
        self, cycle: CycleState, pod: PodInfo, snapshot: Snapshot
    ) -> Features | NoState | None:
        """Return a failure, or no features if the feature gate is off."""
        return super().filter_state(cycle, pod, snapshot) if self._enabled else frozenset()

    def filter(self, state: Features, pod: PodInfo, nodes: NodeTable) -> NodeToStatus:
        """Reject rows that lack one of the features."""
        rejected = nodes.declared_features.map(
            lambda declared: not state.issubset(declared), np.bool_
        )
        return NodeToStatus.rejecting(rejected, self.rejection)

    def describe(self, state: Features, pod: PodInfo, nodes: NodeTable) -> str:
        """Return the missing features."""
        missing = state.difference(nodes.declared_features[0])
        return f"not declared: {', '.join(sorted(missing))}"

    def events_to_register(self) -> Sequence[ClusterEventWithHint]:
        """Return node additions, changes of declared features, and updates of the pod."""
        if not self._enabled:
            return ()
        return (
            retry_on(NODE, Action.ADD | Action.UPDATE_NODE_DECLARED_FEATURE, _after_node_change),
            retry_on(POD, Action.UPDATE, _after_pod_change),
        )

    def sign(self, pod: PodInfo) -> Hashable:
        """Return the required features."""
        return required_features(pod.spec)


def required_features(spec: PodSpec) -> Features:
    """Return the features that a node needs to run such a pod."""
    needed = []
    if any(
        rule.action == "RestartAllContainers"
        for container in (*spec.containers, *spec.init_containers)
        for rule in container.restart_policy_rules
    ):
        needed.append(RESTART_ALL_CONTAINERS)
    if spec.host_network and spec.host_users is False:
        needed.append(USER_NAMESPACES_HOST_NETWORK)
    return frozenset(needed)


def _after_node_change(_pod: Pod, old: object | None, new: object | None) -> bool:
    if not isinstance(old, Node) or not isinstance(new, Node):
        return True
    return old.status.declared_features != new.status.declared_features


def _after_pod_change(pod: Pod, old: object | None, new: object | None) -> bool:
    if not isinstance(old, Pod) or not isinstance(new, Pod):
        return True
    same = new.metadata.uid == pod.metadata.uid
    return same and required_features(old.spec) != required_features(new.spec)
