"""`kubesched why`: why a pod is pending, and the smallest changes that make it fit."""

from __future__ import annotations

import click

from kubesched.cli.cluster_options import ClusterSource, cluster_options, namespace_option
from kubesched.cli.options import (
    IntRange,
    OutputFormat,
    SchedulerOptions,
    output_option,
    scheduler_options,
)
from kubesched.cli.output import write_document, writer


@click.command()
@click.argument("pod", metavar="POD")
@namespace_option
@cluster_options
@click.option(
    "--top",
    type=IntRange(min=1),
    default=5,
    show_default=True,
    metavar="N",
    help="The number of changes to show.",
)
@output_option
@scheduler_options
def why(
    options: SchedulerOptions,
    source: ClusterSource,
    pod: str,
    namespace: str,
    top: int,
    output: OutputFormat,
) -> None:
    """Tell why POD is pending, and the smallest changes that make it fit.

    POD is NAME, NAMESPACE/NAME, pod/NAME, or a workload such as deploy/NAME, of which a pending pod
    is taken. Without FILES, the cluster is the live one of the current context; it is only read.

    The answer begins with one sentence. Then follow changes of one thing each, the smallest first:
    a request to lower, a toleration to add, a constraint to drop, a node to uncordon, label, free
    or add, a pod to evict. Each was tried: the scheduler's plugins decided again, and placed the
    pod. Nothing is changed in the cluster.

    `kubesched explain` shows every node and every score of the same decision.

    \b
    Examples:
      kubesched why web-1 -n shop
      kubesched why deploy/web --context production
      kubesched why shop/web-1 cluster.json -o json
    """  # noqa: D301 - \b stops click from rewrapping the paragraph
    from kubesched.cli.files import check_inputs
    from kubesched.cli.why_answer import ask_why, write_why

    check_inputs([*source.files, options.config])
    report = ask_why(options, pod, source, namespace)
    if output is not OutputFormat.TABLE:
        write_document(report, output)
    else:
        write_why(writer(), report, top)
