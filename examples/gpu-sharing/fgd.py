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

from collections.abc import Sequence
from typing import ClassVar, Final

import numpy as np
from fragmentation import Target
from gpu_sharing import GpuSharing, Milli, Request, can_take, fullest_sufficient, request_of

from kubesched import ConfigError
from kubesched.framework import Handle, NodeTable, PluginArgs, PodInfo, child, decode_args, required

_ROWS_FEW: Final = 64
"""Up to so many rows, it is cheaper to rate all than to look for equal ones."""
_STATE_BITS: Final = 32
"""More than the numbers of `Target.alike` have."""


_KNOWN_MAX: Final = 65_536
"""The number of scores that are remembered."""


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


class FragmentationGradientDescent(GpuSharing):
    """Score by the growth of fragmentation; shares the device that the score is for."""

    name: ClassVar = "FragmentationGradientDescent"

    def __init__(self, args: FragmentationGradientDescentArgs, handle: Handle) -> None:
        super().__init__(args, handle)
        self._target = Target(args.target)
        self._known: dict[tuple[object, ...], int] = {}

    @classmethod
    def decode_args(
        cls, raw: dict[str, object] | None, handle: Handle, path: str
    ) -> FragmentationGradientDescentArgs:
        """Decode and check; every field error is reported with its field path."""
        args = decode_args(FragmentationGradientDescentArgs, raw, path)
        if not args.target:
            raise ConfigError([required(child(path, "target"), "name at least one kind of pod")])
        return args

    def score(self, state: None, pod: PodInfo, nodes: NodeTable) -> Milli:
        """Score every node by its best device; nodes that the pod does not fit get 0."""
        request = request_of(pod)
        cpu = nodes.allocatable_of("cpu") - nodes.requested_of("cpu")
        gpus = self.gpus(nodes)
        fits = (cpu >= request.cpu) & can_take(gpus, request)
        if len(nodes) <= _ROWS_FEW:
            scores: Milli = self._scores(cpu, gpus.free, gpus.model, request) * fits
            return scores
        scores, rows = np.zeros(len(nodes), np.int64), fits.nonzero()[0]
        cpu, free, model = cpu[rows], gpus.free[rows], gpus.model[rows]
        # Many nodes are still empty or have the same pods, so few are different.
        states = (gpus.code[rows] << _STATE_BITS) + self._target.alike(cpu, model, request)
        _, first, numbers = np.unique(states, return_index=True, return_inverse=True)
        if len(first):
            scores[rows] = self._scores(cpu[first], free[first], model[first], request)[numbers]
        return scores

    def score_row(self, state: None, pod: PodInfo, nodes: NodeTable, row: int) -> int:
        """Score one node that the pod fits."""
        request, gpus = request_of(pod), self.gpus_of_row(nodes, row)
        offered, used = nodes.amounts_on(row, "cpu")
        cpu, free = offered - used, tuple(sorted(gpus.free))
        steps = self._target.step_of(cpu), self._target.step_of(cpu - request.cpu)
        # Half of the nodes that change have been in a state that is as good for the target.
        state_of_node = request, steps, gpus.model, free
        score = self._known.get(state_of_node)
        if score is None:
            cpus, models = np.array([cpu]), np.array([gpus.model])
            score = self._scores(cpus, np.array([free]), models, request).item(0)
            if len(self._known) == _KNOWN_MAX:
                self._known.clear()
            self._known[state_of_node] = score
        return score

    def _scores(self, cpu: Milli, free: Milli, models: Milli, request: Request) -> Milli:
        """Score the best device of each row, see `Target.gains`."""
        gains = self._target.gains(cpu, free, models, request)
        return self._target.scores(gains.max(axis=1), request)

    def model_code(self, model: str | None) -> int:
        """Return the target's number of a model."""
        return self._target.code_of(model)

    def pick(self, free: Sequence[int], milli_cpu: int, request: Request, model: str | None) -> int:
        """Return the first device that reaches the node's score."""
        if len({left for left in free if left >= request.milli}) == 1:
            return fullest_sufficient(free, request.milli)
        left, model_code = np.array([free]), np.array([self.model_code(model)])
        gains = self._target.gains(np.array([milli_cpu]), left, model_code, request)
        scores = self._target.scores(gains[0], request)
        return int(np.where(left[0] >= request.milli, scores, -1).argmax())
