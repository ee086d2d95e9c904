"""VerdictMemory keeps the verdicts on nodes for preemptors of one template.

Preemptors come from templates, and evicting pods or placing one changes one node. A verdict depends
on the preemptor's template, the node and its pods, and the disruption budgets.

Upstream: nothing like it; the decisions are those of pkg/scheduler/framework/preemption (v1.36)
Invariants: a kept verdict equals a computed one. It is valid while the stamp and the version of its
            row are unchanged, and no budget of a pod on the row has another status; failures are
            not kept. All templates together keep at most
            `_ROWS_MAX` verdicts.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from kubesched.framework.preemption.budgets import BudgetKey, DisruptionBudgets
from kubesched.framework.preemption.eligibility import lower_priority_pods
from kubesched.framework.preemption.victim_rows import select_victims_on_rows
from kubesched.framework.preemption.victims import (
    NO_VICTIMS,
    Question,
    Verdict,
    select_victims_on_node,
)
from kubesched.framework.status import Status
from kubesched.snapshot.node_columns import NodeColumns
from kubesched.snapshot.pod_info import PodInfo, PodTemplate

_ROWS_MAX: Final = 1 << 18
_UNKNOWN: Final = -1


class KnownVerdicts:
    """The verdicts for one template; `versions` are those of the rows when they were judged.

    Verdicts on rows with nominated pods are kept apart, because they also depend on these.
    """

    __slots__ = ("_budgets", "_contested", "_protected", "stamp", "verdicts", "versions")

    def __init__(self, stamp: tuple[object, ...], rows: int, budgets: DisruptionBudgets) -> None:
        self.stamp = stamp
        self._budgets = budgets
        # The rows that were judged with pods of each budget.
        self._protected: dict[BudgetKey, set[int]] = {}
        self.versions: NDArray[np.int64] = np.full(rows, _UNKNOWN, np.int64)
        self.verdicts: list[Verdict] = [NO_VICTIMS] * rows
        self._contested: dict[int, tuple[int, list[PodInfo], Verdict]] = {}

    def look_at(self, budgets: DisruptionBudgets) -> bool:
        """Forget the verdicts that changed budgets affect; return False if all are affected."""
        if budgets is self._budgets:
            return True
        changed = budgets.changed_since(self._budgets)
        if changed is None:
            return False
        self._budgets = budgets
        for key in changed:
            rows = self._protected.pop(key, None)
            if rows:
                self.versions[list(rows)] = _UNKNOWN
        if changed:
            self._contested.clear()
        return True

    def judge(self, question: Question, rows: Sequence[int]) -> list[Verdict]:
        """Return the verdicts on rows, computing only those that are not known."""
        at = np.array(rows, np.intp)
        versions = np.frombuffer(question.snapshot.nodes.row_versions, np.int64)
        unknown = at[self.versions[at] != versions[at]].tolist()
        found = select_victims_on_rows(question, unknown)
        for row, verdict in zip(unknown, found, strict=True):
            self.verdicts[row] = verdict
            self.versions[row] = _UNKNOWN if _is_failure(verdict) else versions[row]
            for pod in lower_priority_pods(question.pod, question.snapshot.nodes, row):
                for key in self._budgets.selected.budgets_about(pod):
                    self._protected.setdefault(key, set()).add(row)
        return [self.verdicts[row] for row in rows]

    def judge_contested(self, question: Question, row: int, rivals: list[PodInfo]) -> Verdict:
        """Return the verdict on a row to which `rivals` are nominated."""
        version = question.snapshot.nodes.row_versions[row]
        known = self._contested.get(row)
        if known is not None and known[0] == version and known[1] == rivals:
            return known[2]
        verdict = select_victims_on_node(question, row)
        if not _is_failure(verdict):
            self._contested[row] = version, rivals, verdict
        return verdict


def _is_failure(verdict: Verdict) -> bool:
    return isinstance(verdict, Status) and not verdict.is_rejected


class VerdictMemory:
    """The verdicts of one plugin."""

    def __init__(self) -> None:
        self._known: OrderedDict[tuple[PodTemplate, str], KnownVerdicts] = OrderedDict()

    def about(self, question: Question) -> KnownVerdicts | None:
        """Return what is known for the preemptor; None if its verdicts cannot be kept."""
        pod, nodes = question.pod, question.snapshot.nodes
        filters = question.handle.stamp_of_filters(question.cycle, pod)
        if filters is None:
            return None
        stamp = (nodes, nodes.epoch, question.snapshot.objects, filters)
        key = (pod.template, pod.pod.spec.node_name)
        known = self._known.get(key)
        if known is None or known.stamp != stamp or not known.look_at(question.budgets):
            known = self._known[key] = KnownVerdicts(stamp, len(nodes), question.budgets)
        self._known.move_to_end(key)
        self._bound(nodes)
        return known

    def _bound(self, nodes: NodeColumns) -> None:
        while len(self._known) > max(1, _ROWS_MAX // max(1, len(nodes))):
            self._known.popitem(last=False)
