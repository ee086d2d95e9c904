"""`kubesched drain`: what happens when nodes are drained."""

from __future__ import annotations

from pathlib import Path

import click

from kubesched.cli.cluster_options import cluster_flags
from kubesched.cli.errors import EXIT_DIFFERENT
from kubesched.cli.options import OutputFormat, html_option, output_option, scheduler_options
from kubesched.cli.output import write_answer, write_page
from kubesched.inputs.sources import ClusterSource, SchedulerOptions


@click.command()
@click.argument("words", metavar="NODE... [FILES]...", nargs=-1, required=True)
@cluster_flags
@html_option
@output_option
@scheduler_options
def drain(
    options: SchedulerOptions,
    source: ClusterSource,
    words: tuple[str, ...],
    html: Path | None,
    output: OutputFormat,
) -> int:
    """Tell what happens when NODEs are drained, pod by pod. Nothing is changed.

    The nodes are cordoned, then drained one after another as `kubectl drain` does: pods of
    DaemonSets and static pods stay, the others are evicted as far as disruption budgets allow.
    Controllers create them again, the scheduler places them, and pods that a budget protected are
    tried again then. Pods without a controller would not come back. What `kubectl drain` asks a
    flag for is taken as agreed to; the answer names the flags.

    The cluster is the live one of the current context, which is only read, or that of FILES or
    --cluster FILE.

    Exit codes: 0 every pod finds a place; 1 one does not; 2 the input is wrong.

    \b
    Examples:
      kubesched drain node-7
      kubesched drain node-7 node-8 --context production
      kubesched drain node-7 cluster.json -o json
    """  # noqa: D301 - \b stops click from rewrapping the paragraph
    from kubesched.cli.changes_text import write_drain
    from kubesched.cli.trials import nodes_and_source, open_cluster

    nodes, source = nodes_and_source(words, source)
    report = open_cluster(source, options, html=html).drain(*nodes)
    write_page(html, report)
    write_answer(report, output, write_drain)
    return 0 if report.succeeds else EXIT_DIFFERENT
