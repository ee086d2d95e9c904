"""PreemptionReport: which nodes a preemption tried, its choice, and the plugin's result.

Upstream: pkg/scheduler/framework/preemption/preemption.go, Preempt (v1.36)
Differs:  nothing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, Self

import msgspec

from kubesched.framework.diagnosis import Diagnosis
from kubesched.framework.plugin import PostFilterResult
from kubesched.framework.preemption.candidate import Candidate, Criterion, select_candidate
from kubesched.framework.preemption.candidates import DryRun
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


class PreemptionReport(msgspec.Struct, frozen=True):
    """How a preemption was decided.

    Attributes:
        eligible: Whether the pod may preempt others.
        reason: Why it may not.
        candidates: Nodes where evicting helps; the most important victims come first.
        best: Names of the nodes that tie after all criteria, sorted.
        chosen: The chosen node, the first of `best`; empty if there is no candidate.
        decided_by: The last criterion that excluded other candidates.
        node_statuses: Node name -> why it is not a candidate, for the other nodes tried.
        narrowed: Whether extenders have filtered the candidates.
    """

    eligible: bool
    reason: str = ""
    candidates: tuple[Candidate, ...] = ()
    best: tuple[str, ...] = ()
    chosen: str = ""
    decided_by: Criterion | None = None
    node_statuses: Mapping[str, Status] = msgspec.field(default_factory=dict)
    narrowed: bool = False

    @classmethod
    def not_eligible(cls, reason: str) -> Self:
        """Return the report for a pod that may not preempt others."""
        return cls(eligible=False, reason=reason)

    @classmethod
    def of(cls, dry_run: DryRun) -> Self:
        """Choose among the candidates of a dry run."""
        report = cls(eligible=True, node_statuses=dry_run.node_statuses)
        return report._choosing_from(dry_run.candidates)

    def narrowed_to(self, candidates: Sequence[Candidate]) -> Self:
        """Choose again among the candidates that extenders returned, perhaps with other victims."""
        return msgspec.structs.replace(self._choosing_from(candidates), narrowed=True)

    def _choosing_from(self, candidates: Sequence[Candidate]) -> Self:
        if not candidates:
            return msgspec.structs.replace(self, candidates=(), best=(), chosen="", decided_by=None)
        selection = select_candidate(candidates)
        return msgspec.structs.replace(
            self,
            candidates=tuple(candidates),
            best=selection.best,
            chosen=selection.chosen.node_name,
            decided_by=selection.decided_by,
        )

    @property
    def chosen_candidate(self) -> Candidate | None:
        """The chosen candidate, or None."""
        return next((c for c in self.candidates if c.node_name == self.chosen), None)


def post_filter_result(report: PreemptionReport, num_all_nodes: int) -> PostFilterResult:
    """Return the result of post_filter; the plugin adds its prefix to the message.

    Args:
        report: The decision.
        num_all_nodes: How many nodes the cluster has.
    """
    if not report.eligible:
        return PostFilterResult(unschedulable(report.reason), details=report)
    candidate = report.chosen_candidate
    if candidate is not None:
        return PostFilterResult(SUCCESS, candidate.node_name, candidate.victims, report)
    if report.narrowed:
        return PostFilterResult(unschedulable(_NONE_ALLOWED), details=report)
    if not num_all_nodes:
        return PostFilterResult(failure("no nodes available"), details=report)
    errors = [s.message for s in report.node_statuses.values() if s.code is Code.ERROR]
    if errors:
        return PostFilterResult(failure(_aggregate(errors)), details=report)
    # Evicting does not help on the nominated node either, so the nomination is cleared.
    text = no_candidates_text(report.node_statuses, num_all_nodes)
    return PostFilterResult(unschedulable(text), nominated_node_name="", details=report)


def no_candidates_text(node_statuses: Mapping[str, Status], num_all_nodes: int) -> str:
    """Return the message that evicting helps on no node.

    Args:
        node_statuses: Node name -> why it is not a candidate, for the nodes tried.
        num_all_nodes: How many nodes the cluster has.
    """
    statuses = list(node_statuses.values())
    first = statuses[0] if statuses else _NOT_HELPFUL
    # Thousands of nodes without a victim share one status.
    if all(status is first for status in statuses):
        encoded = NodeToStatus.everywhere(len(statuses), first)
    else:
        encoded = NodeToStatus.of(statuses)
    return Diagnosis.of_filter(tuple(node_statuses), encoded, _NOT_HELPFUL).fit_error(num_all_nodes)


def _aggregate(errors: Sequence[str]) -> str:
    """Join errors as upstream: each text once, in brackets if there are several."""
    distinct = list(dict.fromkeys(errors))
    return distinct[0] if len(distinct) == 1 else f"[{', '.join(distinct)}]"
