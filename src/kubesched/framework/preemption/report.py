"""PreemptionReport: which nodes a preemption tried, its choice, and the plugin's result.

Upstream: pkg/scheduler/framework/preemption/preemption.go, Preempt (v1.36)
Differs:  nothing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property, lru_cache
from typing import Final, Self

import msgspec
import numpy as np
from numpy.typing import NDArray

from kubesched.api.field_errors import aggregate
from kubesched.framework.diagnosis import Diagnosis
from kubesched.framework.plugin import PostFilterResult
from kubesched.framework.preemption.candidate import (
    Candidate,
    CandidateChoice,
    Criterion,
    costs_of,
    select_candidate,
)
from kubesched.framework.status import (
    SUCCESS,
    Code,
    NodeToStatus,
    Status,
    failure,
    unresolvable,
    unschedulable,
)

_NONE_ALLOWED: Final = "no candidate node for preemption"
_NOT_HELPFUL: Final = unresolvable("Preemption is not helpful for scheduling")
_NOTHING: Final = np.empty(0, np.object_)
_NO_ROWS: Final = np.empty(0, np.intp)


class PreemptionReport(msgspec.Struct, frozen=True, eq=False, dict=True):
    """How a preemption was decided.

    Attributes:
        kept: Nodes where evicting helps, those that violate no budget first: an array of
            `Candidate`.
        choice: The choice among them; None if there is no candidate.
        others: Why the other nodes tried are no candidates: an array of `Status`, or one
            rejection for all.
        other_rows: The rows of these nodes.
        names: The node names per row of the table.
        reason: Why the pod may not preempt others, or "".
        narrowed: Whether extenders have filtered the candidates.
    """

    kept: NDArray[np.object_] = _NOTHING
    choice: CandidateChoice | None = None
    others: NDArray[np.object_] | Status = _NOTHING
    other_rows: NDArray[np.intp] = _NO_ROWS
    names: Sequence[str] = ()
    reason: str = ""
    narrowed: bool = False

    def narrowed_to(self, candidates: Sequence[Candidate]) -> Self:
        """Choose again among the candidates that extenders returned, perhaps with other victims."""
        kept = np.empty(len(candidates), np.object_)
        kept[:] = candidates
        choice = select_candidate(kept, costs_of(candidates)) if candidates else None
        return msgspec.structs.replace(self, kept=kept, choice=choice, narrowed=True)

    @property
    def eligible(self) -> bool:
        """Whether the pod may preempt others."""
        return not self.reason

    @cached_property
    def candidates(self) -> tuple[Candidate, ...]:
        """Nodes where evicting helps; the most important victims come first."""
        return tuple(self.kept.tolist())

    @cached_property
    def node_statuses(self) -> Mapping[str, Status]:
        """Node name -> why it is not a candidate, for the other nodes tried."""
        whose = [self.names[row] for row in self.other_rows.tolist()]
        if isinstance(self.others, Status):
            return dict.fromkeys(whose, self.others)
        return dict(zip(whose, self.others.tolist(), strict=True))

    @property
    def best(self) -> tuple[str, ...]:
        """Names of the nodes that tie after all criteria, sorted."""
        return () if self.choice is None else self.choice.best

    @property
    def chosen(self) -> str:
        """The chosen node, the first of `best`; empty if there is no candidate."""
        return "" if self.choice is None else self.choice.chosen.node_name

    @property
    def decided_by(self) -> Criterion | None:
        """The last criterion that excluded other candidates; None if there is no candidate."""
        return None if self.choice is None else self.choice.decided_by


def post_filter_result(report: PreemptionReport, num_all_nodes: int) -> PostFilterResult:
    """Return the result of post_filter; the plugin adds its prefix to the message."""
    if report.reason:
        return PostFilterResult(unschedulable(report.reason), details=report)
    if report.choice is not None:
        candidate = report.choice.chosen
        return PostFilterResult(SUCCESS, candidate.node_name, candidate.victims, report)
    if report.narrowed:
        return PostFilterResult(unschedulable(_NONE_ALLOWED), details=report)
    if not num_all_nodes:
        return PostFilterResult(failure("no nodes available"), details=report)
    others = report.others
    if isinstance(others, Status):
        text = _text_of_one(others, len(report.other_rows), num_all_nodes)
    else:
        statuses = others.tolist()
        kinds = statuses[:1] if _are_equal(statuses) else statuses
        errors = [status.message for status in kinds if status.code is Code.ERROR]
        if errors:
            return PostFilterResult(failure(aggregate(errors)), details=report)
        text = no_candidates_text(statuses, num_all_nodes)
    # Evicting does not help on the nominated node either, so the nomination is cleared.
    return PostFilterResult(unschedulable(text), nominated_node_name="", details=report)


def no_candidates_text(statuses: Sequence[Status], num_all_nodes: int) -> str:
    """Return the message that evicting helps on no node, from the status of each node tried."""
    if _are_equal(statuses):
        return _text_of_one(statuses[0], len(statuses), num_all_nodes)
    encoded = NodeToStatus.of(statuses)
    return Diagnosis.of_filter((), encoded, _NOT_HELPFUL).fit_error(num_all_nodes)


@lru_cache(maxsize=64)
def _text_of_one(status: Status, rows: int, num_all_nodes: int) -> str:
    encoded = NodeToStatus.everywhere(rows, status)
    return Diagnosis.of_filter((), encoded, _NOT_HELPFUL).fit_error(num_all_nodes)


def _are_equal(statuses: Sequence[Status]) -> bool:
    """Whether all statuses are equal: thousands of nodes without a victim share one."""
    return bool(statuses) and statuses.count(statuses[0]) == len(statuses)
