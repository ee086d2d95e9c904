"""`kubesched simulate`: place all pending pods of a cluster dump."""

from __future__ import annotations

from pathlib import Path

import click

from kubesched.cli.errors import EXIT_INTERRUPTED, write_warnings
from kubesched.cli.options import (
    OutputFormat,
    SchedulerOptions,
    files_argument,
    output_option,
    scheduler_options,
)
from kubesched.cli.output import write_document, writer

SECTIONS = ("summary", "placements", "unplaced", "zones", "nodes")


@click.command()
@files_argument
@click.option(
    "--pods",
    "pod_files",
    type=click.Path(path_type=Path),
    multiple=True,
    metavar="FILE",
    help="Place these pods too, whatever their nodeName and phase say. Other objects in FILE, such "
    "as claims, join the cluster. Repeatable.",
)
@click.option(
    "--show",
    "sections",
    type=click.Choice(SECTIONS),
    multiple=True,
    help="What the table output shows, in full [default: a summary]. Repeatable.",
)
@click.option("--all", "everything", is_flag=True, help="Show everything in the table output.")
@click.option(
    "--top",
    type=click.IntRange(min=1),
    default=5,
    show_default=True,
    metavar="N",
    help="How many reasons and nodes the summary shows.",
)
@output_option
@scheduler_options
def simulate(
    options: SchedulerOptions,
    files: tuple[Path, ...],
    pod_files: tuple[Path, ...],
    sections: tuple[str, ...],
    everything: bool,
    top: int,
    output: OutputFormat,
) -> int:
    """Place all pending pods of a cluster dump.

    FILES hold the cluster: what kubectl prints as JSON or YAML, in any number of files or
    directories, compressed or not, `-` for stdin. The pods without a node are placed one after
    another in the order of the scheduler's queue; a pod of higher priority may evict others, which
    leave at once and do not come back. A pod that fits nowhere is tried again when a plugin that
    rejected it says that what happened since may help. Binding and backoff take no time. The same
    files and seed give the same result.

    Only objects of kind Pod are placed; Deployments and other workloads are not expanded into pods.
    What the API server would fill in is filled in: requests from limits, priority from a
    PriorityClass.

    Node and pod lists of the openb GPU trace (CSV) are understood as well. There a pod that shares
    a GPU asks for a whole one, and pods come in order of creation_time.

    -o json and -o yaml print everything that was decided. Ctrl-C prints what has been decided till
    then, marked as partial, and ends with exit code 130.

    \b
    Examples:
      kubesched simulate cluster.json
      kubesched simulate cluster.json --pods batch.yaml --show unplaced --show zones
      kubesched simulate nodes.csv --pods pods.csv.gz --seed 1 -o json
    """  # noqa: D301 - \b is click's mark for a paragraph that is not to be rewrapped
    from kubesched.cli.loading import load_scheduler, new_cluster
    from kubesched.cli.simulate_input import read_input
    from kubesched.cli.simulate_run import run_simulation, write_timing
    from kubesched.cli.simulate_text import write_report

    scheduler = load_scheduler(options)
    cluster = new_cluster(scheduler, options)
    objects, warnings = read_input(files, pod_files, options.profile)
    write_warnings(warnings)
    cluster.load(objects)
    objects.clear()
    report, seconds = run_simulation(cluster, options.seed)
    if output is not OutputFormat.TABLE:
        write_document("SimulationReport", report, output)
    else:
        shown = SECTIONS if everything else sections
        write_report(writer(), report, shown, top)
        write_timing(report, seconds)
    return EXIT_INTERRUPTED if report.partial else 0
