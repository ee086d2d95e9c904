"""How much of a node's free GPU a target workload can use.

A kind of pod can use the devices that have enough left for it, if they are as many as it needs and
the node's cpu and model suit it. Everything else is fragmented for it.
"""

from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Collection, Sequence
from functools import lru_cache
from typing import Protocol


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
    """The target workload.

    Attributes:
        pods: Its number of pods.
    """

    def __init__(self, kinds: Sequence[Kind]) -> None:
        self.pods = sum(kind.pods for kind in kinds)
        asking = [kind for kind in kinds if kind.gpus]
        self._cpus = sorted({kind.milli_cpu for kind in asking})
        models = sorted({model for kind in asking for model in kind.models})
        # Code 0 is for all models that no kind names.
        self._codes = {model: code for code, model in enumerate(models, 1)}
        # The kinds that suit a node, by model and step of cpu.
        self._suited = [
            [_summed(asking, cpu, model) for cpu in (-1, *self._cpus)] for model in ("", *models)
        ]

    def code_of(self, model: str | None) -> int:
        """Return the code of a node's model."""
        return self._codes.get(model or "", 0)

    def step_of(self, cpu: int) -> int:
        """Return a number that is equal for amounts of cpu that suit the same kinds."""
        return bisect_right(self._cpus, cpu)

    @lru_cache(maxsize=65_536)  # noqa: B019 - one target lives as long as its plugin
    def usable(self, model: int, step: int, free: tuple[int, ...]) -> int:
        """Return the usable GPU of a node in milli, summed up over the target's pods.

        Args:
            model: The code of the node's model.
            step: What `step_of` returns for what is left of its cpu.
            free: What is left of each of its devices, ascending.
        """
        usable = 0
        for (milli, count), pods in self._suited[model][step]:
            enough = free[bisect_left(free, milli) :]
            if len(enough) >= count:
                usable += pods * sum(enough)
        return usable


def _summed(kinds: Sequence[Kind], cpu: int, model: str) -> list[tuple[tuple[int, int], int]]:
    """Return what kinds that suit a node need of its devices, with their numbers of pods."""
    pods: Counter[tuple[int, int]] = Counter()
    for kind in kinds:
        if kind.milli_cpu <= cpu and (not kind.models or model in kind.models):
            pods[kind.gpu_milli, kind.gpus] += kind.pods
    return [*pods.items()]
