"""`kubesched compare`: compare clusters, scenarios, or configurations on one of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import click

from kubesched.cli.errors import EXIT_INTERRUPTED, write_warnings
from kubesched.cli.flags import (
    FILE_PATH,
    OutputFormat,
    duration_option,
    feature_gates_option,
    html_option,
    output_option,
    plugin_option,
    table_options,
)
from kubesched.cli.output import Writer, write_answer, write_page
from kubesched.explain.tables import TextTable
from kubesched.inputs.errors import UserError
from kubesched.inputs.sources import ClusterSource, SchedulerOptions

if TYPE_CHECKING:
    from kubesched.simulator.timeline_report import TimelineComparison


@click.command()
@click.argument("files", metavar="[FILES]...", nargs=-1, type=FILE_PATH)
@table_options("compare")
@duration_option
@html_option
@output_option
@feature_gates_option
@plugin_option
def compare(
    files: tuple[Path, ...],
    contexts: tuple[str, ...],
    kubeconfig: Path | None,
    complete: bool,
    configs: tuple[Path, ...],
    seed: int | None,
    top: int,
    duration_seconds: float | None,
    html: Path | None,
    output: OutputFormat,
    feature_gates: str,
    plugins: tuple[str, ...],
) -> int:
    """Compare clusters, or simulations over time.

    Each of FILES is a cluster or a scenario, and all are of one sort. Give two or more; or one with
    several --config, or with one, which is compared with the default configuration.

    A cluster is a snapshot, another file or a directory that holds its objects, `-` for stdin, or a
    live cluster with --context; it is only read. The scheduler places the pending pods of each, as
    `kubesched simulate` does. The answer begins with what differs from the first: pods that land
    elsewhere, that no longer fit or newly fit, and pods and nodes that are in one only. Then follow
    the totals: utilisation, fragmentation, zones, evictions. Pods are the same if their names are.

    Scenarios are simulated over time, with the same seed and for the same time. The table compares
    allocation, fragmentation, waits, pending pods and preemptions; --html draws them in common
    charts.

    \b
    Examples:
      kubesched compare monday.json.gz tuesday.json.gz
      kubesched compare monday.json.gz --context production
      kubesched compare cluster.json --config spread.yaml --config pack.yaml
      kubesched compare today.yaml tomorrow.yaml --html comparison.html
    """
    from kubesched.cli.compare_clusters import compare_clusters, write_comparison
    from kubesched.cli.files import check_inputs, check_outputs
    from kubesched.inputs.scenario_input import holds_cluster

    check_inputs([*files, *configs, kubeconfig])
    saved = [file for file in files if holds_cluster(file)]
    live = [ClusterSource(kubeconfig=kubeconfig, context=name) for name in contexts]
    if kubeconfig is not None and not contexts:
        live.append(ClusterSource(kubeconfig=kubeconfig))
    inputs = len(files) + len(live)
    _check_count(inputs, len(configs), "clusters" if saved or live else "scenarios")
    given: list[Path | None] = [*configs] or [None]
    if inputs == len(configs) == 1:
        given.insert(0, None)
    options = [
        SchedulerOptions(
            config=config, feature_gates=feature_gates, plugins=plugins, seed=seed or 0
        )
        for config in given
    ]
    if not saved and not live:
        if complete:
            raise UserError("--complete is for clusters, and these are scenarios")
        return _compare_scenarios(files, options, seed, duration_seconds, html, output)
    check_outputs({"--html": html}, [*files, *configs, kubeconfig])
    _check_clusters(files, saved, {"--duration": duration_seconds})
    sources = [*(ClusterSource((file,), complete=complete) for file in files), *live]
    comparison = compare_clusters(sources, options)
    if comparison is None:
        return EXIT_INTERRUPTED
    write_answer(comparison, output, partial(write_comparison, top=top), html)
    return 0


def _check_count(inputs: int, configs: int, sort: str) -> None:
    """Raise UserError unless there are several inputs, or configurations on one."""
    if not inputs:
        raise UserError("there is nothing to compare: name files, or --context NAME")
    if inputs > 1 and configs > 1:
        raise UserError(f"give several {sort} or several --config, not both")
    if inputs == 1 and not configs:
        one = sort.removesuffix("s")
        raise UserError(f"there is nothing to compare: give a second {one}, or --config")


def _check_clusters(
    files: Sequence[Path], saved: Sequence[Path], others: Mapping[str, object]
) -> None:
    """Raise UserError if a file is no cluster, or an option is for scenarios."""
    from kubesched.inputs.scenario_input import read_scenario

    if len(saved) < len(files):
        if saved:
            # Raises an error with the reason.
            read_scenario(saved[0])
        other = next(file for file in files if file not in saved)
        raise UserError(
            f"{other}: this is no cluster; clusters are compared with clusters, and scenarios with "
            "scenarios"
        )
    for flag, value in others.items():
        if value is not None:
            raise UserError(f"{flag} is for scenarios, and these are clusters")


def _compare_scenarios(
    files: tuple[Path, ...],
    options: list[SchedulerOptions],
    seed: int | None,
    duration_seconds: float | None,
    html: Path | None,
    output: OutputFormat,
) -> int:
    from kubesched.cli.files import check_outputs, short_names
    from kubesched.cli.simulate_timeline import play
    from kubesched.inputs.scenario_input import (
        named_files,
        read_scenario,
        with_scheduler,
        workload_warnings,
    )
    from kubesched.simulator.timeline_report import compared

    configs = [each.config for each in options if each.config is not None]
    found = [read_scenario(file) for file in files]
    read = [file for each in found for file in named_files(each.scenario).values()]
    check_outputs({"--html": html}, [*files, *configs, *read])
    plays = []
    for each in found:
        plays += [with_scheduler(each, one) for one in options]
        write_warnings(workload_warnings(each))
    common = plays[0].scenario.seed if seed is None else seed
    plays = [each.changed(common, duration_seconds) for each in plays]
    if len({each.scenario.duration for each in plays}) > 1:
        raise UserError("the scenarios have different durations; give --duration")
    named = [each.config or files[0] for each in options] if len(options) > 1 else files
    names = short_names(named)
    reports = []
    for name, each in zip(names, plays, strict=True):
        reports.append(play(each))
        if reports[-1].partial:
            click.echo(
                f"kubesched: no comparison: {name} was interrupted; see --duration", err=True
            )
            return EXIT_INTERRUPTED
    comparison = compared(names, reports)
    write_page(html, comparison, *reports)
    write_answer(comparison, output, _write_measures)
    return 0


def _write_measures(writer: Writer, comparison: TimelineComparison) -> None:
    rows = [(row.name, *row.texts()) for row in comparison.measures]
    writer.table(TextTable(("what", *comparison.runs), rows, comparison.runs), indent=0)
