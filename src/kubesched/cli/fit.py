"""`kubesched fit`: whether workloads fit, how many more would, and which nodes are missing."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Final

from kubesched.answers.fit import FitReport, MorePods, PodsOnNode, WorkloadFit
from kubesched.answers.node_shapes import MissingNodes
from kubesched.cli.asking import AnswerOptions, open_cluster
from kubesched.cli.changes import write_preempted, write_without_node
from kubesched.cli.errors import EXIT_DIFFERENT
from kubesched.cli.explain import write_unknown
from kubesched.cli.output import TextTable, Writer, write_answer
from kubesched.explain.sentences import count
from kubesched.inputs.sources import ClusterSource
from kubesched.inputs.status_line import StatusLine

_NODES_MAX: Final = 12


def fit(
    asked: AnswerOptions,
    source: ClusterSource,
    manifests: tuple[Path, ...],
    namespace: str,
    replicas: tuple[str, ...],
    more: bool,
    templates: tuple[str, ...],
) -> int:
    """Tell whether workloads fit; return the exit code: 1 if a pod does not."""
    with StatusLine() as status:
        cluster = open_cluster(source, asked, *manifests)
        report = cluster.fit(
            *manifests,
            namespace=namespace,
            replicas=replicas,
            more=more,
            node_templates=templates,
            watch=status.counting("{:,} pods placed so far"),
        )
    write_answer(report, asked.output, _write_fit, asked.html)
    return 0 if report.fits else EXIT_DIFFERENT


def _write_fit(writer: Writer, report: FitReport) -> None:
    writer.headline(_fit_headline(report))
    writer.notes(report.notes)
    write_unknown(writer, report.unknown)
    writer.heading("Workloads")
    headings = ("kind", "name", "pods", "there", "fit")
    rows = [
        (
            one.kind,
            f"{one.namespace}/{one.name}",
            str(one.wanted),
            str(one.existing),
            str(one.placed),
        )
        for one in report.workloads
    ]
    writer.table(TextTable(headings, rows, ("pods", "there", "fit")))
    if any(one.nodes for one in report.workloads):
        writer.heading("Where they go")
        for one in report.workloads:
            if one.nodes:
                _write_nodes(writer, f"{one.name}: ", one.nodes)
    for one in report.workloads:
        heading = f"Why not {'all of ' * (one.wanted > 1)}{_workload_name(one)}"
        write_without_node(writer, heading, one.not_placed)
    write_preempted(writer, "Evicted for them", report.evictions)
    if report.other_evictions:
        number = count(len(report.other_evictions), "pod")
        writer.line()
        writer.line(f"{number} evicted for pods that were pending already.")
    if report.more is not None:
        _write_more_pods(writer, report.workloads[0], report.more)
    if report.missing_nodes is not None:
        _write_missing(writer, report.missing_nodes)


def _fit_headline(report: FitReport) -> str:
    wanted = sum(one.wanted for one in report.workloads)
    placed = sum(one.placed for one in report.workloads)
    verb = "fits" if wanted == 1 else "fit"
    if report.fits:
        return f"It fits: {count(wanted, 'pod')} in a cluster of {count(report.nodes, 'node')}."
    if any(group.unknown for one in report.workloads for group in one.not_placed):
        pods = f"{placed:,} of {count(wanted, 'pod')}"
        return f"Whether it fits is not known: {pods} {verb} for sure."
    return f"It does not fit: {placed:,} of {count(wanted, 'pod')} {verb}."


def _workload_name(one: WorkloadFit) -> str:
    return f"{one.kind} {one.namespace}/{one.name}"


def _write_nodes(writer: Writer, begin: str, nodes: Sequence[PodsOnNode]) -> None:
    shown = [
        one.node if one.pods == 1 else f"{one.node} ({one.pods})" for one in nodes[:_NODES_MAX]
    ]
    left = len(nodes) - len(shown)
    more = f" and {count(left, 'more node')}" if left else ""
    writer.item(f"{begin}{', '.join(shown)}{more}")


def _write_more_pods(writer: Writer, workload: WorkloadFit, more: MorePods) -> None:
    writer.heading("How many more")
    begin = "At least " if more.at_least else ""
    verb = "fits" if more.count == 1 else "fit"
    number = count(more.count, "more pod")
    rest = f", {more.without_evictions:,} without evictions" if more.evicted else ""
    writer.item(f"{begin}{number} of {_workload_name(workload)} {verb}{rest}.")
    if more.nodes:
        _write_nodes(writer, "They go to ", more.nodes)
    if more.evicted:
        writer.item(f"{count(len(more.evicted), 'pod')} would be evicted for them.")
    if more.at_least:
        writer.item("Counting ended there; more may fit.")
    if more.stopped_by is not None:
        writer.item("The next one does not fit:")
        writer.detail(more.stopped_by.message)


def _write_missing(writer: Writer, missing: MissingNodes) -> None:
    writer.heading("Missing nodes")
    mix = " and ".join(
        f"{count(one.count, 'node')} {'of' if '=' in one.shape else 'like'} {one.shape}"
        for one in missing.nodes
    )
    price = "" if missing.price is None else f", for {missing.price:g} together"
    if missing.enough:
        method = (
            "" if missing.exact else " A cheaper mix may exist; this one was found step by step."
        )
        writer.item(f"With {mix}{price}, everything fits.{method}")
        return
    if missing.nodes:
        writer.item(f"{mix}{price} would help, but not all pods.")
    else:
        writer.item("No number of such nodes helps.")
    write_without_node(writer, "What does not fit even then", missing.left)
