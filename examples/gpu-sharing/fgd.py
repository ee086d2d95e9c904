"""FragmentationGradientDescent: place a pod where it adds the least fragmentation of GPUs.

A node's free GPU is fragmented for a kind of pod if the pod could not use it: it does not fit the
node at all, or a device has less left than it needs. A node's fragmentation is the mean over a
target workload, weighted by how many pods of each kind it has; kinds without GPU can use none. The
less fragmentation grows, the higher the score: 50 if it stays the same, and 100 / (1 + e^growth)
otherwise, with growth in GPUs, cut to an integer.

Upstream: "Beware of Fragmentation: Scheduling GPU-Sharing Workloads with Fragmentation Gradient
          Descent", USENIX ATC 2023
Differs:  fragmentation is counted in whole numbers, so that equal nodes tie however sums round.
"""

from collections.abc import Iterable, Sequence
from functools import lru_cache
from math import exp
from typing import ClassVar, Final, NamedTuple

import numpy as np
from fragmentation import Target
from gpu_sharing import WHOLE, GpuSharing, Milli, Request, can_take, request_of

from kubesched.framework import FieldError, Handle, NodeTable, PluginArgs, PodInfo, child, required

_CODES_MAX: Final = 1 << 32
"""More than `Gpus.code` has numbers."""


class Best(NamedTuple):
    """The best place for a pod on a node.

    Attributes:
        score: Its score.
        lefts: What is left of the devices that reach it.
    """

    score: int
    lefts: frozenset[int]


class TargetKind(PluginArgs, frozen=True, kw_only=True):
    """A kind of pod of the target workload.

    Attributes:
        milli_cpu: The cpu it requests.
        gpus: The number of GPUs.
        gpu_milli: What it requests of each; less than 1000 only of a single one.
        models: The models of GPU it runs on; none for any.
        pods: How many pods of this kind there are.
    """

    milli_cpu: int
    gpus: int = 0
    gpu_milli: int = 0
    models: tuple[str, ...] = ()
    pods: int = 1


class FragmentationGradientDescentArgs(PluginArgs, frozen=True, kw_only=True):
    """The target workload, such as the frequent kinds of last month's pods."""

    target: tuple[TargetKind, ...] = ()

    def errors(self, path: str) -> Iterable[FieldError]:
        """Yield an error if there is no pod."""
        if sum(kind.pods for kind in self.target) < 1:
            yield required(child(path, "target"), "name at least one kind of pod")


class FragmentationGradientDescent(GpuSharing):
    """Score by the growth of fragmentation; shares the device that the score is for."""

    name: ClassVar = "FragmentationGradientDescent"
    args_type: ClassVar = FragmentationGradientDescentArgs

    def __init__(self, args: FragmentationGradientDescentArgs, handle: Handle) -> None:
        super().__init__(args, handle)
        self._target = Target(args.target)

    def score(self, state: None, pod: PodInfo, nodes: NodeTable) -> Milli:
        """Score every node by its best device; nodes that the pod does not fit get 0."""
        request = request_of(pod)
        cpu = nodes.allocatable_of("cpu") - nodes.requested_of("cpu")
        gpus = self.gpus(nodes)
        rows = ((cpu >= request.cpu) & can_take(gpus, request)).nonzero()[0]
        # Many nodes are still empty or have the same pods, so few are different.
        states = cpu[rows] * _CODES_MAX + gpus.code[rows]
        _, first, state = np.unique(states, return_index=True, return_inverse=True)
        best = [
            self._best(request, cpu.item(row), gpus.model.item(row), gpus.free[row].tolist()).score
            for row in rows[first].tolist()
        ]
        scores = np.zeros(len(nodes), np.int64)
        scores[rows] = np.array(best, np.int64)[state]
        return scores

    def score_row(self, state: None, pod: PodInfo, nodes: NodeTable, row: int) -> int:
        """Score one node that the pod fits."""
        gpus = self.gpus_of_row(nodes, row)
        offered, used = nodes.amounts_on(row, "cpu")
        return self._best(request_of(pod), offered - used, gpus.model, gpus.free).score

    def model_code(self, model: str | None) -> int:
        """Return the target's number of a model."""
        return self._target.code_of(model)

    def pick(self, free: Sequence[int], milli_cpu: int, request: Request, model: str | None) -> int:
        """Return the first device that reaches the node's score."""
        best = self._best(request, milli_cpu, self.model_code(model), free)
        return next(device for device, left in enumerate(free) if left in best.lefts)

    def _best(self, request: Request, cpu: int, model: int, free: Sequence[int]) -> Best:
        """Return the best place on a node that the pod fits; see `Target.usable`."""
        steps = self._target.step_of(cpu), self._target.step_of(cpu - request.cpu)
        return self._best_of(request, steps, model, tuple(sorted(free)))

    @lru_cache(maxsize=65_536)  # noqa: B019 - a plugin lives as long as its scheduler
    def _best_of(
        self, request: Request, steps: tuple[int, int], model: int, free: tuple[int, ...]
    ) -> Best:
        # By what is left of the device that is shared; whole devices are equal.
        if request.is_shared:
            lefts = {left for left in free if left >= request.milli}
            after = {left: _less(free, left, request.milli) for left in lefts}
        else:
            after = {WHOLE: (0,) * request.count + free[: len(free) - request.count]}
        usable = self._target.usable
        now = usable(model, steps[0], free)
        scores = {
            left: self._score_of(usable(model, steps[1], then) - now, request)
            for left, then in after.items()
        }
        best = max(scores.values())
        return Best(best, frozenset(left for left, score in scores.items() if score == best))

    def _score_of(self, gain: int, request: Request) -> int:
        """Return 0 to 100 for how much more GPU is usable after the pod is placed."""
        pods = self._target.pods
        growth = -(gain + pods * request.total) / (pods * WHOLE)
        return int(100 / (1 + exp(growth)))


def _less(free: tuple[int, ...], left: int, milli: int) -> tuple[int, ...]:
    """Return what is left of each device after one loses a part, ascending."""
    others = list(free)
    others.remove(left)
    return tuple(sorted([*others, left - milli]))
