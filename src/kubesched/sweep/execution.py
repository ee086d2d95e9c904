"""Carries out runs: in this process, on all cores of this machine, or on a Dask cluster.

Processes keep in memory what several runs read.

Invariants: every run has one outcome, whatever process dies; no process outlives this one.
"""

from __future__ import annotations

import math
import multiprocessing
import os
import signal
import socket
import sys
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import FIRST_COMPLETED, Executor, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path
from time import thread_time
from typing import Final, ParamSpec, TypeVar

import msgspec
import numpy as np

from kubesched.app.collector import tune_collector
from kubesched.framework.plugin_error import PluginError
from kubesched.inputs.cluster_input import read_cluster
from kubesched.inputs.completed_input import ClusterInput
from kubesched.inputs.errors import UserError, naming_slow_plugins
from kubesched.inputs.loading import load_plugin, load_scheduler
from kubesched.inputs.sources import ClusterSource, SchedulerOptions
from kubesched.simulator.run import simulate
from kubesched.simulator.simulation import simulate_cluster
from kubesched.sweep.figures import Figures, figures_of
from kubesched.sweep.functions import SweepCase, load_function
from kubesched.sweep.plan import SweepRun, digest_of_file

P = ParamSpec("P")
T = TypeVar("T")

# One run.

_INPUTS_KEPT: Final = 8


class SweepOutcome(msgspec.Struct, frozen=True, omit_defaults=True):
    """The figures of a run, or the error because of which it has none.

    `error` is "" if there is none. `slow` are methods of plugins, with their mean times.
    """

    figures: Figures
    error: str
    cpu_seconds: float
    slow: dict[str, str] = {}


class InputChangedError(Exception):
    """A file is not the one that the sweep was planned with."""


def carry_out(run: SweepRun) -> SweepOutcome:
    """Do a run; an exception of a plugin or of the simulation is its outcome.

    Raises InputChangedError if a file has changed, or differs on this machine.
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
    """Return the figures of a function as Python's own types; None for what is not a number."""
    found: Figures = {}
    for name, value in figures.items():
        plain = value.item() if isinstance(value, np.generic) else value
        if not (plain is None or isinstance(plain, str | int | float)):
            kind = type(value).__name__
            raise TypeError(f"figure {name} is of type {kind}, not a number or text")
        is_none = isinstance(plain, float) and not math.isfinite(plain)
        found[name] = None if is_none else plain
    return found


# Many runs.

_ONE_THREAD: Final = dict.fromkeys(
    ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1"
)
_AHEAD: Final = 2
"""Runs that are handed out per core, so that none waits for the next."""
_WORKER_DIED: Final = "the process of the run was killed, perhaps because memory was short"
_CONNECT_SECONDS: Final = 10

Finished = Callable[[SweepRun, SweepOutcome, bool], None]
"""(run, outcome, whether it would be the same again), called as runs end."""


class SweepWorkers:
    """Processes that carry out runs; `cores` returns how many runs they carry out at a time."""

    def __init__(self, new_executor: Callable[[], Executor], cores: Callable[[], int]) -> None:
        self.cores = cores
        self._new_executor = new_executor
        self._executor = new_executor()

    def submit(self, run: SweepRun) -> Future[SweepOutcome]:
        """Begin a run, now or when a core is free."""
        try:
            return self._executor.submit(carry_out, run)
        except BrokenProcessPool:
            # A process died since the last run ended. Futures of lost runs report it themselves.
            self.renew()
            return self._executor.submit(carry_out, run)

    def renew(self) -> None:
        """Start again after a process has died and taken all runs with it."""
        self._executor.shutdown(cancel_futures=True)
        self._executor = self._new_executor()

    def close(self) -> None:
        """Cancel the runs that have not begun."""
        self._executor.shutdown(wait=False, cancel_futures=True)


def carry_out_all(runs: Iterable[SweepRun], workers: SweepWorkers, finished: Finished) -> None:
    """Carry out all runs; raises UserError if a file has changed in the meantime."""
    waiting = deque(runs)
    # When a process dies, all runs that were handed out are suspects, and tried one at a time.
    suspects: deque[SweepRun] = deque()
    running: dict[Future[SweepOutcome], SweepRun] = {}
    while waiting or suspects or running:
        if suspects and not running:
            run = suspects.popleft()
            running[workers.submit(run)] = run
        while waiting and not suspects and len(running) < _AHEAD * workers.cores():
            run = waiting.popleft()
            running[workers.submit(run)] = run
        broken = []
        is_alone = len(running) == 1
        for future in wait(running, return_when=FIRST_COMPLETED).done:
            run = running.pop(future)
            try:
                finished(run, future.result(), True)
            except BrokenProcessPool:
                broken.append(run)
            except InputChangedError as error:
                words = "it has changed since the sweep began; the same command continues"
                raise UserError(f"{error}: {words}") from error
            except Exception as error:  # noqa: BLE001 - Dask's, of a worker that died repeatedly
                finished(run, _failed(f"{type(error).__name__}: {error}"), False)
        if broken:
            workers.renew()
            broken += running.values()
            running.clear()
            if is_alone:
                finished(broken[0], _failed(_WORKER_DIED), False)
            else:
                suspects.extend(broken)


def _failed(words: str) -> SweepOutcome:
    return SweepOutcome({}, words, 0.0)


# This machine.


class _InlineExecutor(Executor):
    """Calls each function at once, in this process."""

    def submit(self, fn: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> Future[T]:
        future: Future[T] = Future()
        try:
            future.set_result(fn(*args, **kwargs))
        except Exception as error:  # noqa: BLE001 - as other executors do
            future.set_exception(error)
        return future


def inline_workers() -> SweepWorkers:
    """Return the workers that carry out each run at once, in this process."""
    return SweepWorkers(_InlineExecutor, lambda: 1)


@contextmanager
def local_workers(cores: int) -> Iterator[SweepWorkers]:
    """Yield processes on this machine, which end with the context, even in the middle of a run."""
    others = multiprocessing.active_children()
    before = {name: os.environ.get(name) for name in _ONE_THREAD}
    os.environ.update(_ONE_THREAD)
    context = multiprocessing.get_context("spawn")
    workers = SweepWorkers(
        lambda: ProcessPoolExecutor(cores, mp_context=context, initializer=_set_up_worker),
        lambda: cores,
    )
    try:
        yield workers
    finally:
        workers.close()
        for child in multiprocessing.active_children():
            if child not in others:
                child.terminate()
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


def _set_up_worker() -> None:
    """Prepare a process that runs simulations: it ends with its parent, and leaves Ctrl-C to it."""
    # Ctrl-C is for the process that collects the results.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with_parent, daemon=True).start()
    tune_collector()
    # Stdout is for the results; plugins may print.
    sys.stdout = sys.stderr


def _end_with_parent() -> None:
    """End this process when the one that collects the results is killed."""
    parent = multiprocessing.parent_process()
    assert parent is not None, "it was started for the runs"
    parent.join()
    os._exit(1)


# A Dask cluster.


@contextmanager
def dask_workers(address: str) -> Iterator[SweepWorkers]:
    """Yield the workers of a Dask cluster.

    Raises UserError if Dask is not installed, or there is no scheduler at the address.
    """
    try:
        from distributed import Client  # noqa: PLC0415 - optional, and takes long
    except ImportError as error:
        words = "Dask is not installed; run: pip install 'kubesched[sweep]'"
        raise UserError(f"--scheduler-address: {words}") from error
    try:
        client = Client(address, timeout=_CONNECT_SECONDS, set_as_default=False)
    except (OSError, ValueError, TypeError) as error:
        words = f"no Dask scheduler answers there: {error or type(error).__name__}"
        raise UserError(f"--scheduler-address {address}: {words}") from error
    with client:
        yield SweepWorkers(
            lambda: client.get_executor(pure=False),
            # There may be more or fewer later. Dask gives the runs of a dead worker to another one.
            lambda: int(sum(client.nthreads().values())) or 1,
        )
