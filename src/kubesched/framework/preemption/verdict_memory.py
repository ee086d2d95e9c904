"""VerdictMemory keeps the verdicts on nodes for preemptors of one template.

Preemptors come from templates, and evicting pods or placing one changes one node. A verdict depends
on the preemptor's template, the node, its pods, its nominations, and the disruption budgets.

Upstream: nothing like it; the decisions are those of pkg/scheduler/framework/preemption (v1.36)
Invariants: a kept verdict equals a computed one. It is valid while the stamp, the version of its
            row and the nominations to it are unchanged, and each budget protects as many of its
            pods; failures are not kept. All templates together keep at most `_ROWS_MAX` verdicts.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping, Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from kubesched.framework.preemption.budgets import BudgetKey, DisruptionBudgets
from kubesched.framework.preemption.eligibility import lower_priority_pods
from kubesched.framework.preemption.report import CRITERIA, Candidate
from kubesched.framework.preemption.victim_sums import (
    KnownSums,
    Screening,
    rows_of_sums,
    select_victims_by_sums,
)
from kubesched.framework.preemption.victims import (
    NO_VICTIMS,
    Question,
    Verdict,
    select_victims_on_node,
    select_victims_on_rows,
)
from kubesched.framework.status import Status
from kubesched.snapshot.node_columns import NodeColumns
from kubesched.snapshot.nominator import ChangedNominations
from kubesched.snapshot.pod_info import PodInfo, PodTemplate

_ROWS_MAX: Final = 1 << 18
FEW_ROWS: Final = 16
"""Up to this number of rows, screening takes longer than it saves."""
_UNKNOWN: Final = -1
_NO_CANDIDATE: Final = (-1,) * (len(CRITERIA) - 1)
_NO_ROWS: Final[Mapping[int, int]] = {}


class Verdicts:
    """The verdicts on the rows of a table for preemptors of one template.

    Attributes:
        found: The last verdict per row, a `Verdict`.
        costs: What evicting costs, int64, `CRITERIA` x rows; apart from the name's rank -1 where
            the row is not a candidate, or is unknown.
    """

    def __init__(
        self,
        nodes: NodeColumns,
        budgets: DisruptionBudgets,
        screening: Screening,
        stamp: object = None,
    ) -> None:
        rows = len(nodes)
        self.found: NDArray[np.object_] = np.full(rows, NO_VICTIMS, np.object_)
        self.costs = np.full((len(CRITERIA), rows), -1, np.int64)
        self.costs[-1] = nodes.name_ranks
        self._stamp = stamp
        self._budgets = budgets
        self._screening = screening
        # The versions of the rows when they were judged.
        self._versions = np.full(rows, _UNKNOWN, np.int64)
        self._failed: list[int] = []
        self._nominated = ChangedNominations()
        # The pods that the preemptor must not displace, by the row they are nominated to.
        self._contested: dict[int, list[PodInfo]] = {}
        self._sums = KnownSums(rows)
        # Budget -> row -> number of its pods there, for the rows that were judged.
        self._protected: dict[BudgetKey, dict[int, int]] = {}

    def renew(self, question: Question, stamp: object) -> bool:
        """Forget the verdicts that changed budgets affect; return False if all are affected."""
        changed = question.budgets.changed_since(self._budgets)
        if changed is None or stamp != self._stamp:
            return False
        before, now = self._budgets, question.budgets
        self._budgets = now
        for key in changed:
            rows = self._protected.get(key, _NO_ROWS)
            # Rows mostly have equal numbers of a budget's pods.
            numbers = {
                pods
                for pods in set(rows.values())
                if before.protection(key, pods) != now.protection(key, pods)
            }
            if numbers:
                affected = [row for row, pods in rows.items() if pods in numbers]
                self._versions[affected] = _UNKNOWN
        return True

    def unknown(self, nodes: NodeColumns, rows: NDArray[np.intp]) -> NDArray[np.intp]:
        """Return those of `rows` whose verdicts are not known."""
        versions = np.frombuffer(nodes.row_versions, np.int64)
        is_unknown = np.not_equal(self._versions, versions)
        return rows[is_unknown[rows]]

    def judge(self, question: Question, rows: NDArray[np.intp]) -> None:
        """Judge rows whose verdicts are not known."""
        nodes = question.snapshot.nodes
        # Copied: a view in the traceback of an error would keep the table from growing.
        versions = np.frombuffer(nodes.row_versions, np.int64)[rows]
        found = self._select_victims(question, rows.tolist())
        self.put(rows, found)
        self._versions[rows] = versions
        for row, verdict in zip(rows.tolist(), found, strict=True):
            if isinstance(verdict, Status) and not verdict.is_rejected:
                self._failed.append(row)
            if self._budgets and isinstance(verdict, Candidate):
                potential = lower_priority_pods(question.pod, nodes, row)
                for key, pods in self._budgets.count(potential).items():
                    self._protected.setdefault(key, {})[row] = pods

    def _select_victims(self, question: Question, rows: list[int]) -> list[Verdict]:
        found: dict[int, Verdict] = {}
        remaining = rows
        if len(rows) > FEW_ROWS:
            uncontested = [row for row in rows if row not in self._contested]
            found |= self._screening.reject(question, uncontested)
            remaining = [row for row in rows if row not in found]
        by_sums = rows_of_sums(question, remaining, self._contested)
        found |= select_victims_by_sums(question, by_sums, self._contested, self._sums)
        if question.rows_are_independent:
            together = [row for row in remaining if row not in found and row not in self._contested]
            found |= select_victims_on_rows(question, together)
        return [
            found[row] if row in found else select_victims_on_node(question, row) for row in rows
        ]

    def put(self, rows: NDArray[np.intp], found: Sequence[Verdict]) -> None:
        """Write verdicts into the columns."""
        costs = [each.costs if isinstance(each, Candidate) else _NO_CANDIDATE for each in found]
        self.costs[:-1, rows] = np.array(costs, np.int64).reshape(-1, len(_NO_CANDIDATE)).T
        self.found[rows] = found

    def begin(self, question: Question) -> None:
        """Forget failures, and the verdicts on rows whose nominated pods have changed."""
        self._versions[self._failed] = _UNKNOWN
        self._failed.clear()
        nominated, nodes = question.snapshot.nominated, question.snapshot.nodes
        names = self._nominated.read(nominated, question.pod.uid)
        if names is None:
            names = [*nominated.by_node, *(nodes.names[row] for row in self._contested)]
        for name in dict.fromkeys(names):
            row = nodes.row_of.get(name)
            if row is None:
                continue
            rivals = nominated.ahead_of(question.pod, name)
            if rivals != self._contested.pop(row, []):
                self._versions[row] = _UNKNOWN
            if rivals:
                self._contested[row] = rivals


class VerdictMemory:
    """The verdicts of one plugin."""

    def __init__(self) -> None:
        self._screening = Screening()
        self._known: OrderedDict[tuple[PodTemplate, str], Verdicts] = OrderedDict()

    def about(self, question: Question) -> Verdicts:
        """Return what is known for the preemptor: nothing if its verdicts cannot be kept."""
        verdicts = self._recall(question)
        verdicts.begin(question)
        return verdicts

    def _recall(self, question: Question) -> Verdicts:
        pod, nodes = question.pod, question.snapshot.nodes
        if not question.verdicts_can_be_kept:
            return Verdicts(nodes, question.budgets, self._screening)
        stamp = (nodes, nodes.epoch, question.snapshot.objects, question.reads.versions)
        key = (pod.template, pod.pod.spec.node_name)
        known = self._known.get(key)
        if known is None or not known.renew(question, stamp):
            known = Verdicts(nodes, question.budgets, self._screening, stamp)
            self._known[key] = known
        self._known.move_to_end(key)
        while len(self._known) > max(1, _ROWS_MAX // max(1, len(nodes))):
            self._known.popitem(last=False)
        return known
