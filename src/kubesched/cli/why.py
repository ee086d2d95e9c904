"""`kubesched why`: why a pod is pending, and the smallest changes that make it fit."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

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
from kubesched.cli.output import write_answer, write_page

if TYPE_CHECKING:
    from kubesched.cli.why_answer import RunningScheduler
from kubesched.explain.document import Document
from kubesched.inputs.sources import ClusterSource, SchedulerOptions


@click.command()
@click.argument("pod", metavar="POD", shell_complete=complete_pod)
@namespace_option
@cluster_options
@table_options("why")
@html_option
@output_option
@scheduler_options
def why(
    options: SchedulerOptions,
    source: ClusterSource,
    pod: str,
    namespace: str,
    top: int,
    scheduler: str,
    insecure_skip_tls_verify: bool,
    html: Path | None,
    output: OutputFormat,
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
    """  # noqa: D301 - \b stops click from rewrapping the paragraph
    from kubesched.cli.trials import open_cluster
    from kubesched.cli.why_answer import ask_why, write_why

    running = _running(source, scheduler, is_insecure=insecure_skip_tls_verify)
    cluster = open_cluster(source, options, html=html)
    report = ask_why(cluster, pod, source, namespace, running)
    if html is not None:
        more: list[Document] = []
        if report.is_decided:
            more = [cluster.explain(report.pod, all_filters=True), cluster.view(causes=False)]
        write_page(html, report, *more)
    write_answer(report, output, partial(write_why, top=top))


def _running(source: ClusterSource, url: str, *, is_insecure: bool) -> RunningScheduler | None:
    from kubesched.cli.why_answer import RunningScheduler
    from kubesched.inputs.errors import UserError

    if url and source.files:
        raise UserError("--scheduler asks about a live cluster, and there are files; leave out one")
    if is_insecure and not url:
        raise UserError("--insecure-skip-tls-verify is about --scheduler, which is not given")
    return RunningScheduler(url, is_insecure) if url else None
