"""The whole decision against a slow twin written from the specification."""

from __future__ import annotations

from collections import Counter
from functools import cache
from itertools import count

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubesched.api.core import Pod
from kubesched.api.policy import PodDisruptionBudget
from kubesched.framework.preemption import verdict_memory
from kubesched.framework.preemption.candidates import find_candidates
from kubesched.framework.preemption.report import Candidate
from kubesched.framework.preemption.verdict_memory import VerdictMemory
from kubesched.framework.preemption.victims import (
    Question,
    select_victims_on_node,
    select_victims_on_rows,
)
from kubesched.framework.status import NodeToStatus, Status
from kubesched.snapshot.snapshot import Snapshot
from kubesched.testing.builders import make_node, make_pod, make_snapshot

from .cluster import (
    CROWDED,
    NEVER,
    NO_CPU,
    NO_PORT,
    REJECTED,
    ZONE_PODS_MAX,
    CpuFit,
    Ports,
    ZoneCounts,
    ZoneCrowd,
    make_budget,
    question_of,
    time,
)


class BoundPod(msgspec.Struct, frozen=True):
    """A drawn pod; `node` is where it is, or where it is nominated."""

    name: str
    node: str
    priority: int | None
    cpu: int
    app: str
    ports: tuple[int, ...] = ()
    start: int | None = None

    @property
    def rank(self) -> int:
        """The priority, 0 if there is none."""
        return self.priority or 0

    def build(self, *, is_nominated: bool = False) -> Pod:
        """Build the Pod."""
        return make_pod(
            self.name,
            node_name="" if is_nominated else self.node,
            nominated_node_name=self.node if is_nominated else "",
            priority=self.priority,
            requests={"cpu": self.cpu},
            labels={"app": self.app} if self.app else {},
            host_ports=self.ports,
            start_time=None if self.start is None else time(self.start),
        )


class Budget(msgspec.Struct, frozen=True):
    """A drawn budget for the pods of an app; "" is the empty selector, None is not a selector."""

    app: str | None
    allowed: int
    namespace: str
    disrupted: tuple[str, ...]

    def build(self, name: str) -> PodDisruptionBudget:
        """Build the PodDisruptionBudget."""
        selector = {"matchLabels": {"app": self.app}} if self.app else {}
        return make_budget(
            name,
            None if self.app is None else selector,
            allowed=self.allowed,
            namespace=self.namespace,
            disrupted=self.disrupted,
        )


class Case(msgspec.Struct, frozen=True):
    """A cluster and a pod that is to be placed.

    Attributes:
        cpus: Node name -> cpus.
        zones: Node name -> zone.
        pods: The pods on nodes.
        nominated: The pods nominated to nodes.
        budgets: The disruption budgets.
        preemptor: The pod to place.
        statuses: How each node failed.
        is_crowded: Whether a filter with dependent rows is enabled.
    """

    cpus: dict[str, int]
    zones: dict[str, str]
    pods: list[BoundPod]
    nominated: list[BoundPod]
    budgets: list[Budget]
    preemptor: BoundPod
    statuses: list[Status]
    is_crowded: bool


APPS = st.sampled_from(["", "x", "y"])
PORTS = st.sampled_from([(), (), (80,), (81,), (80, 81)])


@cache
def pods_on(
    names: tuple[str, ...], prefix: str, *, is_bound: bool
) -> st.SearchStrategy[list[BoundPod]]:
    """Draw pods on nodes, or nominated to them."""
    drawn = st.builds(
        BoundPod,
        name=st.just(""),
        node=st.sampled_from(names),
        priority=st.sampled_from([None, -1, 1, 2, 3]),
        cpu=st.integers(0, 2),
        app=APPS,
        ports=PORTS if is_bound else st.just(()),
        start=st.sampled_from([None, 1, 2, 3]),
    )
    return st.lists(drawn, max_size=9 if is_bound else 2).map(
        lambda pods: [
            msgspec.structs.replace(pod, name=f"{prefix}{at}") for at, pod in enumerate(pods)
        ]
    )


BUDGETS = st.builds(
    Budget,
    app=st.sampled_from([None, "", "x", "y", "x"]),
    allowed=st.integers(0, 2),
    namespace=st.sampled_from(["default", "default", "other"]),
    disrupted=st.sampled_from([(), ("p0",), ("p1", "p2")]),
)
BUDGET_LISTS = st.lists(BUDGETS, max_size=3)
ZONES = st.sampled_from("ab")
STATUSES = st.sampled_from([REJECTED, REJECTED, REJECTED, NEVER])


@st.composite
def cases(draw: st.DrawFn) -> Case:
    """Draw a small cluster in which preemption usually helps."""
    names = tuple(f"n{number}" for number in range(draw(st.integers(1, 4))))
    return Case(
        cpus={name: draw(st.integers(1, 4)) for name in names},
        zones={name: draw(ZONES) for name in names},
        pods=draw(pods_on(names, "p", is_bound=True)),
        nominated=draw(pods_on(names, "q", is_bound=False)),
        budgets=draw(BUDGET_LISTS),
        preemptor=BoundPod(
            "new",
            "",
            draw(st.integers(0, 3)),
            draw(st.integers(0, 4)),
            draw(APPS),
            draw(PORTS),
        ),
        statuses=[draw(STATUSES) for _ in names],
        is_crowded=draw(st.booleans()),
    )


def snapshot_of(case: Case) -> Snapshot:
    """Build the cluster."""
    nodes = [
        make_node(name, allocatable={"cpu": cpus}, labels={"zone": case.zones[name]})
        for name, cpus in case.cpus.items()
    ]
    pods = [pod.build() for pod in case.pods]
    pods += [pod.build(is_nominated=True) for pod in case.nominated]
    budgets = [budget.build(f"b{at}") for at, budget in enumerate(case.budgets)]
    return make_snapshot(nodes, pods, budgets)


def question_about(case: Case, snapshot: Snapshot) -> Question:
    """Return the question of the case."""
    plugins = (CpuFit, Ports, ZoneCrowd) if case.is_crowded else (CpuFit, Ports)
    return question_of(case.preemptor.build(), snapshot, plugins)


class SlowTwin:
    """Decides about one node from the drawn numbers alone, step by step."""

    def __init__(self, case: Case, node: str) -> None:
        self.case = case
        self.node = node
        self.pod = case.preemptor
        self.present = [pod for pod in case.pods if pod.node == node]
        self.elsewhere = [pod for pod in case.pods if pod.node != node]
        self.ports = {port for pod in self.present for port in pod.ports}

    def remove(self, pod: BoundPod) -> None:
        """Remove a pod; its ports count as free even if other pods use them."""
        self.present.remove(pod)
        self.ports -= set(pod.ports)

    def add(self, pod: BoundPod) -> None:
        """Put a pod on the node."""
        self.present.append(pod)
        self.ports |= set(pod.ports)

    def reason(self) -> str:
        """Return why the pod does not fit, with nominated pods or without; empty if it does."""
        nominated = [
            pod
            for pod in self.case.nominated
            if pod.node == self.node and pod.rank >= self.pod.rank
        ]
        return self.pass_reason(nominated) or self.pass_reason([])

    def pass_reason(self, more: list[BoundPod]) -> str:
        """Return why the pod does not fit next to `more` pods."""
        here = self.present + more
        if sum(pod.cpu for pod in here) + self.pod.cpu > self.case.cpus[self.node]:
            return NO_CPU.reasons[0]
        if self.ports & set(self.pod.ports):
            return NO_PORT.reasons[0]
        zones = self.case.zones
        near = [pod for pod in self.elsewhere if zones[pod.node] == zones[self.node]]
        alike = [pod for pod in near + here if pod.app == self.pod.app]
        crowded = self.case.is_crowded and len(alike) >= ZONE_PODS_MAX
        return CROWDED.reasons[0] if crowded else ""

    @staticmethod
    def by_importance(pods: list[BoundPod]) -> list[BoundPod]:
        """Insert one pod after the other; the time passes while pods without a start are read."""
        clock = count(9)
        ordered: list[BoundPod] = []
        for pod in pods:
            at = len(ordered)
            while at:
                other = ordered[at - 1]
                starts = [next(clock) if one.start is None else one.start for one in (pod, other)]
                if (-pod.rank, starts[0]) >= (-other.rank, starts[1]):
                    break
                at -= 1
            ordered.insert(at, pod)
        return ordered

    def is_protected(self, victims: list[BoundPod]) -> dict[str, bool]:
        """Return, by name, whether evicting the victims in this order violates a budget."""
        left = [budget.allowed for budget in self.case.budgets]
        protected = dict.fromkeys((victim.name for victim in victims), False)
        for victim in victims:
            for at, budget in enumerate(self.case.budgets):
                about = budget.namespace == "default" and budget.app and budget.app == victim.app
                if about and victim.name not in budget.disrupted:
                    left[at] -= 1
                    protected[victim.name] |= left[at] < 0
        return protected

    def decide(self) -> tuple[list[str], int] | str:
        """Return the names of the victims and the number of violations, or why there are none."""
        lower = [pod for pod in self.present if pod.rank < self.pod.rank]
        if not lower:
            return "No preemption victims found for incoming pod"
        for pod in lower:
            self.remove(pod)
        if reason := self.reason():
            return reason
        lower = self.by_importance(lower)
        protected = self.is_protected(lower)
        tried = sorted(lower, key=lambda pod: not protected[pod.name])
        for pod in tried:
            self.add(pod)
            if self.reason():
                self.remove(pod)
        evicted = [pod for pod in tried if pod not in self.present]
        if not evicted:
            return f'expected at least one victim pod on node "{self.node}"'
        if len(set(protected.values())) > 1:
            evicted = self.by_importance(evicted)
        return [pod.name for pod in evicted], sum(protected[pod.name] for pod in evicted)


def plain(found: Candidate | Status) -> tuple[list[str], int] | str:
    """Return a verdict in the twin's terms."""
    if isinstance(found, Status):
        return found.message
    return [pod.name for pod in found.victims], found.pdb_violations


def _all(potential_nodes: int) -> int:
    return potential_nodes


@pytest.mark.slow
@given(cases(), st.booleans())
def test_decision_equals_its_slow_twin(case: Case, screens: bool) -> None:
    """Candidates, victims, violations and statuses are those of the specification."""
    snapshot = snapshot_of(case)
    question = question_about(case, snapshot)
    statuses = NodeToStatus.of(case.statuses)
    with pytest.MonkeyPatch.context() as patch:
        if screens:
            patch.setattr(verdict_memory, "FEW_ROWS", 0)
        run = find_candidates(question, statuses, _all, VerdictMemory())
    found: dict[str, Candidate | Status] = {c.node_name: c for c in run.candidates}
    found |= run.node_statuses
    expected = {
        name: SlowTwin(case, name).decide()
        for name, status in zip(case.cpus, case.statuses, strict=True)
        if status is REJECTED
    }
    assert expected == {name: plain(verdict) for name, verdict in sorted(found.items())}
    violations = [each.pdb_violations > 0 for each in run.candidates]
    assert sorted(violations) == violations


@pytest.mark.slow
@given(cases())
def test_columns_equal_one_by_one(case: Case) -> None:
    """All rows at once give the same verdicts as one by one."""
    case = msgspec.structs.replace(case, is_crowded=False, nominated=[])
    question = question_about(case, snapshot_of(case))
    rows = list(range(len(case.cpus)))
    assert question.rows_are_independent
    expected = {row: select_victims_on_node(question, row) for row in rows}
    assert expected == select_victims_on_rows(question, rows)
    assert expected == select_victims_on_rows(question, rows[::-1])


@pytest.mark.slow
@given(cases())
def test_nothing_is_changed(case: Case) -> None:
    """Neither the table nor the states of the cycle change."""
    snapshot = snapshot_of(case)
    question = question_about(case, snapshot)
    pods = [list(on_row) for on_row in snapshot.nodes.pods]
    counts = {
        name: Counter(state.counts)
        for name, state in question.cycle.filter_states.items()
        if isinstance(state, ZoneCounts)
    }
    statuses = NodeToStatus.of(case.statuses)
    first = find_candidates(question, statuses, _all, VerdictMemory())
    second = find_candidates(question, statuses, _all, VerdictMemory())
    assert sorted(first.candidates, key=_name) == sorted(second.candidates, key=_name)
    assert first.node_statuses == second.node_statuses
    snapshot.nodes.check()
    assert pods == [list(on_row) for on_row in snapshot.nodes.pods]
    for name, expected in counts.items():
        state = question.cycle.filter_states[name]
        assert isinstance(state, ZoneCounts)
        assert expected == state.counts


def _name(found: Candidate) -> str:
    return found.node_name
