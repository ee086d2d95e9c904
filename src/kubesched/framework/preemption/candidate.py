"""Candidates: nodes where evicting some pods makes room, and the one where that does least harm.

Upstream: pkg/scheduler/framework/preemption/types.go,
          pkg/scheduler/framework/preemption/preemption.go, pickOneNodeForPreemption (v1.36)
Differs:  among equal candidates the first by name is chosen; upstream takes the first in map order,
          which is arbitrary.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from typing import Final

import msgspec
import numpy as np
from numpy.typing import NDArray

from kubesched.framework.preemption.importance import start_time_nanoseconds
from kubesched.snapshot.pod_info import PodInfo

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


CRITERIA: Final = (
    Criterion.PDB_VIOLATIONS,
    Criterion.HIGHEST_PRIORITY,
    Criterion.PRIORITY_SUM,
    Criterion.VICTIM_COUNT,
    Criterion.START_TIME,
    Criterion.NAME,
)
"""Those of `Candidate.costs`, in the same order, and the rank of the node's name."""


class CandidateChoice(msgspec.Struct, frozen=True, eq=False):
    """The chosen candidate and the reason.

    Attributes:
        chosen: The candidate.
        ties: The candidates that tie after all criteria but the name, the chosen one among them;
            an array of `Candidate`.
        decided_by: The last criterion that excluded other candidates.
    """

    chosen: Candidate
    ties: NDArray[np.object_]
    decided_by: Criterion

    @property
    def best(self) -> tuple[str, ...]:
        """Names of the nodes that tie, sorted; the chosen one is first."""
        return tuple(sorted(candidate.node_name for candidate in self.ties.tolist()))


def select_candidate(candidates: NDArray[np.object_], costs: NDArray[np.int64]) -> CandidateChoice:
    """Choose one of at least one candidate; costs have the shape `CRITERIA` x candidates."""
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
    chosen = ties[costs[-1, ties].argmin()]
    return CandidateChoice(candidates[chosen], candidates[ties], decided_by)


def costs_of(candidates: Sequence[Candidate]) -> NDArray[np.int64]:
    """Return the costs of candidates, `CRITERIA` x candidates."""
    names = sorted({candidate.node_name for candidate in candidates})
    rank = {name: at for at, name in enumerate(names)}
    costs = [(*candidate.costs, rank[candidate.node_name]) for candidate in candidates]
    return np.array(costs, np.int64).reshape(-1, len(CRITERIA)).T
