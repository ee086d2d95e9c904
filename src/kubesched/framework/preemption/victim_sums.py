"""Victims on many nodes at once, if filters read only Node objects and sums of requests.

A call of the filters tries each row without its pods of lower priority, with the first of them that
may return, with the first two, and so on. The first pod that makes the row too small is a victim,
and the pods after it are tried in the next call. So the number of calls depends on the number of
victims, and not on the number of pods. Rows with equal amounts share the outcome.

Upstream: pkg/scheduler/framework/plugins/defaultpreemption, SelectVictimsOnNode (v1.36)
Invariants: the verdicts equal those of `select_victims_on_node` row by row.
Differs:  nothing.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Sequence
from typing import Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from kubesched.framework.cycle_state import CycleState
from kubesched.framework.plugin import OF_SUMS, Scope
from kubesched.framework.preemption.eligibility import lower_priority_pods
from kubesched.framework.preemption.importance import by_importance
from kubesched.framework.preemption.victims import NO_VICTIMS, Question, Verdict, verdict
from kubesched.framework.status import NodeToStatus, Status
from kubesched.snapshot.pod_info import PodInfo

Rivals: TypeAlias = Mapping[int, Sequence[PodInfo]]
"""Row -> the pods nominated to it that the preemptor must not displace."""
_Amounts: TypeAlias = tuple[Hashable, tuple[Hashable, ...], tuple[Hashable, ...]]
"""The amounts of a row, of its pods in the order in which they may return, and of rivals."""
_Outcome: TypeAlias = "Status | tuple[int, ...]"
"""Why the preemptor does not fit even without these pods, or which of them cannot return."""

_OUTCOMES_MAX: Final = 512
_NO_AMOUNTS: Final = np.zeros((0, 1), np.int64)


def rows_of_sums(question: Question, rows: Sequence[int], rivals: Rivals) -> list[int]:
    """Return those of `rows` where filters read nothing of the pods but sums of their requests.

    The sums must have columns. A filter that reads more, such as that of topology spread, must
    ignore all pods that would come or go.
    """
    nodes, pod, scopes = question.snapshot.nodes, question.pod, question.reads.scopes
    if not question.requests_have_columns:
        return []
    reading_more = [name for name, scope in scopes.items() if scope not in OF_SUMS]
    if not reading_more and question.rows_are_independent:
        return list(rows)
    is_ignored = question.handle.ignoring(reading_more, question.cycle, pod)
    return [
        row
        for row in rows
        if all(map(is_ignored, lower_priority_pods(pod, nodes, row)))
        and all(map(is_ignored, rivals.get(row, ())))
    ]


class KnownSums:
    """What is known of a table for preemptors of one template, whose filters read only sums.

    Attributes:
        fits_node: Bool per row: whether the filters that read only the Node object are known to
            pass.
        outcomes: What becomes of rows with these amounts.
    """

    def __init__(self, rows: int) -> None:
        self.fits_node = np.zeros(rows, np.bool_)
        self.outcomes: dict[_Amounts, _Outcome] = {}

    def keep(self, outcomes: Mapping[_Amounts, _Outcome]) -> None:
        """Keep outcomes, but no failures."""
        if len(self.outcomes) > _OUTCOMES_MAX:
            self.outcomes.clear()
        for amounts, outcome in outcomes.items():
            if not isinstance(outcome, Status) or outcome.is_rejected:
                self.outcomes[amounts] = outcome


def select_victims_by_sums(
    question: Question, rows: Sequence[int], rivals: Rivals, known: KnownSums
) -> list[Verdict]:
    """Return one verdict for each of `rows`, which must be `rows_of_sums`.

    `rivals` are the pods that are nominated to rows; `known` is what earlier calls found, and is
    updated.
    """
    verdicts: list[Verdict] = [NO_VICTIMS] * len(rows)
    trials = _trials(question, rows, rivals)
    new = [trial for trial in trials if not known.fits_node.item(trial.row)]
    _measure(question, new)
    for trial, found in _try(question, question.cycle, new, states=1):
        known.fits_node[trial.row] = found.passed[0]
        verdicts[trial.place] = found[0]
        if not found.passed[0]:
            question.handle.count_filters(question.cycle, 1, found[0].plugin)
    trials = [trial for trial in trials if known.fits_node.item(trial.row)]
    unknown = {trial.key: trial for trial in trials if trial.key not in known.outcomes}
    _measure(question, list(unknown.values()))
    found_now = dict(_outcomes(question, list(unknown.values())))
    passes = rejections = 0
    for trial in trials:
        is_new = trial.key in found_now
        outcome = found_now[trial.key] if is_new else known.outcomes[trial.key]
        if isinstance(outcome, Status):
            verdicts[trial.place] = outcome
            question.handle.count_filters(question.cycle, 1, outcome.plugin)
        else:
            # Without all pods of lower priority, and with each that may return.
            passes += 1 + len(trial.pods) - len(outcome)
            rejections += len(outcome)
            name = question.snapshot.nodes.names[trial.row]
            evicted = [trial.pods[at] for at in outcome]
            verdicts[trial.place] = verdict(name, trial.pods, evicted, trial.violating)
    _count_evaluations(question, passes, rejections)
    known.keep(found_now)
    return verdicts


def _count_evaluations(question: Question, passes: int, rejections: int) -> None:
    count, cycle, scopes = question.handle.count_filters, question.cycle, question.reads.scopes
    if passes:
        count(cycle, passes)
    if rejections:
        # With several filters that read sums, it is not known which of them rejected a pod.
        count(cycle, rejections, next(n for n, scope in scopes.items() if scope is Scope.USAGE))


def _trials(question: Question, rows: Sequence[int], rivals: Rivals) -> list[_Trial]:
    """Return a trial for each row that has pods of lower priority."""
    nodes = question.snapshot.nodes
    trials: list[_Trial] = []
    for place, row in enumerate(rows):
        potential = lower_priority_pods(question.pod, nodes, row)
        if potential:
            split = question.budgets.split(by_importance(potential))
            there = rivals.get(row, ())
            trials.append(_Trial(place, row, nodes.usage(row), *split, there))
    return trials


def _measure(question: Question, trials: Sequence[_Trial]) -> None:
    """Add up the amounts of trials that need them."""
    nodes = question.snapshot.nodes
    trials = [trial for trial in trials if trial.left is _NO_AMOUNTS]
    amounts = nodes.amounts_of_pods([pod for trial in trials for pod in trial.pods])
    for trial in trials:
        count = len(trial.pods)
        trial.left, amounts = amounts[:, :count], amounts[:, count:]
        if trial.rivals:
            its = nodes.amounts_of_pods(trial.rivals)
            trial.rivals_amounts = its.sum(axis=1, keepdims=True)


def _outcomes(question: Question, trials: list[_Trial]) -> Iterator[tuple[_Amounts, _Outcome]]:
    """Yield what becomes of the amounts of each trial."""
    if not trials:
        return
    cycle = _skipping_node_filters(question)
    while trials:
        undecided: list[_Trial] = []
        for trial, found in _try(question, cycle, trials):
            if not found.passed[0]:
                yield trial.key, found[0]
            elif trial.decides_all(found.passed[1:].tolist()):
                yield trial.key, tuple(trial.evicted)
            else:
                undecided.append(trial)
        trials = undecided


class _Trial:
    """A row, and its pods of lower priority in the order in which they may return.

    Attributes:
        place: The place of the row among those in question.
        row: The row.
        violating: The pods that a disruption budget protects.
        pods: All pods.
        left: The amounts of the pods that are not decided yet, one column per pod.
        evicted: Which pods cannot return.
        evicted_amounts: The sum of their amounts, one column.
        rivals: The nominated pods that must not be displaced.
        rivals_amounts: The sum of their amounts, one column; empty without such pods.
        key: All these amounts at the start, as a key.
    """

    __slots__ = (
        "evicted",
        "evicted_amounts",
        "key",
        "left",
        "place",
        "pods",
        "rivals",
        "rivals_amounts",
        "row",
        "violating",
    )

    def __init__(
        self,
        place: int,
        row: int,
        usage: Hashable,
        violating: list[PodInfo],
        others: list[PodInfo],
        rivals: Sequence[PodInfo],
    ) -> None:
        self.place = place
        self.row = row
        self.violating = violating
        self.pods = violating + others
        self.evicted: list[int] = []
        self.evicted_amounts = np.zeros(1, np.int64)
        self.rivals = rivals
        self.left = self.rivals_amounts = _NO_AMOUNTS
        self.key: _Amounts = (
            usage,
            tuple([pod.template.amounts for pod in self.pods]),
            tuple([pod.template.amounts for pod in rivals]),
        )

    def missing(self) -> NDArray[np.int64]:
        """Return what the row lacks without the undecided pods, with one of them, with two, ..."""
        missing = np.zeros((len(self.left), self.left.shape[1] + 1), np.int64)
        np.cumsum(self.left[:, ::-1], axis=1, out=missing[:, -2::-1])
        return missing + self.evicted_amounts

    def decides_all(self, fits: list[bool]) -> bool:
        """Let pods return up to the first one with which the preemptor does not fit.

        `fits` is whether the preemptor fits with one more pod, with two more, and so on. Where this
        one cannot return, the next ones of equal amounts cannot either. Return whether all pods are
        decided.
        """
        stay = [*fits, False].index(False)
        leaving = self.left[:, stay:]
        is_equal = (leaving == leaving[:, :1]).all(axis=0).tolist()
        count = [*is_equal, False].index(False)
        first = len(self.pods) - leaving.shape[1]
        self.evicted += range(first, first + count)
        leaves = leaving[:, :count].sum(axis=1, keepdims=True)
        self.evicted_amounts = self.evicted_amounts + leaves
        self.left = leaving[:, count:]
        return not self.left.shape[1]


def _skipping_node_filters(question: Question) -> CycleState:
    scopes = question.reads.scopes
    return question.cycle.skipping_filters(
        [name for name, scope in scopes.items() if scope is not Scope.USAGE]
    )


def _try(
    question: Question, cycle: CycleState, trials: Sequence[_Trial], states: int | None = None
) -> Iterator[tuple[_Trial, NodeToStatus]]:
    """Yield each trial with the statuses of its row without the undecided pods, with one, ...

    Nominated pods are there or not, whichever is worse. `states` is how many of these statuses are
    wanted, None for all.
    """
    if not trials:
        return
    missing = [trial.missing()[:, :states] for trial in trials]
    sizes = [each.shape[1] for each in missing]
    rows = np.repeat([trial.row for trial in trials], sizes)
    amounts = -np.concatenate(missing, axis=1)
    found = _filter(question, cycle, rows, amounts)
    index, statuses = found.index.copy(), found.statuses
    contested = np.flatnonzero(
        np.repeat([trial.rivals_amounts.size > 0 for trial in trials], sizes)
    )
    if len(contested):
        more = [
            np.repeat(trial.rivals_amounts, size, axis=1)
            for trial, size in zip(trials, sizes, strict=True)
            if trial.rivals_amounts.size
        ]
        # In a table of their own: filters that read Node objects may look rows up by name.
        amounts = amounts[:, contested] + np.hstack(more)
        with_rivals = _filter(question, cycle, rows[contested], amounts)
        worse = np.flatnonzero(with_rivals.index)
        index[contested[worse]] = len(statuses) + with_rivals.index[worse]
        statuses = (*statuses, *with_rivals.statuses)
    first = 0
    for trial, size in zip(trials, sizes, strict=True):
        yield trial, NodeToStatus(index[first : first + size], statuses)
        first += size


def _filter(
    question: Question, cycle: CycleState, rows: NDArray[np.intp], amounts: NDArray[np.int64]
) -> NodeToStatus:
    """Filter rows whose pods request these amounts more, one column per row."""
    what_if = question.snapshot.nodes.take(rows)
    what_if.add_amounts(amounts)
    return question.handle.filter_rows(cycle, question.pod, what_if, counts=False)
