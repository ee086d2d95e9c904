"""`kubesched whatif`: what a plan of changes does to the pods of a cluster."""

from __future__ import annotations

from pathlib import Path

import click

from kubesched.cli.cluster_options import cluster_options
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
@click.argument("plan", metavar="PLAN", type=FILE_PATH)
@cluster_options
@html_option
@output_option
@scheduler_options
def whatif(
    options: SchedulerOptions,
    source: ClusterSource,
    plan: Path,
    html: Path | None,
    output: OutputFormat,
) -> int:
    """Tell what a PLAN of changes does to the pods. Nothing is changed.

    PLAN is a YAML file with steps, which are carried out one after another; `-` is stdin:

    \b
      steps:
      - drain: node-7                            # as far as budgets allow
      - removeNode: [node-7, node-8]             # at once
      - loseZone: eu-1a
      - addNodes: {count: 3, like: node-1}       # or template: cpu=8,memory=32Gi
      - cordon: pool=old                         # a label selector; uncordon too
      - label: {nodes: node-1, set: {disk: ssd}, remove: [old]}
      - taint: {nodes: node-1, add: [dedicated=db:NoSchedule], remove: [old]}
      - resize: {nodes: node-1, capacity: {cpu: 16}}
      - scale: {workload: deploy/web, namespace: shop, replicas: 12}
      - setPriority: {workload: deploy/web, namespace: shop, priority: 1000}
      - setBudget: {name: web, namespace: shop, minAvailable: 2}
      - apply: web.yaml                          # beside PLAN

    After each step controllers create the pods that went, and the scheduler places them. The
    cluster is the live one of the current context, which is only read, or that of FILES.

    Exit codes: 0 no pod is lost, newly pending or kept by a budget; 1 one is; 2 the input is wrong.

    \b
    Examples:
      kubesched whatif plan.yaml
      kubesched whatif plan.yaml cluster.json -o json
      echo 'steps: [{loseZone: eu-1a}]' | kubesched whatif - cluster.json
    """  # noqa: D301 - \b stops click from rewrapping the paragraph
    from kubesched.cli.changes_text import write_what_if
    from kubesched.cli.trials import open_cluster

    report = open_cluster(source, options, plan, html=html).whatif(plan)
    write_page(html, report)
    write_answer(report, output, write_what_if)
    return 0 if report.works else EXIT_DIFFERENT
