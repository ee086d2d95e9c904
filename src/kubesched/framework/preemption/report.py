"""PreemptionReport: which nodes a preemption tried, its choice, and the plugin's result.

A candidate is a node where evicting some pods makes room; the one where that does least harm is
chosen.

Upstream: pkg/scheduler/framework/preemption/types.go; preemption.go, Preempt,
          pickOneNodeForPreemption (v1.36)
Differs:  among equal candidates the first by name is chosen; upstream takes the first in map order,
          which is arbitrary.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import StrEnum
from functools import cached_property
from typing import Final, Self

import msgspec
import numpy as np
from numpy.typing import NDArray

from kubesched.api.field_errors import aggregate
from kubesched.framework.diagnosis import Diagnosis
from kubesched.framework.plugin import PostFilterResult
from kubesched.framework.preemption.eligibility import start_time_nanoseconds
from kubesched.framework.status import (
    SUCCESS,
    Code,
    NodeToStatus,
    Status,
    failure,
    unresolvable,
    unschedulable,
)
from kubesched.snapshot.pod_info import PodInfo

_NOT_HELPFUL: Final = unresolvable("Preemption is not helpful for scheduling")
_NOTHING: Final = np.empty(0, np.object_)
_NO_ROWS: Final = np.empty(0, np.intp)
_PRIORITY_OFFSET: Final = 1 << 31
"""Makes every priority non-negative, so that each further victim increases the sum."""


class Candidate(msgspec.Struct, frozen=True):
    """A node and the pods to evict there.

    Attributes:
        node_name: The node.
        victims: The pods to evict, the most important first; at least one.
        pdb_violations: How many victims a PodDisruptionBudget protects.
    """

    node_name: str
    victims: tuple[PodInfo, ...]
    pdb_violations: int = 0

    @property
    def costs(self) -> tuple[int, ...]:
        """What evicting costs: one number for each of `CRITERIA` but the name."""
        priorities = [victim.priority for victim in self.victims]
        highest = max(priorities)
        started = min(
            start_time_nanoseconds(victim) for victim in self.victims if victim.priority == highest
        )
        return (
            self.pdb_violations,
            priorities[0],
            sum(priorities) + len(priorities) * _PRIORITY_OFFSET,
            len(priorities),
            -started,
        )


class Criterion(StrEnum):
    """The criteria, in the order in which they are applied."""

    ONLY_CANDIDATE = "only candidate"
    PDB_VIOLATIONS = "fewest PodDisruptionBudget violations"
    HIGHEST_PRIORITY = "lowest priority of the most important victim"
    PRIORITY_SUM = "smallest sum of the victims' priorities"
    VICTIM_COUNT = "fewest victims"
    START_TIME = "latest start of the most important victims"
    NAME = "first in name order"


CRITERIA: Final = tuple(Criterion)[1:]
"""Those of `Candidate.costs`, in the same order, and the rank of the node's name."""


def select_candidate(
    candidates: NDArray[np.object_], costs: NDArray[np.int64]
) -> tuple[Candidate | None, NDArray[np.object_], Criterion | None]:
    """Choose a candidate; costs have the shape `CRITERIA` x candidates.

    Returns the choice, the candidates that tie with it after all criteria but the name, and the
    last criterion that excluded others; None, nothing and None if there is no candidate.
    """
    if not len(candidates):
        return None, candidates, None
    ties = np.arange(len(candidates))
    decided_by = Criterion.ONLY_CANDIDATE
    # Most criteria are equal for all candidates.
    differing = costs[:-1].min(axis=1) < costs[:-1].max(axis=1)
    for at in np.flatnonzero(differing).tolist():
        its = costs[at, ties]
        least = np.flatnonzero(its == its.min())
        if len(least) < len(ties):
            ties, decided_by = ties[least], CRITERIA[at]
    if len(ties) > 1:
        decided_by = Criterion.NAME
    return candidates[ties[costs[-1, ties].argmin()]], candidates[ties], decided_by


def costs_of(candidates: Sequence[Candidate]) -> NDArray[np.int64]:
    """Return the costs of candidates, `CRITERIA` x candidates."""
    names = sorted({candidate.node_name for candidate in candidates})
    rank = {name: at for at, name in enumerate(names)}
    costs = [(*candidate.costs, rank[candidate.node_name]) for candidate in candidates]
    return np.array(costs, np.int64).reshape(-1, len(CRITERIA)).T


class PreemptionReport(msgspec.Struct, frozen=True, eq=False, dict=True):
    """How a preemption was decided.

    Attributes:
        kept: Nodes where evicting helps, those that violate no budget first: an array of
            `Candidate`.
        choice: The chosen candidate; None if there is none.
        ties: The candidates that tie after all criteria but the name, the choice among them.
        decided_by: The last criterion that excluded other candidates; None if there are none.
        others: Why the other nodes tried are not candidates: an array of `Status`, or one
            rejection for all.
        other_rows: The rows of these nodes.
        names: The node names per row of the table.
        reason: Why the pod may not preempt others, or "".
        narrowed: Whether extenders have filtered the candidates.
    """

    kept: NDArray[np.object_] = _NOTHING
    choice: Candidate | None = None
    ties: NDArray[np.object_] = _NOTHING
    decided_by: Criterion | None = None
    others: NDArray[np.object_] | Status = _NOTHING
    other_rows: NDArray[np.intp] = _NO_ROWS
    names: Sequence[str] = ()
    reason: str = ""
    narrowed: bool = False

    def narrowed_to(self, candidates: Sequence[Candidate]) -> Self:
        """Choose again among the candidates that extenders returned, perhaps with other victims."""
        kept = np.empty(len(candidates), np.object_)
        kept[:] = candidates
        choice, ties, decided_by = select_candidate(kept, costs_of(candidates))
        return msgspec.structs.replace(
            self, kept=kept, choice=choice, ties=ties, decided_by=decided_by, narrowed=True
        )

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
        return tuple(sorted(candidate.node_name for candidate in self.ties.tolist()))

    @property
    def chosen(self) -> str:
        """The chosen node, the first of `best`; empty if there is no candidate."""
        return "" if self.choice is None else self.choice.node_name

    def result(self, num_all_nodes: int) -> PostFilterResult:
        """Return the result of DefaultPreemption's post_filter."""
        if self.choice is not None:
            return PostFilterResult(SUCCESS, self.choice.node_name, self.choice.victims, self)
        if self.reason:
            return self._rejection(self.reason)
        if self.narrowed:
            return self._rejection("no candidate node for preemption")
        if not num_all_nodes:
            return self._failure("no nodes available")
        found = self._other_statuses()
        errors = [status.message for status, _ in found.counts if status.code is Code.ERROR]
        if errors:
            return self._failure(aggregate(errors))
        text = Diagnosis.of_filter((), found, _NOT_HELPFUL).fit_error(num_all_nodes)
        # Evicting does not help on the nominated node either, so the nomination is cleared.
        return msgspec.structs.replace(self._rejection(text), nominated_node_name="")

    def _other_statuses(self) -> NodeToStatus:
        if isinstance(self.others, Status):
            return NodeToStatus.everywhere(len(self.other_rows), self.others)
        statuses = self.others.tolist()
        if statuses and statuses.count(statuses[0]) == len(statuses):
            # Thousands of nodes without a victim share one status.
            return NodeToStatus.everywhere(len(statuses), statuses[0])
        return NodeToStatus.of(statuses)

    def _rejection(self, text: str) -> PostFilterResult:
        return PostFilterResult(unschedulable(f"preemption: {text}"), details=self)

    def _failure(self, text: str) -> PostFilterResult:
        return PostFilterResult(failure(f"preemption: {text}"), details=self)
