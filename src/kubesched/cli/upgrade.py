"""`kubesched upgrade` and `kubesched compact`: orders in which nodes can be replaced, or go."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import click

from kubesched.cli.cluster_options import cluster_options
from kubesched.cli.errors import EXIT_DIFFERENT
from kubesched.cli.options import (
    IntRange,
    OutputFormat,
    html_option,
    output_option,
    scheduler_options,
)
from kubesched.cli.output import write_answer, write_page
from kubesched.inputs.sources import ClusterSource, SchedulerOptions

_force = click.option(
    "--force",
    is_flag=True,
    help="Pods without a controller may go for good, as with `kubectl drain --force`.",
)


@click.command()
@cluster_options
@click.option(
    "-l",
    "--selector",
    required=True,
    metavar="LABELS",
    help="The nodes to upgrade, such as pool=a.",
)
@click.option(
    "--at-once",
    type=IntRange(min=1),
    default=1,
    show_default=True,
    metavar="K",
    help="How many nodes may be gone at a time.",
)
@_force
@html_option
@output_option
@scheduler_options
def upgrade(
    options: SchedulerOptions,
    source: ClusterSource,
    selector: str,
    at_once: int,
    force: bool,
    html: Path | None,
    output: OutputFormat,
) -> int:
    """Find an order in which the nodes of a pool can be upgraded. Nothing is changed.

    At most K nodes are drained at a time, as `kubesched drain` does, and come back as new nodes of
    their shape, with the pods of DaemonSets. In the order that is found no disruption budget is
    broken, and every pod has a place at every step. If a node cannot be drained, even after the
    others, the answer names the budget or the pod that blocks it.

    The cluster is the live one of the current context, which is only read, or that of FILES.

    Exit codes: 0 all nodes can be upgraded; 1 a node is blocked; 2 the input is wrong.

    \b
    Examples:
      kubesched upgrade --selector pool=a
      kubesched upgrade -l pool=a --at-once 3 cluster.json
    """  # noqa: D301 - \b stops click from rewrapping the paragraph
    from kubesched.cli.changes_text import write_upgrade
    from kubesched.cli.trials import open_cluster

    cluster = open_cluster(source, options, html=html)
    report = cluster.upgrade(selector, at_once=at_once, force=force)
    write_page(html, report)
    write_answer(report, output, partial(write_upgrade, selector=selector))
    return 0 if report.works else EXIT_DIFFERENT


@click.command()
@cluster_options
@click.option(
    "-l",
    "--selector",
    default="",
    metavar="LABELS",
    help="The nodes that may go, such as pool=a [default: all].",
)
@_force
@html_option
@output_option
@scheduler_options
def compact(
    options: SchedulerOptions,
    source: ClusterSource,
    selector: str,
    force: bool,
    html: Path | None,
    output: OutputFormat,
) -> int:
    """Find nodes that can be removed so that every pod still has a place. Nothing is changed.

    The emptiest node is tried first: it is drained as `kubesched drain` does, and goes if every pod
    finds a place and no disruption budget is broken. Then the next one is tried without it. So the
    nodes can be removed in the order of the answer. The other nodes are listed with what keeps
    them.

    The cluster is the live one of the current context, which is only read, or that of FILES.

    Exit codes: 0 a node can be removed; 1 none can; 2 the input is wrong.

    \b
    Examples:
      kubesched compact
      kubesched compact -l pool=spot cluster.json -o json
    """  # noqa: D301 - \b stops click from rewrapping the paragraph
    from kubesched.cli.changes_text import write_compact
    from kubesched.cli.trials import open_cluster

    report = open_cluster(source, options, html=html).compact(selector, force=force)
    write_page(html, report)
    write_answer(report, output, write_compact)
    return 0 if report.removable else EXIT_DIFFERENT
