"""Filters, builders and questions that the tests of preemption share."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import takewhile
from typing import ClassVar, TypeAlias

import msgspec
import numpy as np
from msgspec.structs import replace

from kubesched.api.core import Pod
from kubesched.api.policy import PodDisruptionBudget
from kubesched.framework.cycle_state import CycleState
from kubesched.framework.handle import FilterReads
from kubesched.framework.plugin import (
    OF_SUMS,
    FilterPlugin,
    Plugin,
    PreFilterExtensions,
    PreFilterResult,
    Scope,
)
from kubesched.framework.preemption.budgets import DisruptionBudgets
from kubesched.framework.preemption.report import Candidate, PreemptionReport
from kubesched.framework.preemption.victims import Question
from kubesched.framework.status import (
    SUCCESS,
    NodeToStatus,
    Status,
    failure,
    unresolvable,
    unschedulable,
)
from kubesched.snapshot.node_table import NodeTable
from kubesched.snapshot.pod_info import PodInfo
from kubesched.snapshot.snapshot import Snapshot
from kubesched.testing.builders import make_pod_info
from kubesched.testing.handle import FakeHandle

NO_CPU = unschedulable("Insufficient cpu")
NO_PORT = unschedulable("no free port")
CROWDED = unschedulable("zone is crowded")
REJECTED = unschedulable("rejected")
NEVER = unresolvable("never")
ZONE_PODS_MAX = 2

Json: TypeAlias = "dict[str, object]"


class CpuFit(FilterPlugin[None]):
    """Rejects rows without enough free CPU; only sums count."""

    name: ClassVar = "CpuFit"
    scope: ClassVar = Scope.USAGE

    def filter(self, state: None, pod: PodInfo, nodes: NodeTable) -> NodeToStatus:
        """Compare the free amount with the request."""
        free = nodes.allocatable_of("cpu") - nodes.requested_of("cpu")
        return NodeToStatus.rejecting(pod.template.requests.get("cpu", 0) > free, NO_CPU)


class Ports(FilterPlugin[None]):
    """Rejects rows where a host port of the pod is in use; rows are independent."""

    name: ClassVar = "Ports"
    scope: ClassVar = Scope.ROW
    fewer_pods_help: ClassVar = True

    def filter(self, state: None, pod: PodInfo, nodes: NodeTable) -> NodeToStatus:
        """Check each set of ports for conflicts."""
        wanted = pod.template.host_ports
        conflicts = nodes.used_ports.map(lambda used: any(map(used.conflicts, wanted)), np.bool_)
        return NodeToStatus.rejecting(conflicts, NO_PORT)


class ZoneA(FilterPlugin[None]):
    """Rejects rows outside zone a, whatever pods are there."""

    name: ClassVar = "ZoneA"
    scope: ClassVar = Scope.NODE

    def filter(self, state: None, pod: PodInfo, nodes: NodeTable) -> NodeToStatus:
        """Compare the label."""
        other = [zone_of(nodes, row) != "a" for row in range(len(nodes))]
        return NodeToStatus.rejecting(np.array(other, np.bool_), REJECTED)


class ZoneCounts:
    """How many pods with the pod's label each zone has."""

    def __init__(self, counts: Mapping[str, int]) -> None:
        self.counts = Counter(counts)

    def clone(self) -> ZoneCounts:
        """Copy."""
        return ZoneCounts(self.counts)


class ZoneCrowd(PreFilterExtensions[ZoneCounts], FilterPlugin[ZoneCounts]):
    """Rejects zones that have two pods like the pod already; rows depend on each other."""

    name: ClassVar = "ZoneCrowd"

    def pre_filter(
        self, cycle: CycleState, pod: PodInfo, snapshot: Snapshot
    ) -> PreFilterResult[ZoneCounts]:
        """Count."""
        nodes = snapshot.nodes
        counts = Counter(
            zone_of(nodes, row)
            for row in range(len(nodes))
            for other in nodes.pods[row].values()
            if is_alike(pod, other)
        )
        return PreFilterResult(ZoneCounts(counts))

    def add_pod(self, state: ZoneCounts, pod: PodInfo, added: PodInfo, nodes: NodeTable) -> Status:
        """Count one more."""
        state.counts[zone_of(nodes, 0)] += is_alike(pod, added)
        return SUCCESS

    def remove_pod(
        self, state: ZoneCounts, pod: PodInfo, removed: PodInfo, nodes: NodeTable
    ) -> Status:
        """Count one less."""
        state.counts[zone_of(nodes, 0)] -= is_alike(pod, removed)
        return SUCCESS

    def ignores(self, state: ZoneCounts, pod: PodInfo, other: PodInfo) -> bool:
        """Whether the other pod is of another app."""
        return not is_alike(pod, other)

    def filter(self, state: ZoneCounts, pod: PodInfo, nodes: NodeTable) -> NodeToStatus:
        """Compare with the limit."""
        crowded = [state.counts[zone_of(nodes, row)] >= ZONE_PODS_MAX for row in range(len(nodes))]
        return NodeToStatus.rejecting(np.array(crowded, np.bool_), CROWDED)


class Fragile(PreFilterExtensions[ZoneCounts]):
    """Fails to remove or add pods on nodes with a label `fails`."""

    name: ClassVar = "Fragile"

    def pre_filter(
        self, cycle: CycleState, pod: PodInfo, snapshot: Snapshot
    ) -> PreFilterResult[ZoneCounts]:
        """Return a state, so that rows are filtered one by one."""
        return PreFilterResult(ZoneCounts({}))

    def add_pod(self, state: ZoneCounts, pod: PodInfo, added: PodInfo, nodes: NodeTable) -> Status:
        """Fail on nodes with the label."""
        return unschedulable("cannot add") if nodes.label("fails")[0] == "add" else SUCCESS

    def remove_pod(
        self, state: ZoneCounts, pod: PodInfo, removed: PodInfo, nodes: NodeTable
    ) -> Status:
        """Fail on nodes with the label."""
        return failure("cannot remove") if nodes.label("fails")[0] == "remove" else SUCCESS


def zone_of(nodes: NodeTable, row: int) -> str:
    """Return the zone label of a row."""
    return nodes.label("zone")[row] or ""


def is_alike(pod: PodInfo, other: PodInfo) -> bool:
    """Whether both have the same value of the label `app`."""
    return pod.labels.get("app") == other.labels.get("app")


class ScopedHandle(FakeHandle):
    """A handle that knows the scopes of its filters.

    Attributes:
        versions: The versions of the other objects that the filters read.
    """

    def __init__(self, plugins: Sequence[type[Plugin]] = ()) -> None:
        super().__init__()
        self.plugins.extend(plugin(None, self) for plugin in plugins)
        self.versions = (0,)

    def reads_of_filters(self, cycle: CycleState, pod: PodInfo) -> FilterReads:
        """Return the scopes; plugins that fail to remove pods keep rows from being screened."""
        filters = [
            plugin
            for plugin in self.plugins
            if isinstance(plugin, FilterPlugin) and plugin.name not in cycle.skip_filter
        ]
        scopes = {plugin.name: plugin.scope for plugin in filters}
        screens = not any(isinstance(plugin, Fragile) for plugin in self.plugins)
        first = takewhile(lambda each: each.scope in OF_SUMS or each.fewer_pods_help, filters)
        screening = {each.name: each.scope in OF_SUMS for each in first if screens}
        return FilterReads(scopes, self.versions, screening)


def question_of(
    pod: Pod, snapshot: Snapshot, plugins: Sequence[type[Plugin]] = (CpuFit, Ports)
) -> Question:
    """Return the question after pre_filter."""
    handle = ScopedHandle(plugins)
    cycle, info = CycleState(), PodInfo(pod)
    assert SUCCESS == handle.pre_filter(cycle, info, snapshot)
    return Question(handle, cycle, info, snapshot, DisruptionBudgets(snapshot.objects))


def rivals_in(question: Question) -> dict[int, list[PodInfo]]:
    """Return the nominated pods that the preemptor must not displace, by row."""
    snapshot = question.snapshot
    ahead = {
        row: snapshot.nominated.ahead_of(question.pod, name)
        for name, row in snapshot.nodes.row_of.items()
    }
    return {row: rivals for row, rivals in ahead.items() if rivals}


def make_budget(
    name: str,
    selector: object,
    *,
    allowed: int = 0,
    namespace: str = "default",
    disrupted: Sequence[str] = (),
) -> PodDisruptionBudget:
    """Build a PodDisruptionBudget; `selector` is its JSON."""
    return msgspec.convert(
        {
            "metadata": {"name": name, "namespace": namespace},
            "spec": {} if selector is None else {"selector": selector},
            "status": {
                "disruptionsAllowed": allowed,
                "disruptedPods": dict.fromkeys(disrupted, "2026-01-01T00:00:00Z"),
            },
        },
        PodDisruptionBudget,
    )


def time(second: int) -> str:
    """Return a time of day."""
    return f"2026-01-01T00:00:{second:02}Z"


def candidate(name: str, *priorities: int, pdb_violations: int = 0, starts: str = "") -> Candidate:
    """Build a candidate; `starts` has one digit, the second of its start, for each victim."""
    starts = starts or "1" * len(priorities)
    victims = tuple(
        make_pod_info(f"{name}.{number}", priority=priority, start_time=time(int(start)))
        for number, (priority, start) in enumerate(zip(priorities, starts, strict=True))
    )
    return Candidate(name, victims, pdb_violations)


def report_of(candidates: Sequence[Candidate], statuses: Mapping[str, Status]) -> PreemptionReport:
    """Return a report with these candidates, and these statuses of other nodes."""
    others = np.empty(len(statuses), np.object_)
    others[:] = list(statuses.values())
    rows = np.arange(len(statuses))
    tried = PreemptionReport(others=others, other_rows=rows, names=tuple(statuses))
    return replace(tried.narrowed_to(candidates), narrowed=False)
