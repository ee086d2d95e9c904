"""`kubesched top`: what pods request of what nodes can give, and the room that is left."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from pathlib import Path

import click

from kubesched.cli.flags import FILE_PATH, table_options
from kubesched.cli.options import (
    OutputFormat,
    cluster_options,
    html_option,
    output_option,
    scheduler_options,
)
from kubesched.cli.output import write_answer, write_page
from kubesched.inputs.sources import ClusterSource, SchedulerOptions


@click.command()
@click.argument("group", required=False, metavar="[nodes|pools|zones|namespaces|priorities|owners]")
@cluster_options
@table_options("top")
@html_option
@output_option
@scheduler_options
def top(
    options: SchedulerOptions,
    source: ClusterSource,
    group: str | None,
    pool_label: str,
    sort_by: str,
    limit: int,
    shape: str | None,
    room_like: str | None,
    html: Path | None,
    output: OutputFormat,
) -> None:
    """Show what pods request of what nodes can give, and the room that is left.

    The rows are nodes, or else pools, zones, namespaces, priorities or owners of pods. Without
    FILES, the cluster is the live one of the current context; it is only read.

    Requests decide what fits, not usage: a node whose pods request all of its cpu is full, even if
    they sleep. Namespaces, priorities and owners are compared with the whole cluster. An owner is
    the Deployment, StatefulSet or the like that the pods belong to in the end. Pods without a node
    are pending, and counted separately.

    --room and --room-like add to each node, pool or zone how many more pods of a shape fit, and
    count them for the cluster. --room divides what is free. --room-like places copies of the pod,
    so that the numbers add up: one after another, or on all nodes at once if no filter looks at
    other nodes, which has the same result. Nothing is evicted for the copies, they use the volumes
    of the pod itself, and nodes that an autoscaler would add are not counted.

    Tables fit the width of the terminal, or 80 columns in a file or pipe (COLUMNS=160 sets another
    width), with fewer columns or shorter ones if necessary. -o json and -o yaml print all rows and
    all resources with exact amounts.

    \b
    Examples:
      kubesched top
      kubesched top pools --room cpu=2,memory=4Gi
      kubesched top zones cluster.json --room-like shop/web-1
      kubesched top owners --sort-by nvidia.com/gpu --top 5
    """  # noqa: D301 - \b stops click from rewrapping the paragraph
    from kubesched.cli.top_text import write_top
    from kubesched.cli.trials import open_cluster

    if group is not None and not _is_group(group):
        source = replace(source, files=(FILE_PATH.convert(group, None, None), *source.files))
        group = None
    cluster = open_cluster(source, options, html=html)
    report = cluster.top(
        group or "nodes",
        pool_label=pool_label,
        sort_by=sort_by,
        room=shape,
        room_like=room_like,
    )
    if html is not None:
        # The view has the requests of each node.
        more = [report] if report.group != "nodes" or report.room is not None else []
        write_page(html, cluster.view(pool_label=pool_label), *more)
    write_answer(report, output, partial(write_top, limit=limit))


def _is_group(text: str) -> bool:
    """Whether the text names a group, not a file.

    Raises:
        UserError: It is no file either, and nearly the name of a group.
    """
    from kubesched.answers.top import TopGroup
    from kubesched.inputs.errors import UserError
    from kubesched.inputs.near_names import near_names

    groups = [*TopGroup]
    if text in groups:
        return True
    if text and not Path(text).exists() and (near := near_names(text, groups)):
        raise UserError(f"{text}: there is no such file; did you mean {near[0]}?")
    return False
