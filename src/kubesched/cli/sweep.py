"""`kubesched sweep`: many simulations on all cores or on a Dask cluster, with means."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from kubesched.cli.flags import FILE_PATH, duration_option, table_options

if TYPE_CHECKING:
    from kubesched.sweep.spec import SweepSpec

_NONE: Final = "none"


@click.command()
@click.argument("file", metavar="[SWEEP]", required=False, type=FILE_PATH)
@table_options("sweep")
@duration_option
@table_options("sweep at the end")
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
    """Run many simulations, and report means with confidence intervals.

    Runs are all combinations of inputs, configurations, plugins, parameters and seeds. SWEEP is a
    YAML file that lists them; options replace what it lists. An input is what `kubesched simulate`
    takes: a scenario, which is simulated over time, or a cluster, whose pending pods are placed.

    Finished runs are appended to FILE.runs. The same command goes on where it was interrupted or
    killed, and does runs again whose inputs have changed. FILE is written at the end, as a whole.
    The same inputs and seeds give the same bytes, on one core or many.

    A run that fails, because a plugin raises, is a row with its error; the exit code is 1 then.

    \b
    Examples:
      kubesched sweep sweep.yaml -o results.csv
      kubesched sweep sweep.yaml --dry-run
      kubesched sweep --input day.yaml --config spread.yaml --config pack.yaml --seeds 10 -o a.csv
      kubesched sweep sweep.yaml -o results.parquet --scheduler-address tcp://dask:8786
    """
    from kubesched.cli.errors import write_warnings
    from kubesched.cli.files import check_inputs, check_outputs
    from kubesched.cli.sweep_run import run_sweep, write_runs
    from kubesched.inputs.errors import UserError
    from kubesched.sweep.plan import plan_of
    from kubesched.sweep.results import check_format

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
        write_runs(plan)
        return 0
    return run_sweep(plan, output, summary, jobs, address)


def _read(file: Path | None) -> SweepSpec:
    from kubesched.inputs.errors import UserError
    from kubesched.inputs.loading import in_file
    from kubesched.inputs.scenario_input import holds_cluster
    from kubesched.sweep.spec import VERSION, SweepSpec, load_sweep

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
    from msgspec.structs import replace

    from kubesched.sweep.spec import SweepConfiguration, SweepInput, SweepPlugins

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
