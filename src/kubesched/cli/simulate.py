"""`kubesched simulate`: how many pods of a cluster are placed, and why others are not.

Simulations over time are in `timeline`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Final

import click

from kubesched.answers.cluster import Cluster
from kubesched.cli.asking import run_simulation
from kubesched.cli.errors import EXIT_INTERRUPTED, naming, write_warnings
from kubesched.cli.explain import write_unknown
from kubesched.cli.files import check_inputs, check_outputs
from kubesched.cli.flags import is_given
from kubesched.cli.output import OutputFormat, TextTable, Writer, amount, write_answer
from kubesched.cli.streams import stdout
from kubesched.explain.sentences import count, grouped_by, largest_first, names
from kubesched.framework.plugin import Decides
from kubesched.inputs.errors import UserError
from kubesched.inputs.scenario_input import is_scenario
from kubesched.inputs.sources import ClusterSource, SchedulerOptions
from kubesched.simulator.report import (
    NodeUse,
    PodPlacement,
    ResourceUse,
    SimulationReport,
    Summary,
    Unplaced,
)
from kubesched.simulator.utilisation import FIRST_RESOURCES

SECTIONS: Final = ("summary", "placements", "unplaced", "zones", "nodes")

_OF_DUMPS: Final = "sections everything top profile complete kubeconfig context"
_OF_TIMELINES: Final = "decision_log record duration_seconds"
"""The parameters that are for one kind of simulation."""
_FULL_NODES_MAX: Final = 2


@dataclass(frozen=True, slots=True)
class TimelineOptions:
    """Options of simulations over time, besides the scheduler's; `html` is for placements, too."""

    html: Path | None = None
    decision_log: Path | None = None
    record: Path | None = None
    duration_seconds: float | None = None
    times: bool = False


def simulate(
    timeline: TimelineOptions,
    scheduler: SchedulerOptions,
    source: ClusterSource,
    pod_files: tuple[Path, ...],
    sections: tuple[str, ...],
    everything: bool,
    top: int,
    output: OutputFormat,
) -> int:
    """Place the pending pods of a cluster, or play a scenario; return the exit code."""
    check_inputs([*source.files, *pod_files, scheduler.config])
    if timeline.times or any(map(is_scenario, source.files)):
        _refuse(_OF_DUMPS, "is not for simulations over time")
        # Imported late: few simulations are over time.
        from kubesched.cli.timeline import play_files

        return play_files(timeline, scheduler, source.files, pod_files, output)
    _refuse(_OF_TIMELINES, "is for simulations over time: of a scenario, or with --times")
    check_outputs({"--html": timeline.html}, [*source.files, *pod_files, scheduler.config])
    cluster = Cluster.read(source, scheduler, write_warnings, pod_files, expects_pods=True)
    end, seconds = run_simulation(cluster)
    report = end.report
    shown = SECTIONS if everything else sections
    write = partial(_write, sections=shown, top=top)
    write_answer(report, output, write, timeline.html)
    if output == "table":
        _write_timing(report, seconds)
    return EXIT_INTERRUPTED if report.partial else 0


def _write_timing(report: SimulationReport, seconds: float) -> None:
    rate = report.summary.attempts / seconds if seconds else 0.0
    cycles = count(report.summary.attempts, "scheduling cycle")
    text = f"{cycles} in {seconds:.1f} s, {rate:.0f} per second"
    # Both may go to the same terminal, and the report comes first.
    with naming("stdout"):
        stdout().flush()
    click.echo(text, err=True)


def _refuse(parameters: str, why: str) -> None:
    """Raise UserError with all of these options that were given."""
    command = click.get_current_context().command
    flags = {one.name: max(one.opts, key=len) for one in command.params}
    if given := [flags[name] for name in parameters.split() if is_given(name)]:
        raise UserError(*(f"{flag} {why}" for flag in given))


def _write(writer: Writer, report: SimulationReport, sections: Sequence[str], top: int) -> None:
    """Write sections of the report in full, or for none a summary with `top` reasons and nodes."""
    if not sections or "summary" in sections:
        _write_summary(writer, report, top, short=not sections)
    if "placements" in sections:
        _write_placements(writer, report)
    if "unplaced" in sections:
        _write_unplaced(writer, report)
    if "zones" in sections:
        writer.heading("Zones, requested of allocatable")
        writer.table(_zone_table(report))
    if "nodes" in sections:
        writer.heading("Nodes, requested of allocatable")
        writer.table(_node_table(report.nodes, report.summary))


def _headline(report: SimulationReport) -> str:
    summary = report.summary
    if not summary.pods:
        return "There are no pods to place."
    if not summary.nodes:
        return f"None of {count(summary.pods, 'pod')} can be placed: there are no nodes."
    used = f"{summary.nodes_used:,} of {count(summary.nodes, 'node')}"
    text = f"{summary.placed:,} of {count(summary.pods, 'pod')} placed"
    if any(one.decides is not Decides.CHOICE for one in report.unknown):
        text = f"As far as is known, {text}"
    return f"{text}, on {used}." if summary.placed else f"{text}."


def _sentences(report: SimulationReport) -> list[str]:
    summary = report.summary
    found = []
    if report.partial:
        found.append(f"Interrupted: {count(summary.not_tried, 'pod')} not tried; this is partial.")
    if waiting := [placed for placed in report.placements if placed.waits_for]:
        first = waiting[0]
        found.append(
            f"{len(waiting)} of them can be bound only after a wait: {first.pod} when it has "
            f"{' and '.join(first.waits_for)}{' ...' if len(waiting) > 1 else '.'}"
        )
    guesses = [pod.pod for pod in report.unplaced if pod.unknown]
    guesses += (pod.pod for pod in report.gated if pod.unknown)
    gated = [pod for pod in report.gated if not pod.unknown]
    if unplaced := sum(not pod.unknown for pod in report.unplaced):
        found.append(f"{count(unplaced, 'pod')} did not fit.")
    if guesses:
        found.append(
            f"Whether {names(guesses)} {'fits' if len(guesses) == 1 else 'fit'} is not known."
        )
    if gated:
        plugins = names(sorted({pod.plugin for pod in gated}))
        found.append(f"{count(len(gated), 'pod')} held back by {plugins}.")
    if summary.evicted:
        preemptors = len({eviction.preemptor for eviction in report.evictions})
        text = f"{count(summary.evicted, 'pod')} evicted for {count(preemptors, 'other')}"
        displaced = f", {summary.displaced} of them placed here before" * bool(summary.displaced)
        found.append(f"{text}{displaced}; nothing creates them again.")
    groups = Counter((pod.reason, pod.scheduler_name) for pod in report.ignored)
    for (reason, scheduler), number in sorted(groups.items()):
        found.append(f"{count(number, 'pod')} ignored: {reason} ({scheduler}).")
    return found


def _write_summary(writer: Writer, report: SimulationReport, top: int, *, short: bool) -> None:
    writer.headline(_headline(report))
    for sentence in _sentences(report):
        writer.line(sentence)
    write_unknown(writer, report.unknown)
    known = [pod for pod in report.unplaced if not pod.unknown]
    if short and known:
        _write_reasons(writer, known, top)
    if not report.nodes:
        return
    writer.heading("Requested of allocatable")
    writer.table(_amount_table(report.summary))
    if short:
        _write_zones_and_nodes(writer, report, top)


def _write_reasons(writer: Writer, unplaced: Sequence[Unplaced], top: int) -> None:
    """Write why pods did not fit, the most frequent reasons first."""
    ordered = largest_first(grouped_by(unplaced, lambda pod: (pod.plugins, pod.reasons)))
    writer.heading("What did not fit, and why")
    for (plugins, reasons), pods in ordered[:top]:
        by = f" ({', '.join(plugins)})" if plugins else ""
        what = ", ".join(reasons) or "no reason given"
        writer.item(f"{count(len(pods), 'pod')}: {what}{by}")
        writer.detail(names([pod.pod for pod in pods]))
    if len(ordered) > top:
        left = sum(len(pods) for _, pods in ordered[top:])
        writer.item(f"{count(left, 'pod')} for other reasons: --show unplaced")


def _write_zones_and_nodes(writer: Writer, report: SimulationReport, top: int) -> None:
    if len(report.zones) > 1:
        writer.heading("Zones")
        writer.table(_zone_table(report))
    ordered = sorted(report.nodes, key=lambda node: -_fullness(node))
    if len(ordered) <= _FULL_NODES_MAX * top:
        writer.heading("Nodes, fullest first")
        writer.table(_node_table(ordered, report.summary))
        return
    writer.heading(f"The {top} fullest nodes")
    writer.table(_node_table(ordered[:top], report.summary))
    writer.heading(f"The {top} emptiest nodes")
    writer.table(_node_table(ordered[-top:], report.summary))


def _fullness(node: NodeUse) -> float:
    """Return the share of the fullest resource of a node."""
    return max((use.share_after or 0.0 for use in node.resources), default=0.0)


def _write_placements(writer: Writer, report: SimulationReport) -> None:
    writer.heading(f"Placements: {report.summary.placed}")
    if report.placements:
        writer.table(_placement_table(report.placements))
    for placement in report.placements:
        if placement.waits_for:
            text = f"{placement.pod} is bound when it has {' and '.join(placement.waits_for)}"
            writer.item(text)
    for eviction in report.evictions:
        owner = f" of {eviction.controller}" if eviction.controller else ""
        text = f"{eviction.pod}{owner} evicted from {eviction.node} for {eviction.preemptor}"
        writer.item(text)


def _write_unplaced(writer: Writer, report: SimulationReport) -> None:
    writer.heading(f"Did not fit: {report.summary.unplaced}")
    if report.unplaced:
        writer.table(_unplaced_table(report.unplaced))
    for gated in report.gated:
        message = "not known" if gated.unknown else gated.message
        writer.item(f"{gated.pod} held back by {gated.plugin}: {message}")
    for ignored in report.ignored:
        writer.item(f"{ignored.pod} ignored: {ignored.reason} ({ignored.scheduler_name})")


# Tables.

_NONE: Final = "-"


def _amount_table(summary: Summary) -> TextTable:
    """Return one row per resource: allocatable and requested amounts."""
    headings = ("resource", "allocatable", "before", "after", "share")
    rows = [
        (
            use.resource,
            amount(use.resource, use.allocatable),
            amount(use.resource, use.requested_before),
            amount(use.resource, use.requested_after),
            _shares(use),
        )
        for use in summary.resources
    ]
    return TextTable(headings, rows, headings[1:])


def _zone_table(report: SimulationReport) -> TextTable:
    """Return one row per zone with the shares of each resource."""
    resources = _asked_for(report.summary)
    has_regions = len({zone.region for zone in report.zones}) > 1
    words = ("region", "zone") if has_regions else ("zone",)
    rows = []
    for zone in report.zones:
        place = (zone.region, zone.zone) if has_regions else (zone.zone,)
        cells = [word or _NONE for word in place]
        rows.append((*cells, str(zone.nodes), str(zone.placed), *_cells(zone.resources, resources)))
    numbers = ("nodes", "placed", *resources)
    return TextTable((*words, *numbers), rows, numbers)


def _node_table(nodes: Sequence[NodeUse], summary: Summary) -> TextTable:
    """Return one row per node with the shares of each resource."""
    resources = _asked_for(summary)
    words = ("node", "zone") if any(node.zone for node in nodes) else ("node",)
    rows = []
    for node in nodes:
        place = (node.node, node.zone or _NONE)[: len(words)]
        rows.append((*place, str(node.placed), *_cells(node.resources, resources)))
    numbers = ("placed", *resources)
    return TextTable((*words, *numbers), rows, numbers)


def _placement_table(placements: Sequence[PodPlacement]) -> TextTable:
    headings = ("pod", "node", "attempts", "preempted")
    rows = [
        (found.pod, found.node, str(found.attempts), names(found.preempted)) for found in placements
    ]
    return TextTable(headings, rows, ("attempts",))


def _unplaced_table(unplaced: Sequence[Unplaced]) -> TextTable:
    """Return one row per message, the most frequent first."""
    groups = grouped_by(
        unplaced, lambda pod: ("not known" if pod.unknown else pod.message, pod.plugins)
    )
    rows = [
        (str(len(pods)), ", ".join(plugins) or _NONE, names([pod.pod for pod in pods]), message)
        for (message, plugins), pods in largest_first(groups)
    ]
    return TextTable(("pods", "rejected by", "which", "message"), rows, ("pods",))


# Cells.


def _shares(use: ResourceUse) -> str:
    """Return the share before and after as percentages; one if they are equal."""
    if use.share_before is None or use.share_after is None:
        return _NONE
    before, after = f"{use.share_before:.0%}", f"{use.share_after:.0%}"
    return after if before == after else f"{before} → {after}"


def _asked_for(summary: Summary) -> tuple[str, ...]:
    """Return the resources to show: cpu, memory, pods, and those that any pod requests."""
    return tuple(
        use.resource
        for use in summary.resources
        if use.resource in FIRST_RESOURCES or use.requested_before or use.requested_after
    )


def _cells(uses: Sequence[ResourceUse], resources: Sequence[str]) -> list[str]:
    found = {use.resource: _shares(use) for use in uses}
    return [found[name] for name in resources]
