"""Chooses among candidates the one where evicting does the least harm.

Upstream: pkg/scheduler/framework/preemption/preemption.go, pickOneNodeForPreemption (v1.36)
Differs:  among equal candidates the first by name is chosen; upstream takes the first in map order,
          which is arbitrary.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from enum import StrEnum
from typing import Final

import msgspec

from kubesched.framework.preemption.candidate import Candidate
from kubesched.framework.preemption.importance import start_time_nanoseconds

_PRIORITY_OFFSET: Final = 1 << 31
"""Makes every priority non-negative, so that each further victim increases the sum."""


class Criterion(StrEnum):
    """The criteria, in the order in which they are applied."""

    ONLY_CANDIDATE = "only candidate"
    PDB_VIOLATIONS = "fewest PodDisruptionBudget violations"
    HIGHEST_PRIORITY = "lowest priority of the most important victim"
    PRIORITY_SUM = "smallest sum of the victims' priorities"
    VICTIM_COUNT = "fewest victims"
    START_TIME = "latest start of the most important victims"
    NAME = "first in name order"


class CandidateChoice(msgspec.Struct, frozen=True):
    """The chosen candidate and the reason.

    Attributes:
        chosen: The candidate.
        best: Names of the nodes that tie after all criteria, sorted; the chosen one is first.
        decided_by: The last criterion that excluded other candidates.
    """

    chosen: Candidate
    best: tuple[str, ...]
    decided_by: Criterion


def select_candidate(candidates: Sequence[Candidate]) -> CandidateChoice:
    """Choose one of at least one candidate."""
    left = sorted(candidates, key=lambda candidate: candidate.node_name)
    decided_by = Criterion.ONLY_CANDIDATE
    for criterion, cost in _COSTS:
        if len(left) == 1:
            break
        left = _cheapest(left, cost)
        decided_by = criterion
    if len(left) > 1:
        decided_by = Criterion.NAME
    return CandidateChoice(left[0], tuple(candidate.node_name for candidate in left), decided_by)


def _cheapest(candidates: list[Candidate], cost: Callable[[Candidate], int]) -> list[Candidate]:
    costs = [cost(candidate) for candidate in candidates]
    least = min(costs)
    return [candidate for candidate, its in zip(candidates, costs, strict=True) if its == least]


def _pdb_violations(candidate: Candidate) -> int:
    return candidate.pdb_violations


def _highest_priority(candidate: Candidate) -> int:
    return candidate.victims[0].priority


def _priority_sum(candidate: Candidate) -> int:
    return sum(victim.priority + _PRIORITY_OFFSET for victim in candidate.victims)


def _victim_count(candidate: Candidate) -> int:
    return len(candidate.victims)


def _negative_start_time(candidate: Candidate) -> int:
    highest = max(victim.priority for victim in candidate.victims)
    return -min(
        start_time_nanoseconds(victim) for victim in candidate.victims if victim.priority == highest
    )


_COSTS: Final[tuple[tuple[Criterion, Callable[[Candidate], int]], ...]] = (
    (Criterion.PDB_VIOLATIONS, _pdb_violations),
    (Criterion.HIGHEST_PRIORITY, _highest_priority),
    (Criterion.PRIORITY_SUM, _priority_sum),
    (Criterion.VICTIM_COUNT, _victim_count),
    (Criterion.START_TIME, _negative_start_time),
)
