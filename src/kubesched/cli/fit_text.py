"""The answer of `kubesched fit` as text."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from kubesched.answers.fit import FitReport, MorePods, PodsOnNode, WorkloadFit
from kubesched.answers.missing_nodes import MissingNodes
from kubesched.cli.output import Writer, simple_table
from kubesched.cli.trials import write_notes, write_preempted, write_without_node, write_wrapped
from kubesched.explain.sentences import count

_INDENT: Final = 2
_NODES_MAX: Final = 12


def write_fit(writer: Writer, report: FitReport) -> None:
    """Write the answer."""
    write_wrapped(writer, _headline(report), headline=True)
    write_notes(writer, report.notes, report.unknown)
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
    writer.table(simple_table(headings, rows, "pods", "there", "fit"), indent=_INDENT)
    if any(one.nodes for one in report.workloads):
        writer.heading("Where they go")
        for one in report.workloads:
            if one.nodes:
                _write_nodes(writer, f"{one.name}: ", one.nodes)
    for one in report.workloads:
        heading = f"Why not all of {_name(one)}"
        write_without_node(writer, heading, one.not_placed)
    write_preempted(writer, "Evicted for them", report.evictions)
    if report.other_evictions:
        number = count(len(report.other_evictions), "pod")
        writer.line()
        write_wrapped(writer, f"{number} evicted for pods that were pending already.")
    if report.more is not None:
        _write_more(writer, report.workloads[0], report.more)
    if report.missing_nodes is not None:
        _write_missing(writer, report.missing_nodes)


def _headline(report: FitReport) -> str:
    wanted = sum(one.wanted for one in report.workloads)
    placed = sum(one.placed for one in report.workloads)
    if report.fits:
        return f"It fits: {count(wanted, 'pod')} on {count(report.nodes, 'node')}."
    if any(group.unknown for one in report.workloads for group in one.not_placed):
        return f"Whether it fits is not known: {placed} of {count(wanted, 'pod')} fit for sure."
    return f"It does not fit: {placed} of {count(wanted, 'pod')} fit."


def _name(one: WorkloadFit) -> str:
    return f"{one.kind} {one.namespace}/{one.name}"


def _write_nodes(writer: Writer, begin: str, nodes: Sequence[PodsOnNode]) -> None:
    shown = [
        one.node if one.pods == 1 else f"{one.node} ({one.pods})" for one in nodes[:_NODES_MAX]
    ]
    left = len(nodes) - len(shown)
    more = f" and {count(left, 'node')} more" if left else ""
    write_wrapped(writer, f"{begin}{', '.join(shown)}{more}", _INDENT)


def _write_more(writer: Writer, workload: WorkloadFit, more: MorePods) -> None:
    writer.heading("How many more")
    begin = "At least " if more.at_least else ""
    text = f"{begin}{count(more.count, 'more pod')} of {_name(workload)} fit."
    write_wrapped(writer, text[:1].upper() + text[1:], _INDENT)
    if more.nodes:
        _write_nodes(writer, "They go to ", more.nodes)
    if more.evicted:
        write_wrapped(
            writer, f"{count(len(more.evicted), 'pod')} would be evicted for them.", _INDENT
        )
    if more.stopped_by is not None:
        write_wrapped(writer, "The next one does not fit:", _INDENT)
        write_wrapped(writer, more.stopped_by.message, 3 * _INDENT, dim=True)


def _write_missing(writer: Writer, missing: MissingNodes) -> None:
    writer.heading("Missing nodes")
    mix = " and ".join(f"{count(one.count, 'node')} like {one.shape}" for one in missing.nodes)
    price = "" if missing.price is None else f", for {missing.price:g} together"
    if missing.enough:
        method = (
            "" if missing.exact else " A cheaper mix may exist; this one was found step by step."
        )
        write_wrapped(writer, f"With {mix}{price}, everything fits.{method}", _INDENT)
        return
    if missing.nodes:
        write_wrapped(writer, f"{mix}{price} would help, but not all pods.", _INDENT)
    else:
        write_wrapped(writer, "No number of such nodes helps.", _INDENT)
    write_without_node(writer, "What does not fit even then", missing.left)
