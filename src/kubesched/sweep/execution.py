"""Carries out runs on all cores of this machine, or on a Dask cluster.

Invariants: every run has one outcome, whatever process dies; no process outlives this one.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Executor, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from typing import Final, ParamSpec, TypeVar

from kubesched.app.collector import tune_collector
from kubesched.inputs.errors import UserError
from kubesched.sweep.plan import SweepRun
from kubesched.sweep.running import InputChangedError, SweepOutcome, carry_out

P = ParamSpec("P")
T = TypeVar("T")

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
        """Give up the runs that were not begun."""
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
                words = "it has changed since the sweep began; the same command goes on"
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


class _Here(Executor):
    """Calls each function at once, in this process."""

    def submit(self, fn: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> Future[T]:
        future: Future[T] = Future()
        try:
            future.set_result(fn(*args, **kwargs))
        except Exception as error:  # noqa: BLE001 - as other executors do
            future.set_exception(error)
        return future


def workers_here() -> SweepWorkers:
    """Return the workers that carry out each run at once, in this process."""
    return SweepWorkers(_Here, lambda: 1)


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

    Raises:
        UserError: Dask is not installed, or there is no scheduler at the address.
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
