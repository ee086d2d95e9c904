"""NodeDeclaredFeatures: a pod that needs a feature of the kubelet fits where it is declared.

Upstream: pkg/scheduler/framework/plugins/nodedeclaredfeatures,
          component-helpers/nodedeclaredfeatures (v1.36)
Reads:    pod.spec.hostNetwork, hostUsers, containers' restartPolicyRules; nodes.declared_features
Rejects:  UnschedulableAndUnresolvable, because no eviction upgrades a kubelet.
Differs:  nothing.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import ClassVar, Final

import numpy as np

from kubesched.api.core import Node, Pod, PodSpec
from kubesched.framework.cluster_event import (
    NODE,
    POD,
    Action,
    ClusterEvent,
    ClusterEventWithHint,
)
from kubesched.framework.cycle_state import CycleState
from kubesched.framework.handle import Handle
from kubesched.framework.plugin import (
    FilterPlugin,
    NoState,
    PreFilterPlugin,
    PreFilterResult,
    Scope,
)
from kubesched.framework.status import SKIP, NodeToStatus, unresolvable
from kubesched.snapshot.node_table import NodeTable
from kubesched.snapshot.pod_info import PodInfo
from kubesched.snapshot.snapshot import Snapshot

RESTART_ALL_CONTAINERS: Final = "RestartAllContainersOnContainerExits"
USER_NAMESPACES_HOST_NETWORK: Final = "UserNamespacesHostNetworkSupport"

# Sorted. The three that no pod needs for being scheduled still take part in reading node lists.
KNOWN_FEATURES: Final = (
    "ExtendWebSocketsToKubelet",
    "InPlacePodLevelResourcesVerticalScaling",
    "InPlacePodVerticalScalingInitContainers",
    RESTART_ALL_CONTAINERS,
    USER_NAMESPACES_HOST_NETWORK,
)

Features = frozenset[str]

_SKIP: Final[PreFilterResult[Features]] = PreFilterResult(status=SKIP)


class NodeDeclaredFeatures(PreFilterPlugin[Features], FilterPlugin[Features]):
    """Filter on features the pod's specification calls for."""

    name: ClassVar = "NodeDeclaredFeatures"
    scope: ClassVar = Scope.NODE
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
        """Infer what the pod needs; most pods need nothing."""
        needed = required_features(pod.spec) if self._enabled else None
        return PreFilterResult(needed) if needed else _SKIP

    def filter_state(
        self, cycle: CycleState, pod: PodInfo, snapshot: Snapshot
    ) -> Features | NoState | None:
        """Fail, unless the plugin has nothing to do at all."""
        return super().filter_state(cycle, pod, snapshot) if self._enabled else frozenset()

    def filter(self, state: Features, pod: PodInfo, nodes: NodeTable) -> NodeToStatus:
        """Reject rows that lack one of the features."""
        rejected = nodes.declared_features.map(
            lambda declared: not state <= declared_features(declared), np.bool_
        )
        return NodeToStatus.rejecting(rejected, self.rejection)

    def describe(self, state: Features, pod: PodInfo, nodes: NodeTable) -> str:
        """Name what is missing."""
        missing = state - declared_features(nodes.declared_features[0])
        return f"not declared: {', '.join(sorted(missing))}"

    def events_to_register(self) -> Sequence[ClusterEventWithHint]:
        """A node came or declares other features; the pod needs others."""
        if not self._enabled:
            return ()
        return (
            ClusterEventWithHint(
                ClusterEvent(NODE, Action.ADD | Action.UPDATE_NODE_DECLARED_FEATURE),
                _after_node_change,
            ),
            ClusterEventWithHint(ClusterEvent(POD, Action.UPDATE), _after_pod_change),
        )

    def sign(self, pod: PodInfo) -> Hashable:
        """Only what the pod needs matters."""
        return required_features(pod.spec)


def required_features(spec: PodSpec) -> Features:
    """Return the features without which a node cannot run such a pod."""
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


def declared_features(declared: Sequence[str]) -> Features:
    """Return the known ones of a node's declared features.

    Upstream reads the list and its own sorted one side by side and so loses what stands out of
    order; the API server only stores sorted lists.
    """
    found = []
    known = iter(KNOWN_FEATURES)
    candidate = next(known, None)
    for feature in declared:
        while candidate is not None and candidate < feature:
            candidate = next(known, None)
        if candidate == feature:
            found.append(feature)
            candidate = next(known, None)
    return frozenset(found)


def _after_node_change(_pod: Pod, old: object | None, new: object | None) -> bool:
    if not isinstance(old, Node) or not isinstance(new, Node):
        return True
    return old.status.declared_features != new.status.declared_features


def _after_pod_change(pod: Pod, old: object | None, new: object | None) -> bool:
    if not isinstance(old, Pod) or not isinstance(new, Pod):
        return True
    same = new.metadata.uid == pod.metadata.uid
    return same and required_features(old.spec) != required_features(new.spec)
