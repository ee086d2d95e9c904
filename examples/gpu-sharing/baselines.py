"""The policies that the paper compares with: random, dot product, clustering, packing, best fit.

Upstream: as in the simulator of the paper, see `fgd`; scores are cut to integers
Differs:  BestFit does not stretch its scores to 0..100, which would not change their order.
"""

from abc import abstractmethod
from collections.abc import Sequence
from random import Random
from typing import ClassVar, Final

import numpy as np
from gpu_sharing import WHOLE, Gpus, GpuSharing, Milli, Request, request_of
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
    decode_args,
)

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
    score_scope: ClassVar = Scope.CLUSTER

    def __init__(self, args: RandomNodeArgs, handle: Handle) -> None:
        super().__init__(args, handle)
        self._random = Random(args.seed)  # noqa: S311 - a seeded run, no secret

    @classmethod
    def decode_args(
        cls, raw: dict[str, object] | None, handle: Handle, path: str
    ) -> RandomNodeArgs:
        """Decode and check; every field error is reported with its field path."""
        return decode_args(RandomNodeArgs, raw, path)

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


class DotProduct(GpuSharing):
    """The less the free amounts and the requested ones point the same way, the better."""

    name: ClassVar = "DotProduct"

    def score(self, state: None, pod: PodInfo, nodes: NodeTable) -> Milli:
        """Multiply the shares of the largest node, for cpu and GPU."""
        request = request_of(pod)
        cpu = (nodes.allocatable_of("cpu") - nodes.requested_of("cpu")) / CPU_MAX
        gpu = self.gpus(nodes).left / GPU_MAX
        product = cpu * (request.cpu / CPU_MAX) + gpu * (request.total / GPU_MAX)
        return _cut(100 * (1 - product / 2))


class _GpusAlone(GpuSharing):
    """Scores nodes by their GPUs alone, and all equally for a pod without GPU."""

    def score(self, state: None, pod: PodInfo, nodes: NodeTable) -> Milli:
        """Score the GPUs, if the pod asks for any."""
        request = request_of(pod)
        if not request.count:
            return np.zeros(len(nodes), np.int64)
        return self.score_gpus(request, self.gpus(nodes))

    @abstractmethod
    def score_gpus(self, request: Request, gpus: Gpus) -> Milli:
        """Return 0 to 100 per row."""


class GpuClustering(_GpusAlone):
    """Pods that ask for as many GPUs go together, then the node with the least free."""

    name: ClassVar = "GpuClustering"

    def score_gpus(self, request: Request, gpus: Gpus) -> Milli:
        """Score the kinds of the pods that are there."""
        has_alike, has_none = gpus.kinds & request.kind != 0, gpus.kinds == 0
        bonus = 50 * has_alike + 25 * (has_none | (gpus.kinds == request.kind))
        return _cut(bonus + 25 * (GPU_MAX - gpus.left) // GPU_MAX)


class GpuPacking(_GpusAlone):
    """Devices in use first, then free devices of nodes in use, then free nodes."""

    name: ClassVar = "GpuPacking"

    def score_gpus(self, request: Request, gpus: Gpus) -> Milli:
        """Score the devices that the pod would take."""
        scores = np.full(len(gpus.count), max(33, 50 - request.count), np.int64)
        if request.is_shared:
            fullest = np.where(gpus.free >= request.milli, gpus.free, WHOLE).min(axis=1)
            in_use = np.maximum(50, 100 - fullest * 100 // WHOLE // 10)
            scores = np.where(fullest < WHOLE, in_use, scores)
        return np.where(gpus.whole == gpus.count, np.maximum(33 - gpus.whole, 0), scores)


class BestFit(GpuSharing):
    """The node with the least cpu and GPU left."""

    name: ClassVar = "BestFit"

    def score(self, state: None, pod: PodInfo, nodes: NodeTable) -> Milli:
        """Score the mean of what would be left, as shares of the largest node."""
        request = request_of(pod)
        cpu = nodes.allocatable_of("cpu") - nodes.requested_of("cpu") - request.cpu
        gpu = self.gpus(nodes).left - request.total
        return _cut(100 * (1 - (0.5 * cpu / CPU_MAX + 0.5 * gpu / GPU_MAX)))


def _cut(scores: NDArray[np.float64] | Milli) -> Milli:
    """Cut to integers from 0 to 100; only nodes that the pod does not fit are outside."""
    return np.minimum(np.maximum(scores, 0), 100).astype(np.int64)
