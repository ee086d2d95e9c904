"""How much of nodes' free GPU a target workload can use, and what placing a pod does to it.

A kind of pod can use the devices that have enough left for it, if they are as many as it needs and
the node's cpu and model suit it. Everything else is fragmented for it.

Kinds that need the same of devices are counted together. A table has, per model and step of cpu,
how many pods of each such group the node suits, so that nodes and devices are rows of arrays.
"""

from bisect import bisect_right
from collections.abc import Collection, Sequence
from functools import lru_cache
from typing import Protocol

import numpy as np
from gpu_sharing import WHOLE, Milli, Request
from numpy.typing import NDArray

_TOO_LITTLE = -(10**9)
"""What a device is said to have left if a part does not fit it: no kind of pod can use that."""


class Kind(Protocol):
    """A kind of pod, see `fgd.TargetKind`."""

    @property
    def milli_cpu(self) -> int: ...  # noqa: D102
    @property
    def gpus(self) -> int: ...  # noqa: D102
    @property
    def gpu_milli(self) -> int: ...  # noqa: D102
    @property
    def models(self) -> Collection[str]: ...  # noqa: D102
    @property
    def pods(self) -> int: ...  # noqa: D102


class Target:
    """The target workload as arrays; amounts of GPU are in milli, times its number of pods."""

    def __init__(self, kinds: Sequence[Kind]) -> None:
        self.pods = sum(kind.pods for kind in kinds)
        asking = [kind for kind in kinds if kind.gpus]
        groups = sorted({(kind.gpu_milli, kind.gpus) for kind in asking})
        each = np.array([milli for milli, _ in groups], np.int64)
        left = np.arange(WHOLE + 1)[:, np.newaxis]
        self._room = np.where(left >= each, left, 0)
        # A device that suffices has at least what is needed of one, and whole devices are equal. So
        # the sum over them shows whether they are enough.
        self._needed = each * [count for _, count in groups]
        self._cpus = np.array(sorted({kind.milli_cpu for kind in asking}), np.int64)
        self._steps: list[int] = self._cpus.tolist()
        models = sorted({model for kind in asking for model in kind.models})
        # Code 0 is for all models that no kind names.
        self._codes = {model: code for code, model in enumerate(models, 1)}
        steps = len(self._cpus) + 1
        suited = np.zeros((len(models) + 1, steps, len(groups)), np.int64)
        for kind in asking:
            step = int(np.searchsorted(self._cpus, kind.milli_cpu, side="right"))
            codes = [self._codes[model] for model in kind.models] or slice(None)
            suited[codes, step:, groups.index((kind.gpu_milli, kind.gpus))] += kind.pods
        self._suited = suited.reshape(-1, len(groups))
        self._first_of_model = steps * np.arange(len(models) + 1)

    def code_of(self, model: str | None) -> int:
        """Return the code of a node's model."""
        return self._codes.get(model or "", 0)

    def step_of(self, cpu: int) -> int:
        """Return a number that is equal for amounts of cpu that suit the same pods."""
        return bisect_right(self._steps, cpu)

    def alike(self, cpu: Milli, models: NDArray[np.int64], request: Request) -> Milli:
        """Return a number per row, which is equal where cpu and model suit the same pods.

        They do so now and after a pod with this request; see `gains` for the arguments.
        """
        before, after = self._places_of(models, cpu, request)
        return before * len(self._suited) + after

    def fragmented(self, cpu: Milli, free: Milli, models: NDArray[np.int64]) -> Milli:
        """Return the fragmented GPU per row.

        Args:
            cpu: What is left of cpu, per row.
            free: What is left of each device, rows x devices.
            models: The code of the model, per row.
        """
        suited = self._suited[self._places_of(models, cpu)[0]]
        return self.pods * free.sum(axis=1) - self._usable(suited, self._room_of(free))

    def gains(self, cpu: Milli, free: Milli, models: NDArray[np.int64], request: Request) -> Milli:
        """Return, per row and device, how much more GPU is usable after the pod is placed there.

        There is one column for a pod that does not share a device. The pod fits every row, or what
        is returned for the row has no meaning. No device on which a part does not fit gains more
        than one on which it fits.

        Args:
            cpu: What is left of cpu, per row.
            free: What is left of each device, rows x devices.
            models: The code of the model, per row.
            request: What the pod asks for.
        """
        places = self._places_of(models, cpu, request)
        suited_before, suited = self._suited.take(places, axis=0)
        room = self._room_of(free)
        before = self._usable(suited_before, room)[:, np.newaxis]
        if not request.is_shared:
            # Whole devices have room for every kind.
            return self._usable(suited, room - request.total)[:, np.newaxis] - before
        room = room[:, np.newaxis] + self._room_lost(request.milli).take(free, axis=0)
        return self._usable(suited[:, np.newaxis], room) - before

    def scores(self, gains: Milli, request: Request) -> NDArray[np.int64]:
        """Return 0 to 100 for what `gains` returned; it rises with the gain."""
        less_fragmented = (gains + self.pods * request.total) / (-self.pods * WHOLE)
        return (100 / (1 + np.exp(less_fragmented))).astype(np.int64)

    def _places_of(
        self, models: NDArray[np.int64], cpu: Milli, request: Request | None = None
    ) -> NDArray[np.intp]:
        """Return the rows of `_suited` before and after a pod is placed: 2 x rows."""
        both = np.array((cpu, cpu - request.cpu if request else cpu))
        return self._first_of_model.take(models) + self._cpus.searchsorted(both, side="right")

    def _room_of(self, free: Milli) -> Milli:
        """Return, per row and group, what is left on the devices that suffice."""
        room: Milli = self._room.take(free, axis=0).sum(axis=1)
        return room

    @lru_cache(maxsize=1024)  # noqa: B019 - one target lives as long as its plugin
    def _room_lost(self, milli: int) -> Milli:
        """Return by how much a part changes the room, by what is left of its device and group."""
        lost = np.full_like(self._room, _TOO_LITTLE)
        lost[milli:] = self._room[: WHOLE + 1 - milli] - self._room[milli:]
        return lost

    def _usable(self, suited: Milli, room: Milli) -> Milli:
        """Return the usable GPU, given what is left on devices that suffice, for each group."""
        return np.vecdot(suited, room * (room >= self._needed))
