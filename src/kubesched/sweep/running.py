"""Carries out one run, in a process of its own or on another machine.

What several runs read is kept in memory from one run to the next.
"""

from __future__ import annotations

import math
import os
import socket
import sys
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from time import thread_time
from typing import Final

import msgspec
import numpy as np

from kubesched.framework.plugin_error import PluginError
from kubesched.inputs.cluster_input import read_cluster
from kubesched.inputs.completed_input import ClusterInput
from kubesched.inputs.loading import load_plugin, load_scheduler
from kubesched.inputs.slow_plugins import naming_slow_plugins
from kubesched.inputs.sources import ClusterSource, SchedulerOptions
from kubesched.simulator.run import simulate
from kubesched.simulator.simulation import simulate_cluster
from kubesched.sweep.figures import Figures, figures_of
from kubesched.sweep.functions import SweepCase, load_function
from kubesched.sweep.plan import SweepRun, digest_of_file

_INPUTS_KEPT: Final = 8


class SweepOutcome(msgspec.Struct, frozen=True, omit_defaults=True):
    """The outcome of a run.

    Attributes:
        figures: Its figures; none if it failed.
        error: Why it failed; "" if it did not.
        cpu_seconds: The CPU time that it took, on the machine where it ran.
        slow: Methods of plugins that are slow, with their mean times.
    """

    figures: Figures
    error: str
    cpu_seconds: float
    slow: dict[str, str] = {}


class InputChangedError(Exception):
    """A file is not the one that the sweep was planned with."""


def carry_out(run: SweepRun) -> SweepOutcome:
    """Do a run; an exception of a plugin or of the simulation is its outcome.

    Raises:
        InputChangedError: A file has changed, or differs on this machine.
    """
    cell = run.cell
    for file, digest in cell.read.items():
        _check(file, digest)
    if cell.directory not in sys.path:
        sys.path.insert(0, cell.directory)
    began = thread_time()
    figures: Figures = {}
    error = ""
    slow: dict[str, str] = {}
    try:
        with naming_slow_plugins(slow.__setitem__):
            figures = _figures(run)
    except Exception as raised:  # noqa: BLE001 - whatever it is, the other runs go on
        # The same on every machine.
        error = _words(raised).replace(f"{cell.directory}{os.sep}", "")
    return SweepOutcome(figures, error, round(thread_time() - began, 3), slow)


@lru_cache(maxsize=1024)
def _check(file: str, digest: str) -> None:
    try:
        found = digest_of_file(Path(file))
    except OSError as error:
        found = error.strerror or type(error).__name__
    if found != digest:
        raise InputChangedError(f"{file} on {socket.gethostname()}: {found}, expected {digest}")


def _words(raised: Exception) -> str:
    if not isinstance(raised, PluginError):
        text = " ".join(str(raised).split())
        return f"{type(raised).__name__}: {text}" if text else type(raised).__name__
    place = f" ({raised.places[-1]})" if raised.places else ""
    return f"{' '.join(str(raised).split())}{place}"


def case_of(run: SweepRun) -> SweepCase:
    """Return what a function gets for a run; raises UserError if a plugin cannot be loaded."""
    cell = run.cell
    options = SchedulerOptions(feature_gates=cell.feature_gates, plugins=cell.plugins)
    return SweepCase(
        files=tuple(map(Path, cell.files)),
        scheduler=load_scheduler(options, cell.configuration),
        plugins=tuple(map(load_plugin, cell.plugins)),
        parameters=cell.labels,
        seed=run.seed,
    )


def _figures(run: SweepRun) -> Figures:
    cell, case = run.cell, case_of(run)
    if cell.function:
        return _checked(load_function(cell.function)(case))
    if cell.scenario is not None:
        report = simulate(cell.scenario, case.scheduler.registry, seed=run.seed)
        return figures_of(report, cell.figures)
    found = _cluster(cell.files, cell.complete)
    end = simulate_cluster(case.scheduler, found.objects, seed=run.seed, complete=found.complete)
    return figures_of(end.report, cell.figures)


@lru_cache(maxsize=_INPUTS_KEPT)
def _cluster(files: tuple[str, ...], complete: bool) -> ClusterInput:
    source = ClusterSource(tuple(map(Path, files)), complete=complete)
    return read_cluster(source, expects_pods=True)


def _checked(figures: Mapping[str, object]) -> Figures:
    """Return the figures of a function as Python's own types; None for what is no number."""
    found: Figures = {}
    for name, value in figures.items():
        plain = value.item() if isinstance(value, np.generic) else value
        if not (plain is None or isinstance(plain, str | int | float)):
            kind = type(value).__name__
            raise TypeError(f"figure {name} is of type {kind}, not a number or text")
        is_none = isinstance(plain, float) and not math.isfinite(plain)
        found[name] = None if is_none else plain
    return found
