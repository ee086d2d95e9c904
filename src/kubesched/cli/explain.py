"""`kubesched explain`: why a pod is placed on a node, or on none."""

from __future__ import annotations

from pathlib import Path

import click

from kubesched.cli.completion import complete_pod
from kubesched.cli.flags import table_options
from kubesched.cli.options import (
    OutputFormat,
    cluster_options,
    html_option,
    namespace_option,
    output_option,
    scheduler_options,
)
from kubesched.cli.output import write_document, write_page, writer
from kubesched.inputs.sources import ClusterSource, SchedulerOptions


@click.command()
@click.argument("pod", metavar="POD", shell_complete=complete_pod)
@namespace_option
@cluster_options
@table_options("explain")
@html_option
@output_option
@scheduler_options
def explain(
    options: SchedulerOptions,
    source: ClusterSource,
    pod: str,
    namespace: str,
    all_filters: bool,
    nodes: tuple[str, ...],
    top: int,
    html: Path | None,
    output: OutputFormat,
) -> None:
    """Explain why POD is placed on a node, or on none.

    POD is NAME, NAMESPACE/NAME, pod/NAME, or a workload such as deploy/NAME, of which a pending pod
    is taken. All nodes are evaluated, regardless of
    percentageOfNodesToScore, and nothing is executed: no pod is evicted. A pod that is on a node
    already is scheduled again, in the cluster without it.

    Without FILES, the cluster is the live one of the current context, or of --context or
    --kubeconfig; it is only read. FILES hold a cluster that was saved: by `kubesched snapshot`, or
    as output of kubectl in JSON or YAML, in any number of files or directories, compressed or not;
    `-` is stdin.

    `kubesched --help` shows the kubectl command that saves everything that decisions depend on; use
    --complete with its output. Without it, kinds that the answer depends on and the files lack are
    reported as not known, with the command that fetches them.

    \b
    Examples:
      kubesched explain web-1
      kubesched explain web-1 -n shop --context production
      kubesched explain web-1 cluster.json
      kubesched explain shop/web-1 cluster.json --node node-7 --all-filters
      kubectl get pvc,pv,sc -A -o json | kubesched explain shop/db-0 cluster.json -
    """  # noqa: D301 - \b stops click from rewrapping the paragraph
    from kubesched.cli.explain_text import write_explanation
    from kubesched.cli.trials import open_cluster
    from kubesched.inputs.pod_names import check_nodes

    cluster = open_cluster(source, options, html=html)
    check_nodes(nodes, [node.metadata.name for node in cluster.nodes], "--node ")
    report = cluster.explain(pod, namespace, all_filters=all_filters)
    if html is not None:
        write_page(html, report, cluster.view(causes=False))
    if output is not OutputFormat.TABLE:
        shown = report.narrowed(frozenset(nodes)) if nodes else report
        write_document(shown, output)
    else:
        write_explanation(writer(), report, frozenset(nodes), top)
