"""`kubesched sweep`: options, progress, results, and the table of means."""

from __future__ import annotations

import itertools
import math
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path
from typing import Final

import click
from msgspec.structs import replace

from kubesched.cli.errors import (
    EXIT_INTERRUPTED,
    EXIT_PLUGIN,
    naming,
    one_line,
    printable,
    write_errors,
    write_slow_plugin,
    write_warnings,
)
from kubesched.cli.files import check_inputs, check_outputs, write_file
from kubesched.cli.output import TextTable, Writer, in_parts, writer
from kubesched.cli.streams import stdout
from kubesched.explain.sentences import count
from kubesched.inputs.errors import UserError
from kubesched.inputs.loading import in_file
from kubesched.inputs.scenario_input import holds_cluster
from kubesched.sweep.execution import (
    SweepOutcome,
    SweepWorkers,
    carry_out_all,
    dask_workers,
    inline_workers,
    local_workers,
)
from kubesched.sweep.plan import SweepPlan, SweepRun, plan_of
from kubesched.sweep.results import (
    CellSummary,
    Outcomes,
    SweepJournal,
    SweepMean,
    check_format,
    encoded,
    run_columns,
    summaries,
    summary_columns,
)
from kubesched.sweep.spec import (
    AXES,
    ERROR,
    SEED,
    VERSION,
    SweepConfiguration,
    SweepInput,
    SweepPlugins,
    SweepSpec,
    load_sweep,
)

_NONE: Final = "none"
_ABSENT: Final = "-"


def sweep(
    file: Path | None,
    inputs: tuple[str, ...],
    configs: tuple[Path, ...],
    plugins: tuple[str, ...],
    seeds: str | None,
    duration_seconds: float | None,
    output: Path | None,
    summary: Path | None,
    jobs: int | None,
    address: str | None,
    dry_run: bool,
) -> int:
    """Carry out a sweep, or list its runs; return the exit code."""
    check_inputs([file])
    if file is None and not inputs:
        raise UserError("there is nothing to run: name a SWEEP file, or --input FILE")
    if output is None and not dry_run:
        raise UserError("name a file for the results: -o results.csv, or .parquet")
    if address is not None and jobs is not None:
        raise UserError("--jobs is for this machine; leave out --jobs, or --scheduler-address")
    for each in (output, summary):
        if each is not None:
            check_format(each)
    spec = _with_options(_read(file), inputs, configs, plugins, seeds, duration_seconds)
    plan = plan_of(spec, file)
    write_warnings(plan.warnings)
    check_outputs({"-o": output, "--summary": summary}, [file, *plan.files])
    if output is None or dry_run:
        _write_runs(plan)
        return 0
    return _run(plan, output, summary, jobs, address)


def _read(file: Path | None) -> SweepSpec:
    if file is None:
        return SweepSpec(version=VERSION)
    if holds_cluster(file):
        raise UserError(f"{file}: this holds a cluster, not a sweep; write --input {file}")
    with in_file(file):
        return load_sweep(file)


def _with_options(
    spec: SweepSpec,
    inputs: tuple[str, ...],
    configs: tuple[Path, ...],
    plugins: tuple[str, ...],
    seeds: str | None,
    duration_seconds: float | None,
) -> SweepSpec:
    """Return the sweep with what the options replace; their files are relative to here."""
    if inputs:
        files = (tuple(map(_absolute, each.split(","))) for each in inputs)
        spec = replace(spec, inputs=tuple(SweepInput(files=each) for each in files))
    if configs:
        read = tuple(SweepConfiguration(file=_absolute(str(each))) for each in configs)
        spec = replace(spec, configurations=read)
    if plugins:
        lists = ([] if each == _NONE else each.split(",") for each in plugins)
        alternatives = tuple(SweepPlugins(plugins=tuple(map(_plugin, each))) for each in lists)
        spec = replace(spec, plugins=alternatives)
    if seeds is not None:
        spec = replace(spec, seeds=int(seeds) if seeds.isdecimal() else seeds)
    if duration_seconds is not None:
        spec = replace(spec, duration=duration_seconds)
    return spec


def _absolute(file: str) -> str:
    return os.path.abspath(file)  # noqa: PTH100 - links stay as they are


def _plugin(text: str) -> str:
    place, _, name = text.rpartition(":")
    return f"{_absolute(place)}:{name}" if place.endswith(".py") else text


def _write_runs(plan: SweepPlan) -> None:
    labels = list(plan.cells[0].labels)
    rows = [tuple(map(str, run.key)) for run in plan.runs()]
    writer().table(TextTable((*labels, SEED), rows, (SEED,)), indent=0)


def _run(
    plan: SweepPlan, output: Path, summary: Path | None, jobs: int | None, address: str | None
) -> int:
    """Carry out the runs that are missing, and write all results.

    Finished runs are kept in a file beside `output`. `jobs` is the number of processes, None for
    one per core; `address` is that of a Dask scheduler, None for this machine. Returns the exit
    code: 1 if a run has failed, 130 after Ctrl-C.
    """
    kept = output.with_name(f"{output.name}.runs")
    journal = SweepJournal(kept)
    runs = plan.runs()
    outcomes = {run.key: each for run in runs if (each := journal.outcome(run)) is not None}
    missing = [run for run in plan.by_seed() if run.key not in outcomes]
    write_warnings(
        f"{name} has changed: {count(number, 'finished run')} will be done again"
        for name, number in journal.changed(runs).items()
    )
    click.echo(f"{count(len(runs), 'run')}, {len(outcomes)} of them done before", err=True)

    slow: set[str] = set()

    def finished(run: SweepRun, outcome: SweepOutcome, is_final: bool) -> None:
        outcomes[run.key] = outcome
        for method, mean in outcome.slow.items():
            if method not in slow:
                write_slow_plugin(method, mean)
        slow.update(outcome.slow)
        if is_final:
            journal.add(run, outcome)
        count_run(run, outcome)

    try:
        if missing:
            with (
                _workers(len(missing), jobs, address) as workers,
                _progress(len(missing)) as count_run,
            ):
                carry_out_all(missing, workers, finished)
    except KeyboardInterrupt:
        words = (
            f"{len(outcomes)} of {count(len(runs), 'run')} are in {printable(str(kept))}, and the"
        )
        words = f"{words} same command continues" if outcomes else "no run has ended"
        click.echo(f"kubesched: interrupted; {words}", err=True)
        return EXIT_INTERRUPTED
    found = [(run, outcomes[run.key]) for run in runs]
    cells = summaries(found, plan.show)
    write_file(output, encoded(run_columns(found), output))
    if summary is not None:
        write_file(summary, encoded(summary_columns(cells), summary))
    _write_means(cells, len(plan.seeds))
    _write_times(found)
    return _report_failures(found)


def _workers(
    missing: int, jobs: int | None, address: str | None
) -> AbstractContextManager[SweepWorkers]:
    if address is not None:
        return dask_workers(address)
    if missing == 1:
        # To start another process would take half a second.
        return nullcontext(inline_workers())
    return local_workers(min(jobs or _cores(), missing))


def _cores() -> int:
    """Return the number of cores that this process may use."""
    affinity = getattr(os, "sched_getaffinity", None)
    return len(affinity(0)) if affinity is not None else os.cpu_count() or 1


# Progress.


@contextmanager
def _progress(total: int) -> Iterator[Callable[[SweepRun, SweepOutcome], None]]:
    """Yield a function that counts a finished run on stderr: in a bar, elsewhere with a line."""
    if not sys.stderr.isatty() or os.environ.get("TERM") == "dumb":
        done = itertools.count(1)

        def write(run: SweepRun, outcome: SweepOutcome) -> None:
            text = f"[{next(done)}/{total}] {_title(run)}: {_end(outcome)}"
            click.echo(one_line(text), err=True)

        yield write
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TimeRemainingColumn

    columns = (BarColumn(), MofNCompleteColumn(), "runs,", TimeRemainingColumn(), "left")
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("runs", total=total)

        def advance(run: SweepRun, outcome: SweepOutcome) -> None:
            bar.advance(task)
            if outcome.error:
                text = one_line(f"{_title(run)}: {_end(outcome)}")
                bar.console.print(text, markup=False, highlight=False, soft_wrap=True)

        yield advance


def _title(run: SweepRun) -> str:
    axes = " ".join(str(run.cell.labels[name]) for name in AXES)
    rest = (f"{name}={run.cell.labels[name]}" for name in run.cell.labels if name not in AXES)
    return " ".join((axes, *rest, f"seed {run.seed}"))


def _end(outcome: SweepOutcome) -> str:
    return f"failed: {outcome.error}" if outcome.error else f"{outcome.cpu_seconds:.1f} s"


# Results.


def _write_times(found: Outcomes) -> None:
    with naming("stdout"):
        # Both may go to the same terminal, and the table comes first.
        stdout().flush()
    total = sum(outcome.cpu_seconds for _, outcome in found)
    run, slowest = max(found, key=lambda pair: pair[1].cpu_seconds)
    click.echo(
        f"{total:.0f} s of CPU time; the longest run took {slowest.cpu_seconds:.1f} s: "
        f"{printable(_title(run))}",
        err=True,
    )


def _report_failures(found: Outcomes) -> int:
    """Report how many runs have failed; return the exit code."""
    failed = [(run, outcome) for run, outcome in found if outcome.error]
    if not failed:
        return 0
    run, outcome = failed[0]
    words = f"{len(failed)} of {count(len(found), 'run')} failed, see column {ERROR}; the first is"
    write_errors([f"{words} {_title(run)}: {outcome.error}"])
    return EXIT_PLUGIN


def _write_means(cells: Sequence[CellSummary], seeds: int) -> None:
    """Write a row per cell, or per figure if these are more."""
    names = list(cells[0].labels)
    different = [name for name in names if len({str(cell.labels[name]) for cell in cells}) > 1]
    shown = different or names[:1]
    figures = list(dict.fromkeys(name for cell in cells for name in cell.means))
    to = writer()
    what = f"Means over {seeds} seeds ± 95 % confidence" if seeds > 1 else "One seed"
    to.headline(f"{what}, by {', '.join(shown)}")
    heads = [tuple(str(cell.labels[name]) for name in shown) for cell in cells]
    means = [tuple(_mean(cell.means.get(name)) for name in figures) for cell in cells]
    if len(cells) < len(figures):
        titles = [" ".join(head) for head in heads]
        rows = list(zip(figures, *means, strict=True))
        _write_in_parts(to, TextTable(("figure", *titles), rows, titles), 1)
    else:
        rows = [(*head, *mean) for head, mean in zip(heads, means, strict=True)]
        _write_in_parts(to, TextTable((*shown, *figures), rows, figures), len(shown))


def _write_in_parts(to: Writer, table: TextTable, heads: int) -> None:
    """Write a table, in several parts if the page is too narrow."""
    for number, part in enumerate(in_parts(table, heads)):
        if number:
            to.line()
        to.table(part, indent=0)


def _mean(found: SweepMean | None) -> str:
    if found is None or found.mean is None:
        return _ABSENT
    if found.half_width is None or math.isclose(found.mean + found.half_width, found.mean):
        return f"{found.mean:.6g}"
    # Two digits of the interval are enough.
    digits = max(1 - math.floor(math.log10(found.half_width)), 0)
    return f"{found.mean:.{digits}f} ± {found.half_width:.{digits}f}"
