"""The policies that the paper compares with: random, dot product, clustering, packing, best fit.

Upstream: as in the simulator of the paper, see `fgd`; scores are cut to integers
Differs:  BestFit does not stretch its scores to 0..100, which would not change their order.
"""

from abc import abstractmethod
from collections.abc import Sequence
from random import Random
from typing import ClassVar, Final

import numpy as np
from gpu_sharing import WHOLE, Gpus, GpuSharing, GpusOfRow, Milli, Request, request_of
from numpy.typing import NDArray

from kubesched.framework import (
    CycleState,
    Handle,
    NodeTable,
    PluginArgs,
    PodInfo,
    PreScorePlugin,
    PreScoreResult,
    Scope,
    Snapshot,
)

Numbers = NDArray[np.float64] | NDArray[np.int64] | float
CPU_MAX: Final = 128_000
"""The largest node's milli cpu, by which all are measured."""
GPU_MAX: Final = 8 * WHOLE
"""The largest node's GPUs."""


class RandomNodeArgs(PluginArgs, frozen=True, kw_only=True):
    """The seed of nodes and devices."""

    seed: int = 0


class RandomNode(GpuSharing, PreScorePlugin[str]):
    """Any node that the pod fits, and any device."""

    name: ClassVar = "RandomNode"
    args_type: ClassVar = RandomNodeArgs
    score_scope: ClassVar = Scope.CLUSTER

    def __init__(self, args: RandomNodeArgs, handle: Handle) -> None:
        super().__init__(args, handle)
        self._random = Random(args.seed)  # noqa: S311 - a seeded run, no secret

    def pre_score(
        self, cycle: CycleState, pod: PodInfo, snapshot: Snapshot, feasible: NDArray[np.bool_]
    ) -> PreScoreResult[str]:
        """Draw a node."""
        rows = np.flatnonzero(feasible)
        return PreScoreResult(snapshot.nodes.names[rows.item(self._random.randrange(len(rows)))])

    def score(self, state: str, pod: PodInfo, nodes: NodeTable) -> Milli:
        """Score the drawn node 100, the others 0."""
        scores = np.zeros(len(nodes), np.int64)
        row = nodes.row_of.get(state)
        if row is not None:
            scores[row] = 100
        return scores

    def pick(self, free: Sequence[int], milli_cpu: int, request: Request, model: str | None) -> int:
        """Draw a device."""
        return self._random.choice(
            [device for device, left in enumerate(free) if left >= request.milli]
        )


class _ByFormula(GpuSharing):
    """Scores by a formula that holds for one node's numbers as for arrays with all nodes'."""

    @abstractmethod
    def rate(self, request: Request, cpu: Numbers, gpus: Gpus | GpusOfRow) -> Numbers:
        """Return the score, of which the integer from 0 to 100 counts.

        Args:
            request: What the pod asks for.
            cpu: What is left of cpu, before the pod is placed.
            gpus: The GPUs, before the pod is placed.
        """

    def score(self, state: None, pod: PodInfo, nodes: NodeTable) -> Milli:
        """Score all nodes; only those that the pod does not fit are outside 0 to 100."""
        cpu = nodes.allocatable_of("cpu") - nodes.requested_of("cpu")
        scores = self.rate(request_of(pod), cpu, self.gpus(nodes))
        return np.minimum(np.maximum(scores, 0), 100).astype(np.int64)

    def score_row(self, state: None, pod: PodInfo, nodes: NodeTable, row: int) -> int:
        """Score one node."""
        offered, used = nodes.amounts_on(row, "cpu")
        score = self.rate(request_of(pod), offered - used, self.gpus_of_row(nodes, row))
        return int(min(max(score, 0), 100))


class DotProduct(_ByFormula):
    """The less the free amounts and the requested ones point the same way, the better."""

    name: ClassVar = "DotProduct"

    def rate(self, request: Request, cpu: Numbers, gpus: Gpus | GpusOfRow) -> Numbers:
        """Multiply the shares of the largest node, for cpu and GPU."""
        of_cpu = cpu / CPU_MAX * (request.cpu / CPU_MAX)
        of_gpu = gpus.left / GPU_MAX * (request.total / GPU_MAX)
        return 100 * (1 - (of_cpu + of_gpu) / 2)


class BestFit(_ByFormula):
    """The node with the least cpu and GPU left."""

    name: ClassVar = "BestFit"

    def rate(self, request: Request, cpu: Numbers, gpus: Gpus | GpusOfRow) -> Numbers:
        """Take the mean of what would be left, as shares of the largest node."""
        of_cpu = 0.5 * (cpu - request.cpu) / CPU_MAX
        of_gpu = 0.5 * (gpus.left - request.total) / GPU_MAX
        return 100 * (1 - (of_cpu + of_gpu))


class GpuClustering(_ByFormula):
    """Pods that ask for as many GPUs go together, then the node with the least free."""

    name: ClassVar = "GpuClustering"

    def rate(self, request: Request, cpu: Numbers, gpus: Gpus | GpusOfRow) -> Numbers:
        """Rate the kinds of the pods that are there; all nodes equally for a pod without GPU."""
        if not request.count:
            return 0 * gpus.left
        has_alike, has_none = gpus.kinds & request.kind != 0, gpus.kinds == 0
        bonus = 50 * has_alike + 25 * (has_none | (gpus.kinds == request.kind))
        return bonus + 25 * (GPU_MAX - gpus.left) // GPU_MAX


class GpuPacking(GpuSharing):
    """Devices in use first, then free devices of nodes in use, then free nodes.

    All nodes are equal for a pod without GPU.
    """

    name: ClassVar = "GpuPacking"

    def score(self, state: None, pod: PodInfo, nodes: NodeTable) -> Milli:
        """Score the devices that the pod would take."""
        request, gpus = request_of(pod), self.gpus(nodes)
        if not request.count:
            return np.zeros(len(nodes), np.int64)
        scores = np.full(len(nodes), max(33, 50 - request.count), np.int64)
        if request.is_shared:
            fullest = np.where(gpus.free >= request.milli, gpus.free, WHOLE).min(axis=1)
            in_use = np.maximum(50, 100 - fullest * 100 // WHOLE // 10)
            scores = np.where(fullest < WHOLE, in_use, scores)
        return np.where(gpus.whole == gpus.count, np.maximum(33 - gpus.whole, 0), scores)

    def score_row(self, state: None, pod: PodInfo, nodes: NodeTable, row: int) -> int:
        """Score the devices of one node."""
        request, gpus = request_of(pod), self.gpus_of_row(nodes, row)
        if not request.count:
            return 0
        if gpus.whole == gpus.count:
            return max(33 - gpus.whole, 0)
        fullest = WHOLE
        if request.is_shared:
            fullest = min(left for left in gpus.free if left >= request.milli)
        if fullest < WHOLE:
            return max(50, 100 - fullest * 100 // WHOLE // 10)
        return max(33, 50 - request.count)
