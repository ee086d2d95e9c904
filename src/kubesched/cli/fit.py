"""`kubesched fit`: whether the workloads of manifests fit into a cluster."""

from __future__ import annotations

from pathlib import Path

import click

from kubesched.cli.cluster_options import cluster_flags, namespace_option
from kubesched.cli.errors import EXIT_DIFFERENT
from kubesched.cli.options import (
    FILE_PATH,
    OutputFormat,
    html_option,
    output_option,
    scheduler_options,
)
from kubesched.cli.output import write_answer, write_page
from kubesched.inputs.sources import ClusterSource, SchedulerOptions


@click.command()
@click.argument("manifests", metavar="MANIFESTS...", nargs=-1, required=True, type=FILE_PATH)
@namespace_option
@cluster_flags
@click.option(
    "--replicas",
    multiple=True,
    metavar="[NAME=]N",
    help="The number of pods of every workload, or of the one of this NAME, instead of its own. "
    "Repeatable.",
)
@click.option(
    "--max",
    "more",
    is_flag=True,
    help="Also find out how many more pods of the workload fit, and what stops the next one.",
)
@click.option(
    "--node-template",
    "templates",
    multiple=True,
    metavar="FILE|cpu=8,memory=32Gi,...",
    help="If something does not fit: how many empty nodes of this shape are missing. Repeatable: "
    "the cheapest mix, by price=P of each.",
)
@html_option
@output_option
@scheduler_options
def fit(
    options: SchedulerOptions,
    source: ClusterSource,
    manifests: tuple[Path, ...],
    namespace: str,
    replicas: tuple[str, ...],
    more: bool,
    templates: tuple[str, ...],
    html: Path | None,
    output: OutputFormat,
) -> int:
    """Tell whether the workloads of MANIFESTS fit into a cluster.

    MANIFESTS are files or directories with Deployments, StatefulSets, DaemonSets, Jobs, CronJobs
    (one run), ReplicaSets, ReplicationControllers and Pods; `-` is stdin, such as the output of
    kustomize or helm. Other objects that scheduling reads, such as claims, are added too.

    The cluster is the live one of the current context, which is only read, or that of --cluster
    FILE. Each workload's pods are created as its controller creates them, and are scheduled
    together with the pods that are pending already. A workload that the cluster has counts with the
    pods it has; --replicas is their total.

    A node template is a file with a Node, or its shape in words: cpu, memory, pods and other
    resources, zone=Z, label.KEY=VALUE, taint.KEY=VALUE:EFFECT, name=NAME and price=P. Pods of the
    cluster's DaemonSets run on such nodes too.

    Exit codes: 0 every pod fits; 1 one does not; 2 the input is wrong.

    \b
    Examples:
      kubesched fit web.yaml
      helm template shop | kubesched fit - --cluster cluster.json
      kubesched fit web.yaml --replicas 50 --context production -n shop
      kubesched fit web.yaml --max
      kubesched fit web.yaml --replicas 200 --node-template cpu=16,memory=64Gi,zone=a
    """  # noqa: D301 - \b stops click from rewrapping the paragraph
    from kubesched.cli.fit_text import write_fit
    from kubesched.cli.trials import open_cluster

    report = open_cluster(source, options, *manifests, html=html).fit(
        *manifests, namespace=namespace, replicas=replicas, more=more, node_templates=templates
    )
    write_page(html, report)
    write_answer(report, output, write_fit)
    return 0 if report.fits else EXIT_DIFFERENT
