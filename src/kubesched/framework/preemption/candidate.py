"""Candidate: a node where evicting some pods makes room for the preemptor.

Upstream: pkg/scheduler/framework/preemption/types.go (v1.36)
Differs:  nothing.
"""

from __future__ import annotations

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
        """What evicting costs, the most important criterion first; see `order.Criterion`."""
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
