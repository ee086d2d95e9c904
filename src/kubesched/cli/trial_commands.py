"""Commands that try changes of a cluster: fit, drain, whatif, upgrade and compact."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import click

from kubesched.cli.errors import EXIT_DIFFERENT
from kubesched.cli.flags import (
    FILE_PATH,
    AnswerOptions,
    answer_options,
    cluster_flags,
    cluster_options,
    namespace_option,
    table_options,
)
from kubesched.cli.output import write_answer
from kubesched.inputs.sources import ClusterSource
from kubesched.inputs.status_line import StatusLine


@click.command()
@click.argument("manifests", metavar="MANIFESTS...", nargs=-1, required=True, type=FILE_PATH)
@namespace_option
@cluster_flags
@table_options("fit")
@answer_options
def fit(
    asked: AnswerOptions,
    source: ClusterSource,
    manifests: tuple[Path, ...],
    namespace: str,
    replicas: tuple[str, ...],
    more: bool,
    templates: tuple[str, ...],
) -> int:
    """Tell whether the workloads of MANIFESTS fit into a cluster.

    MANIFESTS are files or directories with Deployments, StatefulSets, DaemonSets, Jobs, CronJobs
    (one run), ReplicaSets, ReplicationControllers and Pods; `-` is stdin, such as the output of
    kustomize or helm. Other objects that scheduling reads, such as claims, are added too. Quotas
    and limit ranges, which may keep pods from being created, are not read.

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
    """
    from kubesched.cli.trial_text import write_fit
    from kubesched.cli.trials import open_cluster

    def watch(placed: int) -> None:
        status.show(lambda: f"{placed:,} pods placed so far")

    with StatusLine() as status:
        cluster = open_cluster(source, asked, *manifests)
        report = cluster.fit(
            *manifests,
            namespace=namespace,
            replicas=replicas,
            more=more,
            node_templates=templates,
            watch=watch,
        )
    write_answer(report, asked.output, write_fit, asked.html)
    return 0 if report.fits else EXIT_DIFFERENT


@click.command()
@click.argument("words", metavar="[NODE]... [FILES]...", nargs=-1)
@cluster_flags
@table_options("drain")
@answer_options
def drain(
    asked: AnswerOptions,
    source: ClusterSource,
    words: tuple[str, ...],
    selector: str,
) -> int:
    """Tell what happens when NODEs are drained, pod by pod. Nothing is changed.

    The nodes are cordoned, then drained one after another as `kubectl drain` does: pods of
    DaemonSets and static pods stay, the others are evicted as far as disruption budgets allow.
    Controllers create them again, the scheduler places them, and pods that a budget protected are
    tried again then. Pods without a controller would not come back. Where
    `kubectl drain` would need a flag, the flag is taken as given, and the answer names it.

    The cluster is the live one of the current context, which is only read, or that of FILES or
    --cluster FILE.

    Exit codes: 0 every pod finds a place; 1 one does not; 2 the input is wrong.

    \b
    Examples:
      kubesched drain node-7
      kubesched drain -l pool=a --context production
      kubesched drain node-7 cluster.json -o json
    """
    from kubesched.cli.trial_text import write_drain
    from kubesched.cli.trials import nodes_and_source, open_cluster

    def watch(drained: int, nodes: int, cycles: int) -> None:
        status.show(lambda: f"{drained:,} of {nodes:,} nodes drained, {cycles:,} scheduling cycles")

    nodes, source = nodes_and_source(words, source, selector)
    with StatusLine() as status:
        report = open_cluster(source, asked).drain(*nodes, selector=selector, watch=watch)
    write_answer(report, asked.output, write_drain, asked.html)
    return 0 if report.succeeds else EXIT_DIFFERENT


@click.command()
@click.argument("plan", metavar="PLAN", type=FILE_PATH)
@cluster_options
@answer_options
def whatif(
    asked: AnswerOptions,
    source: ClusterSource,
    plan: Path,
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

    After each step controllers create evicted pods again, and the scheduler places them. The
    cluster is the live one of the current context, which is only read, or that of FILES.

    Exit codes: 0 no pod is lost, newly pending or kept by a budget; 1 one is; 2 the input is wrong.

    \b
    Examples:
      kubesched whatif plan.yaml
      kubesched whatif plan.yaml cluster.json -o json
      echo 'steps: [{loseZone: eu-1a}]' | kubesched whatif - cluster.json
    """
    from kubesched.cli.trial_text import write_what_if
    from kubesched.cli.trials import open_cluster

    def watch(done: int, steps: int, cycles: int) -> None:
        status.show(
            lambda: f"{done:,} of {steps:,} steps carried out, {cycles:,} scheduling cycles"
        )

    with StatusLine() as status:
        report = open_cluster(source, asked, plan).whatif(plan, watch=watch)
    write_answer(report, asked.output, write_what_if, asked.html)
    return 0 if report.works else EXIT_DIFFERENT


@click.command()
@cluster_options
@table_options("upgrade")
@answer_options
def upgrade(
    asked: AnswerOptions,
    source: ClusterSource,
    selector: str,
    at_once: int,
    force: bool,
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
    """
    from kubesched.cli.trial_text import write_upgrade
    from kubesched.cli.trials import open_cluster

    def watch(_tried: int, nodes: int, done: int) -> None:
        status.show(lambda: f"{done:,} of {nodes:,} nodes can be upgraded so far")

    with StatusLine() as status:
        cluster = open_cluster(source, asked)
        report = cluster.upgrade(selector, at_once=at_once, force=force, watch=watch)
    write_answer(report, asked.output, partial(write_upgrade, selector=selector), asked.html)
    return 0 if report.works else EXIT_DIFFERENT


@click.command()
@cluster_options
@table_options("compact")
@answer_options
def compact(
    asked: AnswerOptions,
    source: ClusterSource,
    selector: str,
    force: bool,
) -> int:
    """Find nodes that can be removed so that every pod still has a place. Nothing is changed.

    The emptiest node is tried first: it is drained as `kubesched drain` does, and goes if every pod
    finds a place without preemption and no disruption budget is broken. Then the next one is tried
    without it. So the nodes can be removed in the order of the answer. The other nodes are listed
    with what keeps them.

    The cluster is the live one of the current context, which is only read, or that of FILES.

    Exit codes: 0 a node can be removed; 1 none can; 2 the input is wrong.

    \b
    Examples:
      kubesched compact
      kubesched compact -l pool=spot cluster.json -o json
    """
    from kubesched.cli.trial_text import write_compact
    from kubesched.cli.trials import open_cluster

    def watch(tried: int, nodes: int, removable: int) -> None:
        status.show(lambda: f"{tried:,} of {nodes:,} nodes tried, {removable:,} can be removed")

    with StatusLine() as status:
        cluster = open_cluster(source, asked)
        report = cluster.compact(selector, force=force, watch=watch)
    write_answer(report, asked.output, write_compact, asked.html)
    return 0 if report.removable else EXIT_DIFFERENT
