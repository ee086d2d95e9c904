"""The report on a preemption: what was tried, what was chosen and why, and what is to be done.

Upstream: pkg/scheduler/framework/preemption/preemption.go, Preempt (v1.36)
Differs:  nothing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, Self

import msgspec

from kubesched.framework.diagnosis import Diagnosis
from kubesched.framework.plugin import PostFilterResult
from kubesched.framework.preemption.candidate import Candidate
from kubesched.framework.preemption.candidates import DryRun
from kubesched.framework.preemption.order import Criterion, select_candidate
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
        reason: Why not.
        candidates: Nodes where evicting helps, with the victims in order of falling importance.
        best: Names of the nodes that tie after every criterion, sorted.
        chosen: The node chosen, the first of `best`; empty if there is no candidate.
        decided_by: The criterion that left the chosen one over.
        node_statuses: Node name -> why it is no candidate, for the other nodes tried.
        narrowed: Whether extenders were asked which candidates they allow.
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
        """The pod may not preempt others."""
        return cls(eligible=False, reason=reason)

    @classmethod
    def of(cls, dry_run: DryRun) -> Self:
        """Choose among what the dry run found."""
        report = cls(eligible=True, node_statuses=dry_run.node_statuses)
        return report._choosing_from(dry_run.candidates)

    def narrowed_to(self, candidates: Sequence[Candidate]) -> Self:
        """Choose anew among what extenders leave; they may also have changed the victims."""
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
        """The candidate chosen; None if there is none."""
        return next((c for c in self.candidates if c.node_name == self.chosen), None)


def post_filter_result(report: PreemptionReport, num_all_nodes: int) -> PostFilterResult:
    """Return what the decision asks for, without the plugin's prefix to its message.

    Args:
        report: The decision.
        num_all_nodes: How many nodes there are.
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
    # Nothing is left to wait for on the nominated node, so the nomination goes.
    text = no_candidates_text(report.node_statuses, num_all_nodes)
    return PostFilterResult(unschedulable(text), nominated_node_name="", details=report)


def no_candidates_text(node_statuses: Mapping[str, Status], num_all_nodes: int) -> str:
    """Return why evicting helps nowhere.

    Args:
        node_statuses: Node name -> why it is no candidate, for the nodes tried.
        num_all_nodes: How many nodes there are.
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
    """Join errors as upstream does: each text once, in brackets if there are several."""
    distinct = list(dict.fromkeys(errors))
    return distinct[0] if len(distinct) == 1 else f"[{', '.join(distinct)}]"
