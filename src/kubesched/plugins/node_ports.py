"""NodePorts: keep pods off nodes where another pod uses one of their host ports.

Upstream: pkg/scheduler/framework/plugins/nodeports (v1.36)
Reads:    pod.spec.containers and restartable init containers, hostPort; nodes.used_ports
Rejects:  Unschedulable, because evicting the other pod frees the port.
Differs:  nothing.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import ClassVar

import numpy as np

from kubesched.api.core import Pod
from kubesched.framework.cluster_event import NODE, POD, Action, ClusterEventWithHint, retry_on
from kubesched.framework.cycle_state import CycleState
from kubesched.framework.plugin import (
    PRE_FILTER_SKIP,
    FilterPlugin,
    PreFilterPlugin,
    PreFilterResult,
    Scope,
)
from kubesched.framework.status import NodeToStatus, unschedulable
from kubesched.snapshot.host_ports import (
    NO_PORTS,
    HostPort,
    UsedPorts,
    UsedPortsColumn,
    host_ports_of,
)
from kubesched.snapshot.node_table import NodeTable
from kubesched.snapshot.pod_info import PodInfo
from kubesched.snapshot.snapshot import Snapshot

HostPorts = tuple[HostPort, ...]


class NodePorts(PreFilterPlugin[HostPorts], FilterPlugin[HostPorts]):
    """Filter on host ports in use."""

    name: ClassVar = "NodePorts"
    scope: ClassVar = Scope.ROW
    fewer_pods_help: ClassVar = True
    signs_base: ClassVar = True
    rejection: ClassVar = unschedulable(
        "node(s) didn't have free ports for the requested pod ports"
    )
    no_filter_state: ClassVar = 'reading "PreFilterNodePorts" from cycleState: not found'

    def pre_filter(
        self, cycle: CycleState, pod: PodInfo, snapshot: Snapshot
    ) -> PreFilterResult[HostPorts]:
        """Return the host ports; skip if there are none, as for most pods."""
        ports = pod.template.host_ports
        return PreFilterResult(ports) if ports else PRE_FILTER_SKIP

    def ignores(self, state: HostPorts, pod: PodInfo, other: PodInfo) -> bool:
        """Return whether the other pod has no host ports."""
        return not other.template.host_ports

    def filter(self, state: HostPorts, pod: PodInfo, nodes: NodeTable) -> NodeToStatus:
        """Reject rows where one of the ports is in use."""
        used = nodes.used_ports
        users = used.rows_with(state) if isinstance(used, UsedPortsColumn) else None
        if users is None or len(users) > len(used.values):
            rejected = used.map(lambda each: _first_taken(state, each) is not None, np.bool_)
        else:
            rejected = np.zeros(len(nodes), np.bool_)
            rejected[[row for row in users if _first_taken(state, used[row]) is not None]] = True
        return NodeToStatus.rejecting(rejected, self.rejection)

    def describe(self, state: HostPorts, pod: PodInfo, nodes: NodeTable) -> str:
        """Return the first port in use, and the pod that uses it."""
        port = _first_taken(state, nodes.used_ports[0])
        if port is None:
            return ""
        holders = [
            other.key
            for other in nodes.pods[0].values()
            if NO_PORTS.plus(other.template.host_ports).conflicts(port)
        ]
        held = f" is held by {', '.join(holders)}" if holders else " is taken"
        return f"port {port.address}:{port.port}/{port.protocol}{held}"

    def events_to_register(self) -> Sequence[ClusterEventWithHint]:
        """Return pod deletions and node additions."""
        return (
            retry_on(POD, Action.DELETE, _after_pod_deletion, per_template=True),
            retry_on(NODE, Action.ADD),
        )

    def sign(self, pod: PodInfo) -> Hashable:
        """Return the host ports."""
        return pod.template.host_ports


def _first_taken(wanted: HostPorts, used: UsedPorts) -> HostPort | None:
    for port in wanted:
        if used.conflicts(port):
            return port
    return None


def _after_pod_deletion(pod: Pod, old: object | None, _new: object | None) -> bool:
    if not isinstance(old, Pod):
        return True
    if not old.spec.node_name and not old.status.nominated_node_name:
        return False
    freed = NO_PORTS.plus(host_ports_of(old.spec))
    return _first_taken(host_ports_of(pod.spec), freed) is not None
