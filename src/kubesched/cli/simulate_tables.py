"""Tables of a simulation: placements, unplaced pods, zones and nodes.

Invariants: every row has one cell per column.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from kubesched.cli.output import simple_table
from kubesched.explain.sentences import names
from kubesched.explain.tables import Column, TextTable
from kubesched.simulator.report import (
    NodeUse,
    PodPlacement,
    ResourceUse,
    SimulationReport,
    Summary,
    Unplaced,
)

_BYTES: Final = ("memory", "ephemeral-storage")
_UNITS: Final = ("", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei")
_NONE: Final = "-"


def amount_table(summary: Summary) -> TextTable:
    """Return one row per resource: allocatable and requested amounts."""
    headings = ("resource", "allocatable", "before", "after", "share")
    rows = [
        (
            use.resource,
            amount(use.resource, use.allocatable),
            amount(use.resource, use.requested_before),
            amount(use.resource, use.requested_after),
            shares(use),
        )
        for use in summary.resources
    ]
    return simple_table(headings, rows, *headings[1:])


def zone_table(report: SimulationReport) -> TextTable:
    """Return one row per zone with the shares of each resource."""
    resources = _asked_for(report.summary)
    has_regions = len({zone.region for zone in report.zones}) > 1
    words = ("region", "zone") if has_regions else ("zone",)
    rows = []
    for zone in report.zones:
        place = (zone.region, zone.zone) if has_regions else (zone.zone,)
        cells = [word or _NONE for word in place]
        rows.append((*cells, str(zone.nodes), str(zone.placed), *_cells(zone.resources, resources)))
    return TextTable(_columns(words, ("nodes", "placed", *resources)), tuple(rows))


def node_table(nodes: Sequence[NodeUse], summary: Summary) -> TextTable:
    """Return one row per node with the shares of each resource."""
    resources = _asked_for(summary)
    words = ("node", "zone") if any(node.zone for node in nodes) else ("node",)
    rows = []
    for node in nodes:
        place = (node.node, node.zone or _NONE)[: len(words)]
        rows.append((*place, str(node.placed), *_cells(node.resources, resources)))
    return TextTable(_columns(words, ("placed", *resources)), tuple(rows))


def placement_table(placements: Sequence[PodPlacement]) -> TextTable:
    """Return one row per pod that has a node."""
    headings = ("pod", "node", "attempts", "preempted")
    rows = [
        (found.pod, found.node, str(found.attempts), names(found.preempted)) for found in placements
    ]
    return simple_table(headings, rows, "attempts")


def unplaced_table(unplaced: Sequence[Unplaced]) -> TextTable:
    """Return one row per message, the most frequent first."""
    groups: dict[tuple[str, str], list[str]] = {}
    for pod in unplaced:
        message = "not known" if pod.unknown else pod.message
        groups.setdefault((message, ", ".join(pod.plugins)), []).append(pod.pod)
    ordered = sorted(groups.items(), key=lambda group: -len(group[1]))
    rows = [
        (str(len(pods)), plugins or _NONE, names(pods), message)
        for (message, plugins), pods in ordered
    ]
    return simple_table(("pods", "rejected by", "which", "message"), rows, "pods")


# Cells.


def amount(resource: str, number: int) -> str:
    """Return an amount in readable units: CPUs, or bytes with a binary suffix."""
    if resource == "cpu":
        return f"{number / 1000:.10g}" if abs(number) < 10**15 else str(number // 1000)
    if resource in _BYTES:
        return _bytes(number)
    return str(number)


def _bytes(number: int) -> str:
    size, power = float(number), 0
    while abs(size) >= 1024 and power < len(_UNITS) - 1:
        size /= 1024
        power += 1
    text = f"{size:.1f}".removesuffix(".0")
    return f"{text}{_UNITS[power]}"


def shares(use: ResourceUse) -> str:
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
        if use.resource in ("cpu", "memory", "pods") or use.requested_before or use.requested_after
    )


def _cells(uses: Sequence[ResourceUse], resources: Sequence[str]) -> list[str]:
    found = {use.resource: shares(use) for use in uses}
    return [found[name] for name in resources]


def _columns(words: Sequence[str], numbers: Sequence[str]) -> tuple[Column, ...]:
    return (
        *(Column(heading) for heading in words),
        *(Column(heading, is_number=True) for heading in numbers),
    )
