"""Clusters, filters and helpers for the tests of DefaultPreemption."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar, TypeAlias

from kubesched.api.core import Node, Pod
from kubesched.framework.cycle_state import CycleState
from kubesched.framework.plugin import FilterPlugin, Plugin, PostFilterResult
from kubesched.framework.preemption.report import PreemptionReport
from kubesched.framework.status import NodeToStatus, Status, unresolvable, unschedulable
from kubesched.plugins.default_preemption import DefaultPreemption, DefaultPreemptionArgs
from kubesched.plugins.node_resources import NodeResourcesFit
from kubesched.snapshot.node_table import NodeTable
from kubesched.snapshot.pod_info import PodInfo
from kubesched.snapshot.snapshot import Snapshot
from kubesched.testing.builders import make_node, make_pod
from kubesched.testing.handle import FakeHandle
from tests.plugins.building import build

Found: TypeAlias = "dict[str, tuple[set[str], int]]"

U = unschedulable()
UU = unresolvable()

NEGATIVE, LOW, MIDDLE, HIGH, HUGE = -100, 0, 100, 1000, 10_000
SMALL = {"cpu": "100m", "memory": "100"}
MEDIUM = {"cpu": "200m", "memory": "200"}
LARGE = {"cpu": "300m", "memory": "300"}
HALF = {"cpu": "500m", "memory": "500"}

HAS_FOO = {"matchExpressions": [{"key": "foo", "operator": "Exists"}]}


class Refuse(FilterPlugin[None]):
    """Rejects every node."""

    name: ClassVar = "Refuse"

    def filter(self, state: None, pod: PodInfo, nodes: NodeTable) -> NodeToStatus:
        """Reject."""
        return NodeToStatus.everywhere(len(nodes), unschedulable("refused"))


class Accept(FilterPlugin[None]):
    """Lets every node pass."""

    name: ClassVar = "Accept"

    def filter(self, state: None, pod: PodInfo, nodes: NodeTable) -> NodeToStatus:
        """Pass."""
        return NodeToStatus.passing(len(nodes))


def node(name: str, allocatable: Mapping[str, str | int] | None = None, *, zone: str = "") -> Node:
    """Build a node with two small pods' room, labelled with its host name and zone."""
    labels = {"hostname": name, "zone": zone} if zone else {"hostname": name}
    return make_node(name, labels=labels, allocatable=allocatable or {**HALF, "pods": 32})


def pod_on(
    node_name: str,
    name: str,
    priority: int = LOW,
    requests: Mapping[str, str | int] | None = None,
    second: int = 0,
    labels: Mapping[str, str] | None = None,
    pod_anti_affinity: Mapping[str, object] | None = None,
) -> Pod:
    """Build a pod on a node; `second` is when it started."""
    start = f"2026-01-01T00:00:{second:02}Z"
    return make_pod(
        name,
        node_name=node_name,
        priority=priority,
        requests=requests,
        start_time=start,
        labels=labels,
        pod_anti_affinity=pod_anti_affinity,
    )


def handle_of(
    plugins: Sequence[type[Plugin]] = (NodeResourcesFit,), gates: Mapping[str, bool] | None = None
) -> FakeHandle:
    """Return a handle with these filters."""
    handle = FakeHandle(gates)
    handle.plugins.extend(build(plugin, handle=handle) for plugin in plugins)
    return handle


def post_filter(
    pod: Pod,
    snapshot: Snapshot,
    *,
    statuses: Sequence[Status] = (),
    plugins: Sequence[type[Plugin]] = (NodeResourcesFit,),
    args: DefaultPreemptionArgs | None = None,
    gates: Mapping[str, bool] | None = None,
) -> PostFilterResult:
    """Ask the plugin; without `statuses` every node was rejected."""
    handle = handle_of(plugins, gates)
    cycle, info = CycleState(), PodInfo(pod)
    assert handle.pre_filter(cycle, info, snapshot).is_success
    given = statuses or [U] * len(snapshot.nodes)
    plugin = DefaultPreemption(args or DefaultPreemptionArgs(), handle)
    return plugin.post_filter(cycle, info, snapshot, NodeToStatus.of(given))


def report_of(result: PostFilterResult) -> PreemptionReport:
    """Return the details."""
    assert isinstance(result.details, PreemptionReport)
    return result.details


def found(result: PostFilterResult) -> Found:
    """Return node -> (names of victims, violations)."""
    return {
        candidate.node_name: ({v.name for v in candidate.victims}, candidate.pdb_violations)
        for candidate in report_of(result).candidates
    }


ONE_POD: Mapping[str, str | int] = {"cpu": 4, "memory": "1Gi", "pods": 1}
