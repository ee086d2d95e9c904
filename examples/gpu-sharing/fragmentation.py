"""How much of nodes' free GPU a target workload can use, and what placing a pod does to it.

A kind of pod can use the devices that have enough left for it, if they are as many as it needs and
the node's cpu and model suit it. Everything else is fragmented for it.

Kinds that need the same of devices are counted together. A table has, per model and step of cpu,
how many pods of each such group the node suits, so that nodes and devices are rows of arrays.
"""

from collections.abc import Collection, Sequence
from typing import Protocol

import numpy as np
from gpu_sharing import WHOLE, Milli, Request
from numpy.typing import NDArray

from kubesched.framework import Coded

UNFIT = -1


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

    def codes_of(self, models: Coded[str | None], rows: NDArray[np.intp]) -> NDArray[np.int64]:
        """Return the codes of the models of some rows."""
        return models.map(self.code_of, np.int64)[rows]

    def alike(self, cpu: Milli, models: NDArray[np.int64], request: Request) -> Milli:
        """Return a number per row, which is equal where cpu and model suit the same pods.

        They do so now and after a pod with this request; see `scores` for the arguments.
        """
        after = self._places_of(models, cpu - request.cpu)
        return self._places_of(models, cpu) * len(self._suited) + after

    def fragmented(self, cpu: Milli, free: Milli, models: NDArray[np.int64]) -> Milli:
        """Return the fragmented GPU per row.

        Args:
            cpu: What is left of cpu, per row.
            free: What is left of each device, rows x devices.
            models: The code of the model, per row.
        """
        usable = self._usable(
            self._suited_by(models, cpu), self._room.take(free, axis=0).sum(axis=1)
        )
        return self.pods * free.sum(axis=1) - usable

    def scores(
        self, cpu: Milli, free: Milli, models: NDArray[np.int64], request: Request
    ) -> NDArray[np.int64]:
        """Return 0 to 100 per row and device; one column for a pod that does not share a device.

        The pod fits every row. Devices without enough left for its part are UNFIT.
        """
        each = self._room.take(free, axis=0)
        room = each.sum(axis=1)
        before = self._usable(self._suited_by(models, cpu), room)
        suited = self._suited_by(models, cpu - request.cpu)
        if not request.is_shared:
            # Whole devices have room for every kind.
            usable = self._usable(suited, room - request.total)
            return self._rated(usable - before, request)[:, np.newaxis]
        left = free - request.milli
        # Where too little is left, the index counts from the end; those devices are UNFIT.
        room = room[:, np.newaxis] - each + self._room.take(left, axis=0)
        usable = self._usable(suited[:, np.newaxis], room)
        scores = self._rated(usable - before[:, np.newaxis], request)
        scores[left < 0] = UNFIT
        return scores

    def _suited_by(self, models: NDArray[np.int64], cpu: Milli) -> Milli:
        """Return, per row and group, the number of pods that a node with this cpu suits."""
        return self._suited.take(self._places_of(models, cpu), axis=0)

    def _places_of(self, models: NDArray[np.int64], cpu: Milli) -> NDArray[np.intp]:
        """Return the row of `_suited` for each model with this cpu."""
        return self._first_of_model.take(models) + self._cpus.searchsorted(cpu, side="right")

    def _usable(self, suited: Milli, room: Milli) -> Milli:
        """Return the usable GPU, given what is left on devices that suffice, for each group."""
        return (suited * room * (room >= self._needed)).sum(axis=-1)

    def _rated(self, more_usable: Milli, request: Request) -> NDArray[np.int64]:
        less_fragmented = (more_usable + self.pods * request.total) / (self.pods * WHOLE)
        return (100 / (1 + np.exp(-less_fragmented))).astype(np.int64)
