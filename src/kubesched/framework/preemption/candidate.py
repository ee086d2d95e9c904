"""Candidate: a node where evicting some pods makes room for the preemptor.

Upstream: pkg/scheduler/framework/preemption/types.go (v1.36)
Differs:  nothing.
"""

from __future__ import annotations

import msgspec

from kubesched.snapshot.pod_info import PodInfo


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
