"""Runs in processes: ones that die, and a Dask cluster that loses a worker."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator, Sequence
from concurrent.futures import Executor, Future
from concurrent.futures.process import BrokenProcessPool
from pathlib import Path

import pytest
from distributed import LocalCluster

from kubesched.inputs.errors import UserError
from kubesched.sweep import execution
from kubesched.sweep.execution import (
    SweepOutcome,
    SweepWorkers,
    carry_out,
    carry_out_all,
    dask_workers,
    inline_workers,
)
from kubesched.sweep.plan import SweepCell, SweepRun
from kubesched.sweep.results import encoded, run_columns

from .sweeps import CLUSTER, SCENARIO, planned, write

CELL = SweepCell(labels={"input": "a"}, digests={}, read={}, directory="")


class _FragileWorkers(SweepWorkers):
    """Two processes that all die when a certain run begins."""

    def __init__(self, deadly: Sequence[int], times: int) -> None:
        super().__init__(Executor, lambda: 2)
        self._deadly = dict.fromkeys(deadly, times)
        self._open: list[Future[SweepOutcome]] = []
        self._runs: dict[Future[SweepOutcome], int] = {}

    def submit(self, run: SweepRun) -> Future[SweepOutcome]:
        """Let a run wait for the next; then carry both out, or die."""
        future: Future[SweepOutcome] = Future()
        self._runs[future] = run.seed
        self._open.append(future)
        is_deadly = self._deadly.get(run.seed, 0) > 0
        if is_deadly:
            self._deadly[run.seed] -= 1
        for each in self._open:
            if is_deadly:
                each.set_exception(BrokenProcessPool())
            else:
                each.set_result(SweepOutcome({"seed": self._runs[each]}, "", 0.0))
        self._open.clear()
        return future

    def renew(self) -> None:
        """Be there again."""
        self._open.clear()


def _carried_out(deadly: Sequence[int], times: int) -> dict[int, tuple[str, bool]]:
    found: dict[int, tuple[str, bool]] = {}

    def finished(run: SweepRun, outcome: SweepOutcome, is_final: bool) -> None:
        assert run.seed not in found
        assert outcome.error or {"seed": run.seed} == outcome.figures
        found[run.seed] = (outcome.error, is_final)

    runs = [SweepRun(CELL, seed) for seed in range(10)]
    carry_out_all(runs, _FragileWorkers(deadly, times), finished)
    return found


class _Broken(Executor):
    """An executor whose processes died while it was idle."""

    def submit(self, *_args: object, **_kwargs: object) -> Future[SweepOutcome]:  # type: ignore[override]
        """Refuse the run."""
        raise BrokenProcessPool


class _Done(Executor):
    """An executor whose runs are done at once."""

    def submit(self, *_args: object, **_kwargs: object) -> Future[SweepOutcome]:  # type: ignore[override]
        """Return an outcome without figures."""
        future: Future[SweepOutcome] = Future()
        future.set_result(SweepOutcome({}, "", 0.0))
        return future


def test_a_process_that_dies_between_two_runs_ends_nothing() -> None:
    """The next run begins in new processes."""
    executors: Iterator[Executor] = iter([_Broken(), _Done()])
    found: list[SweepOutcome] = []
    workers = SweepWorkers(lambda: next(executors), lambda: 1)
    carry_out_all([SweepRun(CELL, 1)], workers, lambda _run, outcome, _: found.append(outcome))
    assert [SweepOutcome({}, "", 0.0)] == found


def test_a_process_that_dies_once_costs_no_result() -> None:
    """Its runs are repeated."""
    assert dict.fromkeys(range(10), ("", True)) == _carried_out([3, 7], 1)


def test_a_run_that_kills_its_process_each_time_fails_alone() -> None:
    """The others are done; that one may be tried again later."""
    found = _carried_out([4], 99)
    error, is_final = found.pop(4)
    assert "the process of the run was killed, perhaps because memory was short" == error
    assert not is_final
    assert {("", True)} == set(found.values())
    assert 9 == len(found)


def test_a_file_that_changes_meanwhile_ends_the_sweep(tmp_path: Path) -> None:
    """Results before and after would not belong together."""
    write(tmp_path, day=f"{SCENARIO}objects: [more.yaml]\n", more=CLUSTER, sweep=SWEEP)
    plan = planned(tmp_path)
    write(tmp_path, more=f"{CLUSTER}# changed")
    with pytest.raises(UserError, match=r"more.yaml .*: it has changed since the sweep began"):
        carry_out_all(plan.runs(), inline_workers(), lambda *_: None)


SWEEP = """
version: 1
inputs: [{files: [day.yaml]}]
seeds: 2
"""
MEETING = """
    import os
    from pathlib import Path
    def run(case):
        here = case.files[0].parent
        if case.seed == 2 and (here / "gate").exists():
            (here / "gate").write_text(str(os.getpid()))
            (here / "never").open().close()
        return {"square": case.seed ** 2}
"""


@pytest.mark.slow
def test_a_dask_cluster_that_loses_a_worker_loses_no_run(tmp_path: Path) -> None:
    """Every result is there once, and the bytes are those of runs in this process."""
    write(tmp_path, day=SCENARIO, meeting=MEETING, sweep=f'{SWEEP}function: "meeting:run"\n')
    plan = planned(tmp_path)
    expected = [(run, carry_out(run)) for run in plan.runs()]
    for name in ("gate", "never"):
        os.mkfifo(tmp_path / name)

    def kill() -> None:
        pid = int((tmp_path / "gate").read_text())
        for name in ("gate", "never"):
            (tmp_path / name).unlink()
        os.kill(pid, signal.SIGKILL)

    killer = threading.Thread(target=kill)
    found: dict[int, SweepOutcome] = {}

    def finished(run: SweepRun, outcome: SweepOutcome, is_final: bool) -> None:
        assert is_final
        assert run.seed not in found
        found[run.seed] = outcome

    with (
        LocalCluster(
            n_workers=2, threads_per_worker=1, dashboard_address=None, silence_logs=50
        ) as cluster,
        dask_workers(cluster.scheduler_address) as workers,
    ):
        assert 2 == workers.cores()
        killer.start()
        carry_out_all(plan.runs(), workers, finished)
    killer.join()
    file = Path("a.csv")
    outcomes = [(run, found[run.seed]) for run in plan.runs()]
    assert encoded(run_columns(expected), file) == encoded(run_columns(outcomes), file)


def test_an_address_without_a_scheduler_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    """One line that names it."""
    monkeypatch.setattr(execution, "_CONNECT_SECONDS", 0.01)
    words = "--scheduler-address 127.0.0.1:1: no Dask scheduler answers there: "
    with pytest.raises(UserError, match=words), dask_workers("127.0.0.1:1"):
        pass
