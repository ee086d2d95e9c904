"""Victims on many nodes at once, if filters read only Node objects and sums of requests.

A call of the filters tries all rows without their pods of lower priority, with the first of them
that may return, with the first two, and so on. The first pod that makes a row too small is a
victim, and the pods after it are tried in the next call. So the number of calls depends on the
number of victims, and not on the number of rows and pods. Rows with equal amounts share the
outcome.

Upstream: pkg/scheduler/framework/plugins/defaultpreemption, SelectVictimsOnNode (v1.36)
Reads:    pods on nodes: priority, requests
Invariants: the verdicts equal those of `select_victims_on_node` row by row; screening gives some of
            them.
Differs:  nothing.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable, Mapping, Sequence
from itertools import chain
from typing import Final, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from kubesched.framework.cycle_state import CycleState
from kubesched.framework.plugin import OF_SUMS, Scope
from kubesched.framework.preemption.eligibility import by_importance, lower_priority_pods
from kubesched.framework.preemption.victims import NO_VICTIMS, Question, Verdict, verdict
from kubesched.framework.status import NodeToStatus, Status
from kubesched.snapshot.changes import fitted
from kubesched.snapshot.node_columns import NodeColumns
from kubesched.snapshot.pod_info import PodInfo

Rivals: TypeAlias = Mapping[int, Sequence[PodInfo]]
"""Row -> the pods nominated to it that the preemptor must not displace."""
_Amounts: TypeAlias = tuple[Hashable, tuple[Hashable, ...], tuple[Hashable, ...]]
"""The amounts of a row, of its pods in the order in which they may return, and of rivals."""
_Outcome: TypeAlias = "Status | tuple[int, ...]"
"""Why the preemptor does not fit even without these pods, or which of them cannot return."""

_OUTCOMES_MAX: Final = 512
_ALL_RETURN: Final = np.iinfo(np.int64).max
"""Instead of the first state that does not fit."""


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
) -> dict[int, Verdict]:
    """Return the verdict on each of `rows`, which must be `rows_of_sums`.

    `rivals` are the pods that are nominated to rows; `known` is what earlier calls found, and is
    updated.
    """
    verdicts: dict[int, Verdict] = dict.fromkeys(rows, NO_VICTIMS)
    trials = _trials(question, rows, rivals)
    fits, outcomes = known.fits_node, known.outcomes
    if not OF_SUMS.issuperset(question.reads.scopes.values()):
        # A filter that reads more may reject the node because of a pod that stays.
        fits[list(rows)] = False
    tried = [each for each in trials if not (fits.item(each.row) and each.key in outcomes)]
    found_now: dict[_Amounts, _Outcome] = {}
    if tried:
        columns = _Columns(question, tried)
        new = [at for at, each in enumerate(tried) if not fits.item(each.row)]
        for at, status in zip(new, columns.without_pods(new), strict=True):
            fits[tried[at].row] = status.is_success
            if not status.is_success:
                verdicts[tried[at].row] = status
                question.handle.count_filters(question.cycle, 1, status.plugin)
        unknown = {
            each.key: at
            for at, each in enumerate(tried)
            if fits.item(each.row) and each.key not in outcomes
        }
        found_now = dict(zip(unknown, columns.outcomes(list(unknown.values())), strict=True))
    passes = rejections = 0
    for trial in trials:
        if not fits.item(trial.row):
            continue
        outcome = found_now[trial.key] if trial.key in found_now else outcomes[trial.key]
        if isinstance(outcome, Status):
            verdicts[trial.row] = outcome
            question.handle.count_filters(question.cycle, 1, outcome.plugin)
        else:
            # Without all pods of lower priority, and with each that may return.
            passes += 1 + len(trial.pods) - len(outcome)
            rejections += len(outcome)
            name = question.snapshot.nodes.names[trial.row]
            evicted = [trial.pods[at] for at in outcome]
            verdicts[trial.row] = verdict(name, trial.pods, evicted, trial.violating)
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


class _Trial(NamedTuple):
    """A row, and its pods of lower priority.

    Attributes:
        row: The row.
        violating: The pods that a disruption budget protects.
        pods: All pods in the order in which they may return.
        rivals: The nominated pods that must not be displaced.
        key: The amounts of the row and of all these pods.
    """

    row: int
    violating: list[PodInfo]
    pods: list[PodInfo]
    rivals: Sequence[PodInfo]
    key: _Amounts


def _trials(question: Question, rows: Sequence[int], rivals: Rivals) -> list[_Trial]:
    """Return a trial for each row that has pods of lower priority."""
    nodes = question.snapshot.nodes
    trials: list[_Trial] = []
    for row in rows:
        potential = lower_priority_pods(question.pod, nodes, row)
        if potential:
            violating, others = question.budgets.split(by_importance(potential))
            pods, there = violating + others, rivals.get(row, ())
            key = (
                nodes.usage(row),
                tuple([pod.template.amounts for pod in pods]),
                tuple([pod.template.amounts for pod in there]),
            )
            trials.append(_Trial(row, violating, pods, there, key))
    return trials


class _Columns:
    """The pods of all trials, one trial after the other, as columns.

    A state of a trial is named by the first pod that is missing; all pods after it are missing too.
    """

    def __init__(self, question: Question, trials: Sequence[_Trial]) -> None:
        nodes = question.snapshot.nodes
        self._question = question
        self._rows = np.array([trial.row for trial in trials], np.intp)
        self._ends = np.cumsum([len(trial.pods) for trial in trials])
        self._firsts = np.concatenate(([0], self._ends[:-1]))
        amounts = nodes.amounts_of_pods([pod for trial in trials for pod in trial.pods])
        self._sums = _running_sums(amounts)
        is_other = (amounts[:, 1:] != amounts[:, :-1]).any(axis=0)
        self._changes = np.append(np.flatnonzero(is_other) + 1, amounts.shape[1])
        self._contested = np.array([bool(trial.rivals) for trial in trials], np.bool_)
        self._rivals = np.zeros((len(amounts), len(trials)), np.int64)
        for at in np.flatnonzero(self._contested).tolist():
            self._rivals[:, at] = nodes.amounts_of_pods(trials[at].rivals).sum(axis=1)

    def without_pods(self, which: Sequence[int]) -> list[Status]:
        """Return the status of each of these trials without all its pods."""
        if not which:
            return []
        at = np.array(which, np.intp)
        lacks = self._sums[:, self._ends[at]] - self._sums[:, self._firsts[at]]
        found = self._ask(self._question.cycle, at, lacks)
        return [found.statuses[code] for code in found.index.tolist()]

    def outcomes(self, which: Sequence[int]) -> list[_Outcome]:
        """Return what becomes of each of these trials."""
        if not which:
            return []
        question = self._question
        cycle = _skipping_node_filters(question)
        rejected: dict[int, Status] = {}
        evicted: dict[int, list[int]] = {at: [] for at in which}
        # The trials that are not decided, the first pod of each that may still return, and the
        # amounts of those that cannot.
        left = np.array(which, np.intp)
        firsts, lost = self._firsts[left], np.zeros((len(self._sums), len(left)), np.int64)
        while len(left):
            ends = self._ends[left]
            sizes = ends - firsts + 1
            begins = np.cumsum(sizes) - sizes
            owners = np.repeat(np.arange(len(left)), sizes)
            states = np.arange(len(owners)) - (begins - firsts)[owners]
            lacks = self._sums[:, ends[owners]] - self._sums[:, states] + lost[:, owners]
            found = self._ask(cycle, left[owners], lacks)
            stops = np.minimum.reduceat(np.where(found.passed, _ALL_RETURN, states), begins)
            for at in np.flatnonzero(stops == firsts).tolist():
                rejected[left.item(at)] = found[begins.item(at)]
            # The last pod that has returned is one too many. It leaves, and so do the next ones of
            # equal amounts, which could not return either.
            is_lacking = (stops > firsts) & (stops < _ALL_RETURN)
            left, ends, leaving = left[is_lacking], ends[is_lacking], stops[is_lacking] - 1
            firsts = self._changes[np.searchsorted(self._changes, leaving, side="right")]
            firsts = np.minimum(firsts, ends)
            lost = lost[:, is_lacking] + self._sums[:, firsts] - self._sums[:, leaving]
            leaves = np.stack((left, leaving, firsts), axis=1).tolist()
            for at, first, end in leaves:
                evicted[at] += range(first, end)
            is_left = firsts < ends
            left, firsts, lost = left[is_left], firsts[is_left], lost[:, is_left]
        begins_at = self._firsts.tolist()
        return [
            rejected[at] if at in rejected else tuple([pod - begins_at[at] for pod in pods])
            for at, pods in evicted.items()
        ]

    def _ask(
        self, cycle: CycleState, trials: NDArray[np.intp], lacks: NDArray[np.int64]
    ) -> NodeToStatus:
        """Return the status of each trial whose row lacks these amounts, one column per trial.

        Nominated pods are there or not, whichever is worse.
        """
        question = self._question
        found = _filter(question, cycle, self._rows[trials], -lacks)
        contested = np.flatnonzero(self._contested[trials])
        if not len(contested):
            return found
        amounts = self._rivals[:, trials[contested]] - lacks[:, contested]
        # In a table of their own: filters that read Node objects may look rows up by name.
        with_rivals = _filter(question, cycle, self._rows[trials[contested]], amounts)
        worse = np.flatnonzero(with_rivals.index)
        index = found.index.copy()
        index[contested[worse]] = len(found.statuses) + with_rivals.index[worse]
        return NodeToStatus(index, (*found.statuses, *with_rivals.statuses))


def _skipping_node_filters(question: Question) -> CycleState:
    scopes = question.reads.scopes
    return question.cycle.skipping_filters(
        [name for name, scope in scopes.items() if scope is not Scope.USAGE]
    )


def _filter(
    question: Question, cycle: CycleState, rows: NDArray[np.intp], amounts: NDArray[np.int64]
) -> NodeToStatus:
    """Filter rows whose pods request these amounts more, one column per row."""
    what_if = question.snapshot.nodes.take(rows)
    what_if.add_amounts(amounts)
    return question.handle.filter_rows(cycle, question.pod, what_if, counts=False)


def _running_sums(amounts: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return what the columns before each column, and before the end, add up to."""
    sums = np.zeros((len(amounts), amounts.shape[1] + 1), np.int64)
    np.cumsum(amounts, axis=1, out=sums[:, 1:])
    return sums


# Screening: rows where the preemptor does not fit even without the pods it may preempt. Mostly sums
# of requests show it: the filters are asked about all rows at once, without the requests of pods of
# lower priority.

_ROWS_MAX: Final = 1 << 19
"""The number of rows that are kept for all priorities together."""


class LowerUsage:
    """What the pods that preemptors of one priority may preempt add to the rows of a table."""

    def __init__(self, nodes: NodeColumns) -> None:
        self._amounts = np.zeros((len(nodes.amounts_of_pods(())), 0), np.int64)
        self._counts = self._versions = np.zeros(0, np.int64)

    def of(
        self, question: Question, rows: NDArray[np.intp]
    ) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return the number of pods per row, and what they add, one column per row."""
        nodes = question.snapshot.nodes
        if len(self._versions) != len(nodes):
            self._amounts = fitted(self._amounts, nodes)
            self._counts = fitted(self._counts, nodes)
            self._versions = fitted(self._versions, nodes)
        versions = np.frombuffer(nodes.row_versions, np.int64)[rows]
        is_stale = self._versions[rows] != versions
        if is_stale.any():
            stale = rows[is_stale]
            pods = [lower_priority_pods(question.pod, nodes, row) for row in stale.tolist()]
            sums = _running_sums(nodes.amounts_of_pods(list(chain.from_iterable(pods))))
            counts = np.array(list(map(len, pods)), np.int64)
            ends = np.cumsum(counts)
            self._amounts[:, stale] = sums[:, ends] - sums[:, ends - counts]
            self._counts[stale] = counts
            self._versions[stale] = versions[is_stale]
        return self._counts[rows], self._amounts[:, rows]


class Screening:
    """Rejects rows for preemptors of any priority; not all rows that are rejected later."""

    def __init__(self) -> None:
        self._usage: OrderedDict[tuple[int, int], LowerUsage] = OrderedDict()

    def reject(self, question: Question, rows: Sequence[int]) -> Mapping[int, Status]:
        """Return the verdict on each row that is rejected for sure.

        `rows` must have no nominated pods that the preemptor must not displace.
        """
        nodes, asked = question.snapshot.nodes, question.reads.screening
        at = np.array(rows, np.intp)
        counts, amounts = self._usage_below(question).of(question, at)
        found: dict[int, Status] = dict.fromkeys(at[counts == 0].tolist(), NO_VICTIMS)
        remaining = counts > 0
        if not (any(asked.values()) and remaining.any() and question.requests_have_columns):
            return found
        at = at[remaining]
        what_if = nodes.take(at)
        what_if.add_amounts(-amounts[:, remaining])
        cycle = question.cycle.skipping_filters(question.reads.scopes.keys() - asked.keys())
        answers = question.handle.filter_rows(cycle, question.pod, what_if, counts=False)
        for index, status in enumerate(answers.statuses):
            if status.is_rejected and asked[status.plugin]:
                rejected = at[answers.index == index].tolist()
                found |= dict.fromkeys(rejected, status)
                question.handle.count_filters(question.cycle, len(rejected), status.plugin)
        return found

    def _usage_below(self, question: Question) -> LowerUsage:
        nodes = question.snapshot.nodes
        # Amounts have a row for each resource, and resources are only added.
        key = (question.pod.priority, len(nodes.resources))
        if key not in self._usage:
            self._usage[key] = LowerUsage(nodes)
            while len(self._usage) > max(1, _ROWS_MAX // len(nodes)):
                self._usage.popitem(last=False)
        self._usage.move_to_end(key)
        return self._usage[key]
