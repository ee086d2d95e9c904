"""`kubesched compare`: compare scenarios, or configurations on one scenario."""

from __future__ import annotations

from pathlib import Path

import click

from kubesched.cli.errors import EXIT_INTERRUPTED, write_warnings
from kubesched.cli.options import (
    FILE_PATH,
    IntRange,
    OutputFormat,
    duration_option,
    feature_gates_option,
    html_option,
    output_option,
    plugin_option,
)
from kubesched.cli.output import simple_table, write_document, writer
from kubesched.inputs.errors import UserError
from kubesched.inputs.sources import SchedulerOptions


@click.command()
@click.argument("files", metavar="SCENARIO...", nargs=-1, required=True, type=FILE_PATH)
@click.option(
    "--config",
    "configs",
    type=FILE_PATH,
    multiple=True,
    metavar="FILE",
    help="KubeSchedulerConfiguration instead of the scenario's. Two or more are compared on one "
    "scenario. Repeatable.",
)
@click.option(
    "--seed",
    type=IntRange(min=0),
    metavar="N",
    help="Seed of all random sources, the same for all runs [default: the first scenario's].",
)
@duration_option
@html_option
@output_option
@feature_gates_option
@plugin_option
def compare(
    files: tuple[Path, ...],
    configs: tuple[Path, ...],
    seed: int | None,
    duration_seconds: float | None,
    html: Path | None,
    output: OutputFormat,
    feature_gates: tuple[str, ...],
    plugin: tuple[str, ...],
) -> int:
    """Simulate scenarios over time, and compare the reports.

    Give two or more SCENARIOs, or one with two or more --config. All run with the same seed and for
    the same time. The table compares allocation, fragmentation, waits, pending pods and
    preemptions; --html draws them in common charts.

    \b
    Examples:
      kubesched compare today.yaml tomorrow.yaml --html comparison.html
      kubesched compare scenario.yaml --config spread.yaml --config pack.yaml
    """  # noqa: D301 - \b stops click from rewrapping the paragraph
    from kubesched.cli.files import check_inputs, check_outputs, write_text
    from kubesched.cli.scenario_input import (
        named_files,
        read_scenario,
        with_scheduler,
        workload_warnings,
    )
    from kubesched.cli.simulate_timeline import play
    from kubesched.simulator.comparison import compared
    from kubesched.simulator.comparison_html import comparison_html

    if len(files) > 1 and len(configs) > 1:
        raise UserError("give several scenarios or several --config, not both")
    if len(files) == 1 and len(configs) < 2:
        raise UserError("there is nothing to compare: give a second scenario, or two --config")
    check_inputs([*files, *configs])
    found = [read_scenario(file) for file in files]
    named = [file for each in found for file in named_files(each.scenario).values()]
    check_outputs({"--html": html}, [*files, *configs, *named])
    plays = []
    for each in found:
        for config in configs or (None,):
            options = SchedulerOptions(
                config=config, feature_gates=",".join(feature_gates), plugins=plugin
            )
            plays.append(with_scheduler(each, options))
        write_warnings(workload_warnings(each))
    common = plays[0].scenario.seed if seed is None else seed
    plays = [each.changed(common, duration_seconds) for each in plays]
    if len({each.scenario.duration for each in plays}) > 1:
        raise UserError("the scenarios have different durations; give --duration")
    names = _names(configs if len(configs) > 1 else files)
    reports = []
    for name, each in zip(names, plays, strict=True):
        reports.append(play(each))
        if reports[-1].partial:
            click.echo(
                f"kubesched: no comparison: {name} was interrupted; see --duration", err=True
            )
            return EXIT_INTERRUPTED
    comparison = compared(names, reports)
    if html is not None:
        write_text(html, comparison_html(comparison, reports))
    if output is not OutputFormat.TABLE:
        write_document(comparison, output)
        return 0
    rows = [(row.name, *row.texts()) for row in comparison.measures]
    writer().table(simple_table(("what", *names), rows, *names))
    return 0


def _names(files: tuple[Path, ...]) -> list[str]:
    """Return short, distinct names of the files."""
    stems = [file.stem for file in files]
    if len(set(stems)) == len(stems):
        return stems
    paths = [str(file) for file in files]
    return [f"{name} ({i})" if paths.count(name) > 1 else name for i, name in enumerate(paths, 1)]
