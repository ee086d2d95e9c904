"""Screening: nodes where the preemptor does not fit even without the pods it may preempt.

Mostly sums of requests show it: the filters are asked about all rows at once, without the requests
of pods of lower priority.

Upstream: pkg/scheduler/framework/plugins/defaultpreemption, SelectVictimsOnNode (v1.36)
Reads:    pods on nodes: priority, requests
Invariants: a rejection equals the verdict of `select_victims_on_node`; other rows may be rejected
            later.
Differs:  nothing.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping, Sequence
from itertools import chain
from typing import Final

import numpy as np
from numpy.typing import NDArray

from kubesched.framework.preemption.eligibility import lower_priority_pods
from kubesched.framework.preemption.victims import NO_VICTIMS, Question
from kubesched.framework.status import Status
from kubesched.snapshot.changed_rows import fitted
from kubesched.snapshot.node_columns import NodeColumns

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
            added = nodes.amounts_of_pods(list(chain.from_iterable(pods)))
            sums = np.zeros((len(added), added.shape[1] + 1), np.int64)
            np.cumsum(added, axis=1, out=sums[:, 1:])
            counts = np.array(list(map(len, pods)), np.int64)
            ends = np.cumsum(counts)
            self._amounts[:, stale] = sums[:, ends] - sums[:, ends - counts]
            self._counts[stale] = counts
            self._versions[stale] = versions[is_stale]
        return self._counts[rows], self._amounts[:, rows]


class Screening:
    """Rejects rows for preemptors of any priority."""

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
