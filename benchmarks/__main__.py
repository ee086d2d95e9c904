"""Runs the benchmarks, prints tables, and adds a line to the history.

Each measurement runs in its own process, one after the other.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Final, TypeVar

import msgspec
from msgspec.structs import replace

from benchmarks import (
    diverse,
    footprint,
    kernels,
    live,
    long,
    loop,
    million,
    openb,
    overload,
    plugins,
    preemption,
    scaling,
)
from benchmarks.history import ROOT, Record, append, last, new_record
from benchmarks.tables import caption, tables
from benchmarks.throughput import Throughput, Tracing
from benchmarks.workloads import WORKLOADS

T = TypeVar("T")

ALL: Final = "all"
TABLE: Final = "table"
SUITES: Final = ("throughput", "plugins", "kernels", "scaling", "loop")
ON_REQUEST: Final = (
    "live",
    "footprint",
    "long",
    "openb",
    "diverse",
    "million",
    "overload",
    "preemption",
)
"""Suites that run only on request: they take minutes or need files."""
_QUICK_DIVISOR: Final = 10
_QUICK_KERNEL_SIZES: Final = (500, 5000)
_QUICK_TURNS: Final = 2
_TRACED: Final = "SchedulingBasic"
_TRACED_PODS: Final = 500


def _measured(kind: type[T], module: str, *arguments: object) -> T:
    """Run a module of this package in its own process and return its figures."""
    words = [module, *map(str, arguments)]
    sys.stderr.write(f"{' '.join(words)}\n")
    command = [sys.executable, "-m", f"benchmarks.{words[0]}", *words[1:]]
    done = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, check=True)  # noqa: S603 - our own module
    return msgspec.json.decode(done.stdout, type=kind)


def _matching_workloads(only: str) -> list[str]:
    return [each.name for each in WORKLOADS if only.lower() in each.name.lower()]


def _suites(options: argparse.Namespace) -> Sequence[str]:
    if options.suite != ALL:
        return (options.suite,)
    if not options.only:
        return SUITES
    return ("throughput",) if _matching_workloads(options.only) else ("plugins", "kernels")


def _throughput(record: Record, repeats: int) -> Record:
    divisor = _QUICK_DIVISOR if record.is_quick else 1
    found: dict[str, Throughput] = {}
    names = _matching_workloads(record.only)
    for name in names:
        runs = [
            _measured(Throughput, "throughput", name, "--divisor", divisor) for _ in range(repeats)
        ]
        runs.sort(key=lambda run: run.pods_per_cpu_second)
        found[name] = runs[len(runs) // 2]
    tracing = None
    if _TRACED in names:
        arguments = ("--divisor", divisor, "--trace", _TRACED_PODS)
        tracing = _measured(Tracing, "throughput", _TRACED, *arguments)
    return replace(record, throughput=found, tracing=tracing)


def _plugins(record: Record) -> Record:
    nodes = plugins.NODES // (_QUICK_DIVISOR if record.is_quick else 1)
    arguments = ("--nodes", nodes, "--only", record.only)
    return replace(record, plugins=_measured(plugins.Costs, "plugins", *arguments))


def _kernels(record: Record) -> Record:
    found: dict[str, dict[int, float]] = {}
    for nodes in _QUICK_KERNEL_SIZES if record.is_quick else kernels.SIZES:
        arguments = ("--nodes", nodes, "--only", record.only)
        for name, cost in _measured(dict[str, float], "kernels", *arguments).items():
            found.setdefault(name, {})[nodes] = cost
    return replace(record, kernels=found)


def _scaling(record: Record) -> Record:
    arguments: tuple[object, ...] = ()
    if record.is_quick:
        arguments = ("--turns", _QUICK_TURNS, "--sizes", *_QUICK_KERNEL_SIZES)
    return replace(record, scaling=_measured(scaling.Scaling, "scaling", *arguments))


def _loop(record: Record) -> Record:
    divisor = _QUICK_DIVISOR if record.is_quick else 1
    arguments = ("--nodes", loop.NODES // divisor, "--pods", loop.PODS // divisor)
    return replace(record, loop=_measured(loop.LoopSpeed, "loop", *arguments))


def _long(record: Record) -> Record:
    hours = long.HOURS // (_QUICK_DIVISOR**2 if record.is_quick else 1)
    return replace(record, long=_measured(long.LongRun, "long", "--hours", hours))


def _live(record: Record, nodes: int | None, pods: int | None) -> Record:
    divisor = _QUICK_DIVISOR if record.is_quick else 1
    nodes, pods = nodes or live.NODES, pods or live.PODS
    arguments = ("--nodes", nodes // divisor, "--pods", pods // divisor)
    return replace(record, live=_measured(live.LiveRun, "live", *arguments))


def _footprint(record: Record) -> Record:
    divisor = _QUICK_DIVISOR if record.is_quick else 1
    arguments = ("--nodes", footprint.NODES // divisor, "--pods", footprint.PODS // divisor)
    found = _measured(footprint.Footprint, "footprint", *arguments)
    return replace(record, footprint=found)


def _openb(record: Record, directory: Path | None) -> Record:
    arguments = () if directory is None else ("--trace", directory)
    return replace(record, openb=_measured(dict[str, openb.Replay], "openb", *arguments))


def _diverse(record: Record) -> Record:
    divisor = _QUICK_DIVISOR if record.is_quick else 1
    arguments = ("--nodes", diverse.NODES // divisor, "--pods", diverse.PODS // divisor)
    found = {
        shape: _measured(diverse.Diverse, "diverse", shape, *arguments)
        for shape in diverse.SHAPES
        if record.only.lower() in shape.lower()
    }
    return replace(record, diverse=found)


def _million(record: Record, nodes: int | None, pods: int | None) -> Record:
    divisor = _QUICK_DIVISOR if record.is_quick else 1
    nodes, pods = nodes or million.NODES, pods or million.PODS
    arguments = ("--nodes", nodes // divisor, "--pods", pods // divisor)
    found = {
        kind: _measured(million.Million, "million", kind, *arguments)
        for kind in million.KINDS
        if record.only.lower() in kind
    }
    return replace(record, million=found)


def _overload(record: Record) -> Record:
    hours = overload.HOURS / (_QUICK_DIVISOR if record.is_quick else 1)
    found = [
        _measured(overload.Overload, "overload", nodes, "--load", load, "--hours", hours)
        for nodes, load in overload.CASES
        if record.only in {"", str(nodes)}
    ]
    return replace(record, overload=tuple(found))


def _preemption(record: Record) -> Record:
    divisor = _QUICK_DIVISOR if record.is_quick else 1
    sizes = "--nodes", preemption.NODES // divisor, "--preemptors", preemption.PREEMPTORS // divisor
    found = _measured(preemption.PreemptionSpeed, "preemption", *sizes)
    return replace(record, preemption=found)


def _run(options: argparse.Namespace) -> Record:
    runners: dict[str, Callable[[Record], Record]] = {
        "throughput": partial(_throughput, repeats=options.repeat),
        "plugins": _plugins,
        "kernels": _kernels,
        "scaling": _scaling,
        "loop": _loop,
        "live": partial(_live, nodes=options.nodes, pods=options.pods),
        "footprint": _footprint,
        "long": _long,
        "openb": partial(_openb, directory=options.trace),
        "diverse": _diverse,
        "million": partial(_million, nodes=options.nodes, pods=options.pods),
        "overload": _overload,
        "preemption": _preemption,
    }
    record = new_record(is_quick=options.quick, only=options.only)
    for suite in _suites(options):
        record = runners[suite](record)
    return record


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser("benchmarks", description=__doc__)
    parser.add_argument("suite", nargs="?", choices=(*SUITES, *ON_REQUEST, ALL, TABLE), default=ALL)
    parser.add_argument("--only", default="", metavar="NAME", help="only what contains NAME")
    parser.add_argument("--quick", action="store_true", help="a tenth of the size")
    parser.add_argument(
        "--repeat", type=int, default=1, metavar="N", help="median of N runs of each workload"
    )
    parser.add_argument(
        "--trace", type=Path, metavar="DIRECTORY", help="where the openb trace is, for openb"
    )
    parser.add_argument("--nodes", type=int, metavar="N", help="of live and million")
    parser.add_argument("--pods", type=int, metavar="N", help="of live and million")
    parser.add_argument("-o", dest="output", choices=("table", "json"), default="table")
    parser.add_argument("--no-history", action="store_true", help="do not add to the history")
    return parser


def _print_page() -> int:
    record = last()
    if record is None:
        sys.stderr.write("benchmarks: error: no history yet: run the benchmarks first\n")
        return 2
    print(caption(record), end=".\n\n")
    print("\n".join(table.markdown() for table in tables(record)), end="")
    return 0


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the selected benchmarks; return the exit code."""
    options = _parser().parse_args(arguments)
    if options.suite == TABLE:
        return _print_page()
    record = _run(options)
    shown = list(tables(record))
    if not shown:
        sys.stderr.write(f"benchmarks: error: nothing contains {options.only!r}\n")
        return 2
    if not options.no_history:
        append(record)
    if options.output == "json":
        print(msgspec.json.encode(record).decode())
        return 0
    print(caption(record), end="\n\n")
    print("\n".join(table.text() for table in shown), end="")
    return 0


if __name__ == "__main__":
    sys.exit(main())
