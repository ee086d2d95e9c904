"""Candidates: nodes where evicting some pods makes room, and the one where that does least harm.

Upstream: pkg/scheduler/framework/preemption/types.go,
          pkg/scheduler/framework/preemption/preemption.go, pickOneNodeForPreemption (v1.36)
Differs:  among equal candidates the first by name is chosen; upstream takes the first in map order,
          which is arbitrary.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from functools import cached_property
from typing import Final

import msgspec

from kubesched.framework.preemption.importance import start_time_nanoseconds
from kubesched.snapshot.pod_info import PodInfo

_PRIORITY_OFFSET: Final = 1 << 31
"""Makes every priority non-negative, so that each further victim increases the sum."""


class Candidate(msgspec.Struct, frozen=True, dict=True):
    """A node and the pods to evict there.

    Attributes:
        node_name: The node.
        victims: The pods to evict, the most important first; at least one.
        pdb_violations: How many victims a PodDisruptionBudget protects.
    """

    node_name: str
    victims: tuple[PodInfo, ...]
    pdb_violations: int = 0

    @cached_property
    def costs(self) -> tuple[int, int, int, int, int]:
        """What evicting costs, the most important criterion first; see `Criterion`."""
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
    costs = [candidate.costs for candidate in candidates]
    least = min(costs)
    pairs = zip(candidates, costs, strict=True)
    left = sorted([each for each, its in pairs if its == least], key=lambda each: each.node_name)
    best = tuple(candidate.node_name for candidate in left)
    return CandidateChoice(left[0], best, _decider(costs, least, len(left)))


def _decider(costs: Sequence[tuple[int, ...]], least: tuple[int, ...], ties: int) -> Criterion:
    """Return the criterion that left one candidate."""
    if ties > 1:
        return Criterion.NAME
    decided_by = Criterion.ONLY_CANDIDATE
    others = [its for its in costs if its != least]
    for at, criterion in enumerate(_CRITERIA):
        if not others:
            break
        others = [its for its in others if its[at] == least[at]]
        decided_by = criterion
    return decided_by


_CRITERIA: Final = (
    Criterion.PDB_VIOLATIONS,
    Criterion.HIGHEST_PRIORITY,
    Criterion.PRIORITY_SUM,
    Criterion.VICTIM_COUNT,
    Criterion.START_TIME,
)
"""Those of `Candidate.costs`, in the same order."""
