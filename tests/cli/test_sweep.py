"""`kubesched sweep`: options, results, exit codes, and what survives a kill."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import Result

from kubesched.cli import sweep
from tests.sweep.sweeps import CLUSTER, RAISING, SCENARIO, SWEEP, no_processes, write

from .cluster import refused, run

BLOCKING = """
    from pathlib import Path
    def run(case):
        gate = case.files[0].parent / "gate"
        if case.seed > 2 and gate.exists():
            gate.open().close()  # It waits for a writer.
        return {"square": case.seed ** 2}
"""
OF_FUNCTION = """
    version: 1
    inputs: [{files: [day.yaml]}]
    function: "blocking:run"
    seeds: 4
"""


@pytest.fixture(autouse=True)
def _here(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Run in the test's directory and process."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sweep, "local_workers", no_processes)


def _sweep(*arguments: str) -> Result:
    return run("sweep", *arguments)


def _lines(text: str, start: str) -> list[str]:
    return [line for line in text.splitlines() if line.startswith(start)]


def test_a_sweep_writes_results_and_means(tmp_path: Path) -> None:
    """And nothing but the journal beside them; the same command has nothing to do."""
    write(tmp_path, day=SCENARIO, sweep=SWEEP)
    first = _sweep("sweep.yaml", "-o", "a.csv", "--summary", "b.csv")
    assert (0, "4 runs, 0 of them done before") == (first.exit_code, first.stderr.splitlines()[0])
    assert 4 == len([line for line in first.stderr.splitlines() if "/4] day default none" in line])
    assert "Means over 2 seeds ± 95 % confidence, by load" == first.stdout.splitlines()[0]
    results = Path("a.csv").read_bytes()
    assert 5 == results.count(b"\n")
    assert {"a.csv", "a.csv.runs", "b.csv", "day.yaml", "sweep.yaml"} == {
        file.name for file in Path().iterdir()
    }
    again = _sweep("sweep.yaml", "-o", "a.csv")
    assert "4 runs, 4 of them done before" == again.stderr.splitlines()[0]
    assert [] == _lines(again.stderr, "[")
    assert (first.stdout, results) == (again.stdout, Path("a.csv").read_bytes())


def test_changed_inputs(tmp_path: Path) -> None:
    """They are named, and their runs are repeated; more seeds only add runs."""
    write(tmp_path, day=SCENARIO, sweep=SWEEP)
    _sweep("sweep.yaml", "-o", "a.csv")
    write(tmp_path, day=SCENARIO.replace("cpu: 4", "cpu: 3"))
    found = _sweep("sweep.yaml", "-o", "a.csv", "--seeds", "2-3")
    assert [
        "kubesched: warning: input day has changed: 2 finished runs will be done again",
        "4 runs, 0 of them done before",
    ] == found.stderr.splitlines()[:2]
    more = _sweep("sweep.yaml", "-o", "a.csv", "--seeds", "2-4")
    assert "6 runs, 4 of them done before" == more.stderr.splitlines()[0]


def test_options_are_a_sweep_of_their_own(tmp_path: Path) -> None:
    """Scenarios and clusters, configurations, plugins and seeds."""
    write(tmp_path, day=SCENARIO, prod=CLUSTER, mine=RAISING)
    inputs = ("--input", "day.yaml", "--input", "prod.yaml", "--duration", "5m")
    plugins = ("--plugin", "none", "--plugin", "mine.py:Mine")
    found = _sweep(*inputs, *plugins, "--seeds", "7,9", "--dry-run")
    rows = [line.split() for line in found.stdout.splitlines()[1:]]
    assert [
        [given, "default", added, seed]
        for given in ("day", "prod")
        for added in ("none", "Mine")
        for seed in ("7", "9")
    ] == rows
    ran = _sweep(*inputs, *plugins, "-o", "a.csv")
    assert 1 == ran.exit_code
    words = "plugin Mine raised in Filter for pod default/job-0: KeyError: 'gpu'"
    (failed,) = _lines(ran.stderr, "kubesched: error: ")
    assert (
        f"2 of 4 runs failed, see column error; the first is day default Mine seed 1: {words}"
        in failed
    )
    assert 2 == Path("a.csv").read_text().count("plugin Mine raised")


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (["-o", "a.csv"], "there is nothing to run: name a SWEEP file, or --input FILE"),
        (["sweep.yaml"], "name a file for the results: -o results.csv, or .parquet"),
        (["sweep.yaml", "-o", "a.txt"], "a.txt: results are written as .csv or .parquet"),
        (["none.yaml", "-o", "a.csv"], "none.yaml: it cannot be read: No such file or directory"),
        (["cluster.yaml", "-o", "a.csv"], "cluster.yaml: this holds a cluster, not a sweep; write"),
        (["sweep.yaml", "-o", "a.csv", "--seeds", "3-1"], "sweep.yaml: seeds: Invalid value"),
        (
            ["sweep.yaml", "-o", "a.csv", "--jobs", "2", "--scheduler-address", "tcp://x"],
            "--jobs is for this machine",
        ),
        (["sweep.yaml", "-o", "a.csv", "--summary", "a.csv"], "--summary a.csv: this is the file"),
    ],
)
def test_wrong_options(arguments: list[str], problem: str, tmp_path: Path) -> None:
    """Nothing is written."""
    write(tmp_path, day=SCENARIO, sweep=SWEEP, cluster="kind: Node\n")
    before = {file.name for file in Path().iterdir()}
    assert refused("sweep", *arguments).startswith(problem)
    assert before == {file.name for file in Path().iterdir()}


def test_interrupted_before_the_first_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """There is nothing to continue from."""
    write(tmp_path, day=SCENARIO, sweep=SWEEP)

    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("kubesched.cli.sweep.carry_out_all", interrupted)
    result = _sweep("sweep.yaml", "-o", "a.csv")
    assert 130 == result.exit_code
    assert "kubesched: interrupted; no run has ended" == result.stderr.splitlines()[-1]


@pytest.mark.slow
@pytest.mark.parametrize(("sent", "code"), [(signal.SIGINT, 130), (signal.SIGKILL, -9)])
def test_interrupted_sweep(sent: signal.Signals, code: int, tmp_path: Path) -> None:
    """It keeps finished runs, leaves no process, and ends with the same bytes."""
    write(tmp_path, day=SCENARIO, blocking=BLOCKING, sweep=OF_FUNCTION)
    os.mkfifo(tmp_path / "gate")
    command = [sys.executable, "-m", "kubesched", "sweep", "sweep.yaml", "-o", "a.csv"]
    command += ["--jobs", "2"]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE) as process:  # noqa: S603 - our own command
        assert process.stderr is not None
        lines = iter(process.stderr.readline, b"")
        assert b"4 runs, 0 of them done before\n" == next(lines)
        assert [b"[1/4]", b"[2/4]"] == [next(lines)[:5] for _ in range(2)]
        process.send_signal(sent)
        # The pipe ends when the last process that has it is gone.
        rest = b"".join(lines)
        assert code == process.wait(10)
    kept = (
        b"kubesched: interrupted; 2 of 4 runs are in a.csv.runs, and the same command continues\n"
    )
    assert (rest == kept) == (sent is signal.SIGINT)
    assert not Path("a.csv").exists()
    Path("gate").unlink()
    again = _sweep("sweep.yaml", "-o", "a.csv")
    assert (0, "4 runs, 2 of them done before") == (again.exit_code, again.stderr.splitlines()[0])
    _sweep("sweep.yaml", "-o", "b.csv")
    assert Path("b.csv").read_bytes() == Path("a.csv").read_bytes()
