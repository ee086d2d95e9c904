"""Commands that ask about a cluster as it is: why, explain and top."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import click

from kubesched.cli.completion import complete_pod
from kubesched.cli.flags import (
    FILE_PATH,
    AnswerOptions,
    OutputFormat,
    answer_options,
    cluster_options,
    namespace_option,
    table_options,
)
from kubesched.cli.output import write_answer, write_document, write_page, writer
from kubesched.inputs.sources import ClusterSource

if TYPE_CHECKING:
    from kubesched.cli.why_answer import RunningScheduler


@click.command()
@click.argument("pod", metavar="POD", shell_complete=complete_pod)
@namespace_option
@cluster_options
@table_options("why")
@answer_options
def why(
    asked: AnswerOptions,
    source: ClusterSource,
    pod: str,
    namespace: str,
    top: int,
    scheduler_url: str,
    insecure_skip_tls_verify: bool,
) -> None:
    """Tell why POD is pending, and the smallest changes that make it fit.

    POD is NAME, NAMESPACE/NAME, pod/NAME, or a workload such as deploy/NAME, of which a pending pod
    is taken. Without FILES, the cluster is the live one of the current context; it is only read.

    The answer begins with one sentence. Then follow changes of one thing each, the smallest first:
    a request to lower, a toleration to add, a constraint to drop, a node to uncordon, label, free
    or add, a pod to evict. Each was tried: the scheduler's plugins decided again, and placed the
    pod. Nothing is changed in the cluster.

    With --scheduler, the answer also has what only the running scheduler knows, as far as it keeps
    it. Where it may not be asked, a note says so.

    `kubesched explain` shows every node and every score of the same decision.

    \b
    Examples:
      kubesched why web-1 -n shop
      kubesched why deploy/web --context production
      kubesched why shop/web-1 cluster.json -o json
      kubectl -n kube-system port-forward deployment/kubesched 10259 &
      kubesched why web-1 --scheduler https://localhost:10259 --insecure-skip-tls-verify
    """
    from kubesched.cli.trials import open_cluster
    from kubesched.cli.why_answer import ask_why, write_why
    from kubesched.inputs.status_line import StatusLine

    running = _running(source, scheduler_url, is_insecure=insecure_skip_tls_verify)
    with StatusLine() as status:
        cluster = open_cluster(source, asked)
        status.show(lambda: f"Asking about {pod}")
        has_page = asked.html is not None
        report, *more = ask_why(cluster, pod, namespace, running, for_page=has_page)
        if has_page:
            status.show(lambda: "Drawing the cluster")
            write_page(asked.html, report, *more)
    write_answer(report, asked.output, partial(write_why, top=top))


def _running(source: ClusterSource, url: str, *, is_insecure: bool) -> RunningScheduler | None:
    from kubesched.cli.why_answer import RunningScheduler
    from kubesched.inputs.errors import UserError

    if url and source.files:
        raise UserError("--scheduler asks about a live cluster, and there are files; leave out one")
    if is_insecure and not url:
        raise UserError("--insecure-skip-tls-verify is about --scheduler, which is not given")
    return RunningScheduler(source, url, is_insecure=is_insecure) if url else None


@click.command()
@click.argument("pod", metavar="POD", shell_complete=complete_pod)
@namespace_option
@cluster_options
@table_options("explain")
@answer_options
def explain(
    asked: AnswerOptions,
    source: ClusterSource,
    pod: str,
    namespace: str,
    all_filters: bool,
    nodes: tuple[str, ...],
    top: int,
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
    """
    from kubesched.cli.explain_text import write_explanation
    from kubesched.cli.trials import open_cluster
    from kubesched.inputs.pod_names import find_nodes

    cluster = open_cluster(source, asked)
    chosen = frozenset(find_nodes(nodes, [one.metadata.name for one in cluster.nodes], "--node "))
    if asked.html is None:
        report = cluster.explain(pod, namespace, all_filters=all_filters)
    else:
        report, view = cluster.explain_page(pod, namespace, all_filters=all_filters)
        write_page(asked.html, report, view)
    if asked.output is not OutputFormat.TABLE:
        shown = report.narrowed(chosen) if chosen else report
        write_document(shown, asked.output)
    else:
        write_explanation(writer(), report, chosen, top)


@click.command()
@click.argument("group", required=False, metavar="[nodes|pools|zones|namespaces|priorities|owners]")
@cluster_options
@table_options("top")
@answer_options
def top(
    asked: AnswerOptions,
    source: ClusterSource,
    group: str | None,
    pool_label: str,
    sort_by: str,
    limit: int,
    shape: str | None,
    room_like: str | None,
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
    """
    from kubesched.answers.top import check_question
    from kubesched.cli.top_text import write_top
    from kubesched.cli.trials import open_cluster
    from kubesched.inputs.status_line import StatusLine

    def watch(fit_so_far: int) -> None:
        status.show(lambda: f"{fit_so_far:,} more pods fit so far")

    if group is not None and not _is_group(group):
        source = replace(source, files=(FILE_PATH.convert(group, None, None), *source.files))
        group = None
    # Before the cluster is read, which takes long.
    check_question(group or "nodes", pool_label, sort_by, shape, room_like)
    with StatusLine() as status:
        cluster = open_cluster(source, asked)
        report = cluster.top(
            group or "nodes",
            pool_label=pool_label,
            sort_by=sort_by,
            room=shape,
            room_like=room_like,
            watch=watch,
        )
    if asked.html is not None:
        # The view has the requests of each node.
        more = [report] if report.group != "nodes" or report.room is not None else []
        write_page(asked.html, cluster.view(pool_label=pool_label), *more)
    write_answer(report, asked.output, partial(write_top, limit=limit))


def _is_group(text: str) -> bool:
    """Whether the text names a group, not a file.

    Raises:
        UserError: It is no file either, and nearly the name of a group.
    """
    from kubesched.answers.top import TopGroup
    from kubesched.inputs.errors import UserError, near_names

    groups = [*TopGroup]
    if text in groups:
        return True
    if text and not Path(text).exists() and (near := near_names(text, groups)):
        raise UserError(f"{text}: there is no such file; did you mean {near[0]}?")
    return False
