"""Rewards of `SchedulingEnv`: functions of the cluster, the pod and the node it went to.

A reward is called once per pod, after the pod was placed; row is `UNPLACED` if it was not.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from kubesched.simulator.cluster import ClusterState
from kubesched.snapshot.node_table import CPU, MEMORY
from kubesched.snapshot.pod_info import PodInfo

UNPLACED: Final = -1
"""The row of a pod that was placed on no node."""

Reward = Callable[[ClusterState, PodInfo, int], float]


def packing(cluster: ClusterState, _pod: PodInfo, row: int) -> float:
    """Return how full the node is, 0 to 1, by the fuller of cpu and memory; -1 for no node."""
    if row == UNPLACED:
        return -1.0
    return max(_shares(cluster, row))


def balance(cluster: ClusterState, _pod: PodInfo, row: int) -> float:
    """Return 1 for equal shares of cpu and memory in use, less otherwise; -1 for no node."""
    if row == UNPLACED:
        return -1.0
    cpu, memory = _shares(cluster, row)
    return 1.0 - abs(cpu - memory)


def _shares(cluster: ClusterState, row: int) -> tuple[float, float]:
    nodes = cluster.cache.nodes
    cpu, memory = (
        float(nodes.requested[at, row]) / max(1.0, float(nodes.allocatable[at, row]))
        for at in (CPU, MEMORY)
    )
    return cpu, memory
