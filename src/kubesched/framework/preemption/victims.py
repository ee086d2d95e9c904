"""Victims on a node: the least important pods whose eviction lets the preemptor fit.

All pods of lower priority are removed. If the preemptor fits then, they return one by one, as long
as it still fits. The pods that cannot return are the victims. If a row's answer depends on that row
alone, many rows are decided together.

Upstream: pkg/scheduler/framework/plugins/defaultpreemption, SelectVictimsOnNode (v1.36)
Reads:    pods on the node, PodDisruptionBudgets, nominated pods
Invariants: rows that are decided together have the verdicts of `select_victims_on_node`.
Rejects:  UnschedulableAndUnresolvable if no pod has a lower priority; otherwise with the status of
          the filter that rejects the node even without these pods.
Differs:  nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Final, TypeAlias

import msgspec
import numpy as np

from kubesched.framework.cycle_state import CycleState
from kubesched.framework.handle import FilterReads, Handle
from kubesched.framework.plugin import Scope
from kubesched.framework.preemption.budgets import DisruptionBudgets
from kubesched.framework.preemption.eligibility import by_importance, lower_priority_pods
from kubesched.framework.preemption.report import Candidate
from kubesched.framework.status import Status, failure, unresolvable
from kubesched.snapshot.node_table import SelectedRows
from kubesched.snapshot.pod_info import PodInfo
from kubesched.snapshot.snapshot import Snapshot

NO_VICTIMS: Final = unresolvable("No preemption victims found for incoming pod")

Verdict: TypeAlias = Candidate | Status
"""The result for one node: a candidate, or the status that explains why it is not one."""


class Question(msgspec.Struct, frozen=True, dict=True):
    """The preemptor and the cluster.

    Attributes:
        handle: Runs the filters.
        cycle: The states after pre_filter; only clones are changed.
        pod: The preemptor.
        snapshot: The cluster.
        budgets: The cluster's disruption budgets.
    """

    handle: Handle
    cycle: CycleState
    pod: PodInfo
    snapshot: Snapshot
    budgets: DisruptionBudgets

    @cached_property
    def reads(self) -> FilterReads:
        """What the filters' answers depend on."""
        return self.handle.reads_of_filters(self.cycle, self.pod)

    @property
    def requests_have_columns(self) -> bool:
        """Whether the node table has columns for all resources that the preemptor requests."""
        return self.pod.template.requests.keys() <= self.snapshot.nodes.resources.keys()

    @cached_property
    def verdicts_can_be_kept(self) -> bool:
        """Whether the verdict on a row depends on that row and the versions in `reads` alone."""
        return self.rows_are_independent and Scope.CLUSTER not in self.reads.scopes.values()

    @cached_property
    def rows_are_independent(self) -> bool:
        """Whether rows can be filtered together: no filter's state changes with pods on nodes."""
        return not self.cycle.follows_pods


def select_victims_on_node(question: Question, row: int) -> Verdict:
    """Return the verdict on one row."""
    handle, pod, snapshot = question.handle, question.pod, question.snapshot
    potential = lower_priority_pods(pod, snapshot.nodes, row)
    if not potential:
        return NO_VICTIMS
    cycle, node = question.cycle.clone(), snapshot.nodes.take(np.array([row], np.intp))
    for victim in potential:
        status = handle.remove_pod(cycle, pod, victim, node)
        if not status.is_success:
            return failure(status.message)
    status = handle.filter_with_nominated_pods(cycle, pod, snapshot, node)
    if not status.is_success:
        return status
    violating, others = question.budgets.split(by_importance(potential))
    tried = (*violating, *others)
    evicted: list[PodInfo] = []
    for victim in tried:
        status = handle.add_pod(cycle, pod, victim, node)
        if not status.is_success:
            return failure(status.message)
        if not handle.filter_with_nominated_pods(cycle, pod, snapshot, node).is_success:
            status = handle.remove_pod(cycle, pod, victim, node)
            evicted.append(victim)
            if not status.is_success:
                return failure(status.message)
    return verdict(snapshot.nodes.names[row], tried, evicted, violating)


@dataclass(slots=True, eq=False)
class _Reprieve:
    """A row, its row in the what-if table, and its pods in the order in which they may return."""

    row: int
    at: int
    violating: list[PodInfo]
    pods: list[PodInfo]
    evicted: list[PodInfo] = field(default_factory=list)


def select_victims_on_rows(question: Question, rows: Iterable[int]) -> dict[int, Verdict]:
    """Return the verdict on each row; the rows must be independent and without rivals.

    Pods return in rounds: each round adds the next pod of every row, and one call of the filters
    decides on which rows it stays.
    """
    nodes = question.snapshot.nodes
    potential = {row: lower_priority_pods(question.pod, nodes, row) for row in rows}
    found: dict[int, Verdict] = dict.fromkeys(potential, NO_VICTIMS)
    potential = {row: pods for row, pods in potential.items() if pods}
    if not potential:
        return found
    what_if = nodes.take(np.array(list(potential), np.intp))
    what_if.remove_pods(
        [(at, victim) for at, pods in enumerate(potential.values()) for victim in pods]
    )
    statuses = question.handle.filter_rows(question.cycle, question.pod, what_if)
    reprieves: list[_Reprieve] = []
    for at, (row, pods) in enumerate(potential.items()):
        if statuses.index[at]:
            found[row] = statuses[at]
        else:
            violating, others = question.budgets.split(by_importance(pods))
            reprieves.append(_Reprieve(row, at, violating, violating + others))
    _let_pods_come_back(question, what_if, reprieves)
    for each in reprieves:
        found[each.row] = verdict(nodes.names[each.row], each.pods, each.evicted, each.violating)
    return found


def _let_pods_come_back(
    question: Question, what_if: SelectedRows, reprieves: list[_Reprieve]
) -> None:
    """Add the pods back, one per row and round; those that cannot stay go to `evicted`."""
    turn = 0
    while reprieves := [each for each in reprieves if turn < len(each.pods)]:
        what_if.add_pods([(each.at, each.pods[turn]) for each in reprieves])
        # Rows whose pods are all decided are not filtered again.
        remaining = what_if.take(np.array([each.at for each in reprieves], np.intp))
        fits = question.handle.filter_rows(question.cycle, question.pod, remaining).passed.tolist()
        leaving = [each for each, fit in zip(reprieves, fits, strict=True) if not fit]
        what_if.remove_pods([(each.at, each.pods[turn]) for each in leaving])
        for each in leaving:
            each.evicted.append(each.pods[turn])
        turn += 1


def verdict(
    node_name: str,
    tried: Sequence[PodInfo],
    evicted: Sequence[PodInfo],
    violating: Sequence[PodInfo],
) -> Verdict:
    """Return a candidate, or a failure if no pod needs to be evicted.

    `tried` are the pods of lower priority, `evicted` those of them that could not return, in the
    same order, and `violating` those that a disruption budget protects.
    """
    if not evicted:
        return failure(f'expected at least one victim pod on node "{node_name}"')
    protected = {pod.uid for pod in violating}
    violations = sum(pod.uid in protected for pod in evicted)
    # Protected pods were tried first, regardless of importance.
    victims = by_importance(evicted) if 0 < len(violating) < len(tried) else evicted
    return Candidate(node_name, tuple(victims), violations)
