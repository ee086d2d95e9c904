"""Functions that do the runs of a sweep instead of kubesched's own simulations."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import msgspec

from kubesched.framework.plugin import Plugin
from kubesched.framework.registry import SchedulerSetup
from kubesched.inputs.errors import UserError
from kubesched.inputs.loading import import_place
from kubesched.sweep.spec import Scalar


class SweepCase(msgspec.Struct, frozen=True, kw_only=True):
    """The run that a function of a sweep carries out.

    Attributes:
        files: The files of the input.
        scheduler: Configuration, registry with the plugins, and feature gates.
        plugins: The classes of the out-of-tree plugins.
        parameters: The parameters' values by their names.
        seed: The seed.
    """

    files: tuple[Path, ...]
    scheduler: SchedulerSetup
    plugins: tuple[type[Plugin], ...]
    parameters: Mapping[str, Scalar]
    seed: int


SweepFunction = Callable[[SweepCase], Mapping[str, Any]]
"""Returns figures: numbers, texts or None by their names, in the same order for each run."""


def load_function(text: str) -> SweepFunction:
    """Import the function that a sweep names; raises UserError if there is none."""
    where = f"function: {text}"
    place, colon, name = text.rpartition(":")
    if not (place and colon and name):
        raise UserError(f"{where}: write module:function")
    module = import_place(place, where)
    function: SweepFunction | None = getattr(module, name, None)
    if not callable(function):
        raise UserError(f"{where}: there is no function {name} in {module.__name__}")
    return function
