"""Victims on many nodes at once, if filters read only Node objects and sums of requests.

A call of the filters tries each row without its pods of lower priority, with the first of them that
may return, with the first two, and so on. The first pod that makes the row too small is a victim,
and the pods after it are tried in the next call. So the number of calls depends on the number of
victims, and not on the number of pods.

Upstream: pkg/scheduler/framework/plugins/defaultpreemption, SelectVictimsOnNode (v1.36)
Invariants: the verdicts equal those of `select_victims_on_node` row by row.
Differs:  nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from kubesched.framework.cycle_state import CycleState
from kubesched.framework.plugin import Scope
from kubesched.framework.preemption.eligibility import lower_priority_pods
from kubesched.framework.preemption.importance import by_importance
from kubesched.framework.preemption.victims import NO_VICTIMS, Question, Verdict, verdict
from kubesched.framework.status import NodeToStatus
from kubesched.snapshot.pod_info import PodInfo

Rivals = Mapping[int, Sequence[PodInfo]]
"""Row -> the pods nominated to it that the preemptor must not displace."""


def are_sums_enough(question: Question) -> bool:
    """Whether filters read nothing of the pods on nodes but sums of requests that have columns."""
    reads, columns = question.reads, question.snapshot.nodes.resources
    if reads is None or Scope.ROW in reads.scopes.values():
        return False
    return question.pod.template.requests.keys() <= columns.keys()


def select_victims_by_sums(
    question: Question, rows: Sequence[int], rivals: Rivals, fits_node: NDArray[np.bool_]
) -> list[Verdict]:
    """Return one verdict for each of `rows`.

    Args:
        question: The preemptor and the cluster; sums must be enough.
        rows: The rows.
        rivals: The pods that are nominated to rows.
        fits_node: Bool per row of the table: whether the filters that read only the Node object are
            known to pass; updated.
    """
    verdicts: list[Verdict] = [NO_VICTIMS] * len(rows)
    trials = _trials(question, rows)
    new = [trial for trial in trials if not fits_node[trial.row]]
    for trial, found in _try(question, question.cycle, new, rivals, states=1):
        fits_node[trial.row] = found.passed[0]
        verdicts[trial.place] = found[0]
    trials = [trial for trial in trials if fits_node[trial.row]]
    cycle = _skipping_node_filters(question)
    while trials:
        for trial, found in _try(question, cycle, trials, rivals):
            if found.passed[0]:
                trial.decide(found.passed[1:].tolist())
                name = question.snapshot.nodes.names[trial.row]
                verdicts[trial.place] = verdict(name, trial.evicted, trial.violating)
            else:
                verdicts[trial.place], trial.pods = found[0], []
        trials = [trial for trial in trials if trial.pods]
    return verdicts


def _trials(question: Question, rows: Sequence[int]) -> list[_Trial]:
    """Return a trial for each row that has pods of lower priority."""
    nodes = question.snapshot.nodes
    trials: list[_Trial] = []
    for place, row in enumerate(rows):
        potential = lower_priority_pods(question.pod, nodes, row)
        if potential:
            split = question.budgets.split(by_importance(potential))
            trials.append(_Trial(place, row, *split))
    amounts = nodes.amounts_of_pods([pod for trial in trials for pod in trial.pods])
    for trial in trials:
        count = len(trial.pods)
        trial.amounts, amounts = amounts[:, :count], amounts[:, count:]
    return trials


class _Trial:
    """A row, and its pods of lower priority in the order in which they may return.

    Attributes:
        place: The place of the row among those in question.
        row: The row.
        violating: The pods that a disruption budget protects.
        pods: The pods that are not decided yet.
        amounts: Their amounts, one column per pod.
        evicted: The pods that cannot return.
        evicted_amounts: The sum of their amounts, one column.
    """

    __slots__ = ("amounts", "evicted", "evicted_amounts", "place", "pods", "row", "violating")

    amounts: NDArray[np.int64]

    def __init__(
        self, place: int, row: int, violating: list[PodInfo], others: list[PodInfo]
    ) -> None:
        self.place = place
        self.row = row
        self.violating = violating
        self.pods = violating + others
        self.evicted: list[PodInfo] = []
        self.evicted_amounts: NDArray[np.int64] | int = 0

    def missing(self) -> NDArray[np.int64]:
        """Return what the row lacks without the undecided pods, with one of them, with two, ..."""
        missing = np.zeros((len(self.amounts), len(self.pods) + 1), np.int64)
        np.cumsum(self.amounts[:, ::-1], axis=1, out=missing[:, -2::-1])
        return missing + self.evicted_amounts

    def decide(self, fits: list[bool]) -> None:
        """Let pods return up to the first one with which the preemptor does not fit.

        Where this one cannot return, the next ones of equal amounts cannot either.

        Args:
            fits: Whether the preemptor fits with one more pod, with two more, and so on.
        """
        stay = [*fits, False].index(False)
        left = self.amounts[:, stay:]
        is_alike = (left == left[:, :1]).all(axis=0).tolist()
        leave = stay + [*is_alike, False].index(False)
        self.evicted += self.pods[stay:leave]
        self.evicted_amounts += self.amounts[:, stay:leave].sum(axis=1, keepdims=True)
        self.pods = self.pods[leave:]
        self.amounts = self.amounts[:, leave:]


def _skipping_node_filters(question: Question) -> CycleState:
    assert question.reads is not None, "the scopes of the filters are known"
    scopes = question.reads.scopes
    return question.cycle.skipping_filters(
        [name for name, scope in scopes.items() if scope is not Scope.USAGE]
    )


def _try(
    question: Question,
    cycle: CycleState,
    trials: Sequence[_Trial],
    rivals: Rivals,
    states: int | None = None,
) -> Iterator[tuple[_Trial, NodeToStatus]]:
    """Yield each trial with the statuses of its row without the undecided pods, with one, ...

    Args:
        question: The preemptor and the cluster.
        cycle: What the filters need.
        trials: The trials.
        rivals: The pods that are nominated to rows; they are there or not, whichever is worse.
        states: How many of these statuses are wanted; None for all.
    """
    if not trials:
        return
    missing = [trial.missing()[:, :states] for trial in trials]
    sizes = [each.shape[1] for each in missing]
    rows = [trial.row for trial, size in zip(trials, sizes, strict=True) for _ in range(size)]
    amounts = -np.concatenate(missing, axis=1)
    nodes = question.snapshot.nodes
    contested = [at for at, row in enumerate(rows) if row in rivals]
    if contested:
        of_row = {
            row: nodes.amounts_of_pods(rivals[row]).sum(axis=1)
            for row in {rows[at] for at in contested}
        }
        more = np.stack([of_row[rows[at]] for at in contested], axis=1)
        amounts = np.hstack((amounts, amounts[:, contested] + more))
    what_if = nodes.take(np.array(rows + [rows[at] for at in contested], np.intp))
    what_if.add_amounts(amounts)
    found = question.handle.filter_rows(cycle, question.pod, what_if)
    index = found.index[: len(rows)]
    if contested:
        with_rivals = found.index[len(rows) :]
        index = index.copy()
        index[contested] = np.where(with_rivals, with_rivals, index[contested])
    first = 0
    for trial, size in zip(trials, sizes, strict=True):
        yield trial, NodeToStatus(index[first : first + size], found.statuses)
        first += size
