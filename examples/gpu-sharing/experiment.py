"""Repeats the openb experiment of the FGD paper: GPU allocation while pods arrive, per policy.

Finished runs are appended to the results and not repeated, so the same command goes on after
Ctrl-C. Without --traces, the small synthetic trace in ../openb-like runs.
"""

import argparse
import csv
import hashlib
import os
import sys
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from itertools import product
from pathlib import Path
from time import monotonic
from typing import Final, NamedTuple

from openb_trace import ARRIVING_PERCENT, TraceError
from report import html_page, text_table
from runs import POLICIES, Run, run

from kubesched.sweep.execution import set_up_worker

_LOOK_ALIKE: Final = Path(__file__).resolve().parent.parent / "openb-like"
_COLUMNS: Final = ("trace", "policy", "seed", "input", "pods", "failed", "cpu_seconds")
_HEADER: Final = [*_COLUMNS, *(f"at_{percent}" for percent in range(ARRIVING_PERCENT + 1))]
_INTERRUPTED: Final = 130


class UsageError(ValueError):
    """An option has a wrong value."""


class Trace(NamedTuple):
    """A trace: its files, and a digest of what they contain."""

    name: str
    nodes: Path
    pods: Path
    digest: str


class Task(NamedTuple):
    """A run to do."""

    trace: Trace
    policy: str
    seed: int

    @property
    def key(self) -> tuple[str, ...]:
        """What identifies the run in the results."""
        return self.trace.name, self.policy, str(self.seed), self.trace.digest


def find_traces(directory: Path, names: Sequence[str]) -> list[Trace]:
    """Return the named traces of a directory, or all."""
    nodes = _first([directory / "openb_node_list_gpu_node.csv", directory / "nodes.csv"])
    prefix = "openb_pod_list_"
    lists = {
        file.name.removeprefix(prefix).partition(".")[0]: file
        for file in sorted(directory.glob(f"{prefix}*.csv*"), reverse=True)
    }
    if not lists:
        lists = {"pods": _first([directory / "pods.csv"])}
    unknown = [name for name in names if name not in lists]
    if unknown:
        known = ", ".join(sorted(lists))
        raise UsageError(f"--trace {unknown[0]}: {directory} has {known}")
    return [
        Trace(name, nodes, lists[name], _digest(nodes, lists[name]))
        for name in names or sorted(lists)
    ]


def _first(files: Sequence[Path]) -> Path:
    for file in files:
        if file.is_file():
            return file
    raise UsageError(f"--traces: {files[0]}: no such file")


def _digest(*files: Path) -> str:
    found = hashlib.sha256()
    for file in files:
        found.update(file.read_bytes())
    return found.hexdigest()[:12]


class Results:
    """The file of finished runs."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._rows: dict[tuple[str, ...], list[str]] = {}
        if path.exists():
            self._read()
        # A run that was interrupted while it was written is incomplete: it is left out.
        with path.open("w", newline="", encoding="utf-8") as stream:
            csv.writer(stream, lineterminator="\n").writerows([_HEADER, *self._rows.values()])

    def _read(self) -> None:
        with self._path.open(newline="", encoding="utf-8") as stream:
            header, *rows = [*csv.reader(stream)] or [[]]
        if header != _HEADER:
            raise UsageError(f"-o {self._path}: it has no results; name another file")
        self._rows = {tuple(row[:4]): row for row in rows if len(row) == len(_HEADER)}

    def __contains__(self, task: Task) -> bool:
        return task.key in self._rows

    def add(self, task: Task, found: Run) -> None:
        """Append a run."""
        allocated = ["" if value is None else f"{value:.2f}" for value in found.allocated]
        row = [*task.key, *map(str, (found.pods, found.failed, found.cpu_seconds)), *allocated]
        self._rows[task.key] = row
        with self._path.open("a", newline="", encoding="utf-8") as stream:
            csv.writer(stream, lineterminator="\n").writerow(row)

    def of(self, tasks: Iterable[Task]) -> Iterator[Run]:
        """Return the finished ones of some runs."""
        for task in tasks:
            row = self._rows.get(task.key)
            if row is not None:
                pods, failed, seconds, *allocated = row[4:]
                yield Run(
                    task.trace.name,
                    task.policy,
                    task.seed,
                    int(pods),
                    int(failed),
                    float(seconds),
                    tuple(float(value) if value else None for value in allocated),
                )


def sweep(tasks: Sequence[Task], results: Results, jobs: int) -> None:
    """Do the runs that are missing."""
    missing = [task for task in tasks if task not in results]
    _say(f"{len(tasks)} runs, {len(tasks) - len(missing)} of them done before")
    began = monotonic()
    executor = ProcessPoolExecutor(jobs, initializer=set_up_worker)
    try:
        running: dict[Future[Run], Task] = {}
        waiting = iter(missing)
        done = 0
        while True:
            # Few are started ahead, so that Ctrl-C need not wait for many.
            for task in waiting:
                trace = task.trace
                future = executor.submit(
                    run, trace.nodes, trace.name, trace.pods, task.policy, task.seed
                )
                running[future] = task
                if len(running) > jobs:
                    break
            if not running:
                return
            for future in wait(running, return_when=FIRST_COMPLETED).done:
                task, found = running.pop(future), future.result()
                results.add(task, found)
                done += 1
                _say_done(task, found, done, len(missing), monotonic() - began)
    finally:
        executor.shutdown(wait=True, cancel_futures=True)


def _say_done(task: Task, found: Run, done: int, count: int, seconds: float) -> None:
    at_100 = found.allocated[100]
    shown = "no pods" if at_100 is None else f"{at_100:.2f} % allocated at 100 %"
    left = seconds / done * (count - done)
    rest = f", {left / 60:.0f} min left" if left >= 60 else f", {left:.0f} s left" if left else ""
    _say(
        f"[{done}/{count}] {task.trace.name} {task.policy} seed {task.seed}: "
        f"{shown}, {found.cpu_seconds:.1f} s{rest}"
    )


def _say(text: str) -> None:
    sys.stderr.write(f"{text}\n")
    sys.stderr.flush()


def seeds_of(text: str) -> list[int]:
    """Return the seeds of a list such as `42-51` or `1,2,7-9`."""
    found: list[int] = []
    for part in text.split(","):
        first, dash, last = part.partition("-")
        if not (first.isdecimal() and (last.isdecimal() or not dash)):
            raise UsageError(f"--seeds {text}: write numbers or ranges, such as 42-51")
        found += range(int(first), int(last or first) + 1)
    if not found:
        raise UsageError(f"--seeds {text}: the range is empty")
    return found


def policies_of(text: str) -> list[str]:
    """Return the policies of a list."""
    found = text.split(",")
    for name in found:
        if name not in POLICIES:
            raise UsageError(f"--policies {name}: the policies are {', '.join(POLICIES)}")
    return found


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; return its exit code."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=_Formatter)
    parser.add_argument(
        "--traces",
        type=Path,
        default=_LOOK_ALIKE,
        metavar="DIR",
        help="directory with the node list and pod lists",
    )
    parser.add_argument(
        "--trace",
        action="append",
        default=[],
        metavar="NAME",
        help="a pod list, such as default for openb_pod_list_default.csv; "
        "repeatable [default: all]",
    )
    parser.add_argument("--policies", default=",".join(POLICIES), help="[default: %(default)s]")
    parser.add_argument("--seeds", default="42-51", help="[default: %(default)s]")
    parser.add_argument(
        "--jobs",
        type=int,
        default=os.cpu_count() or 1,
        metavar="N",
        help="processes [default: one per processor]",
    )
    parser.add_argument(
        "-o",
        "--output",
        type=Path,
        default=Path("results.csv"),
        metavar="FILE",
        help="results [default: %(default)s]",
    )
    parser.add_argument("--html", type=Path, metavar="FILE", help="write a page with the plots")
    options = parser.parse_args(arguments)
    try:
        return _run_all(options)
    except (UsageError, TraceError, OSError) as error:
        _say(f"experiment: error: {error}")
        return 2


def _run_all(options: argparse.Namespace) -> int:
    if options.jobs < 1:
        raise UsageError(f"--jobs {options.jobs}: at least one process is needed")
    traces = find_traces(options.traces, options.trace)
    seeds, policies = seeds_of(options.seeds), policies_of(options.policies)
    # Seed by seed, so that an interrupted sweep has runs of everything.
    tasks = [Task(trace, policy, seed) for seed, trace, policy in product(seeds, traces, policies)]
    results = Results(options.output)
    code = 0
    try:
        sweep(tasks, results, options.jobs)
    except KeyboardInterrupt:
        _say(f"interrupted; {options.output} has the finished runs, the same command goes on")
        code = _INTERRUPTED
    found = list(results.of(tasks))
    if found:
        sys.stdout.write(text_table(found))
        if options.html:
            options.html.write_text(html_page(found), encoding="utf-8")
    return code


class _Formatter(argparse.RawDescriptionHelpFormatter):
    """Keeps the lines of the description."""


if __name__ == "__main__":
    sys.exit(main())
