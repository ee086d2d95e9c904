"""`kubesched top`: sentences about requests and room, and a table that fits the terminal.

Invariants: a table is at most as wide as the terminal, or 80 columns: resources are left out, then
            amounts, and finally names are wrapped.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Final, NamedTuple

from rich.cells import cell_len

from kubesched.answers.room import Room
from kubesched.answers.top import TopGroup, TopReport, TopRow, check_question
from kubesched.answers.workload_pods import PodOwner
from kubesched.api.names import is_measured_in_bytes
from kubesched.cli.asking import AnswerOptions, open_cluster
from kubesched.cli.explain import write_unknown
from kubesched.cli.flags import FILE_PATH
from kubesched.cli.output import (
    TextTable,
    Writer,
    column_gap,
    heading_of,
    page_width,
    write_answer,
    write_page,
)
from kubesched.explain.sentences import count
from kubesched.inputs.errors import UserError, near_names
from kubesched.inputs.sources import ClusterSource
from kubesched.inputs.status_line import StatusLine
from kubesched.simulator.utilisation import FIRST_RESOURCES

_NAME_WIDTH_MIN: Final = 12
_NONE: Final = "-"
_STEPS: Final = (("Ti", 1 << 40), ("Gi", 1 << 30), ("Mi", 1 << 20), ("Ki", 1 << 10))
_DIGITS_MAX: Final = 5
_HEADINGS: Final = {
    TopGroup.NODES: "node",
    TopGroup.POOLS: "pool",
    TopGroup.ZONES: "zone",
    TopGroup.NAMESPACES: "namespace",
    TopGroup.PRIORITIES: "priority",
    TopGroup.OWNERS: "owner",
}


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
    """Show what pods request, with at most `limit` rows.

    `group` names the rows, or is the first file of the cluster; None are nodes.
    """
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
            watch=status.counting("{:,} more pods fit so far"),
        )
    if asked.html is not None:
        # The view has the requests of each node.
        more = [report] if report.group != "nodes" or report.room is not None else []
        write_page(asked.html, cluster.view(pool_label=pool_label), *more)
    write_answer(report, asked.output, partial(_write, limit=limit))


def _is_group(text: str) -> bool:
    """Whether the text names a group, not a file; raises UserError if it nearly names a group."""
    groups = [*TopGroup]
    if text in groups:
        return True
    if text and not Path(text).exists() and (near := near_names(text, groups)):
        raise UserError(f"{text}: there is no such file; did you mean {near[0]}?")
    return False


def _write(writer: Writer, report: TopReport, limit: int) -> None:
    writer.headline(_headline(report))
    if report.pending.pods:
        writer.line(_pending_sentence(report))
    if report.room is not None:
        _write_room(writer, report.room)
    if not report.rows:
        return
    shown = report.rows[:limit]
    writer.line()
    table, left_out = _table(report, shown, page_width(), column_gap())
    writer.table(table, indent=0)
    number = len(report.rows)
    writer.rest(number - len(shown), f"--top {number} shows all", indent=0)
    if left_out:
        text = f"Left out for width: {', '.join(left_out)}; see --sort-by RESOURCE, or -o json."
        writer.line(text, dim=True)
    if report.room is not None:
        write_unknown(writer, report.room.unknown)


# Sentences.


def _headline(report: TopReport) -> str:
    if not report.total.nodes:
        return "There are no nodes."
    shares = [
        f"{use.share:.0%} of {use.resource}"
        for use in report.total.resources
        if use.share is not None and (use.resource in FIRST_RESOURCES or use.requested)
    ]
    nodes = count(report.total.nodes, "node")
    text = f"Requested on {nodes}: {', '.join(shares) or 'nothing'}."
    cordoned = report.total.cordoned
    verb = "is" if cordoned == 1 else "are"
    return f"{text} {count(cordoned, 'node')} {verb} cordoned." if cordoned else text


def _pending_sentence(report: TopReport) -> str:
    pods, requests = report.pending.pods, report.pending.requests
    order = [use.resource for use in report.total.resources if use.resource in requests]
    listed = ", ".join(f"{name} {kubectl_amount(name, requests[name])}" for name in order)
    verb = "requests" if pods == 1 else "request"
    return f"{count(pods, 'pending pod')} {verb} {listed or 'nothing'}."


def _write_room(writer: Writer, room: Room) -> None:
    pods = "1 more pod" if room.total == 1 else f"{room.total:,} more pods"
    if not room.by_plugins:
        writer.line(f"Room for {pods} of {room.shape}; taints and cordons are ignored.")
        return
    text = f"Room for {pods} like {room.shape}." if room.total else f"No room for {room.shape}."
    writer.line(text)
    reasons = [
        f"{found.nodes:,} {found.reason}" if found.nodes else found.reason
        for found in room.stopped_by
    ]
    if reasons:
        writer.line(f"{'The next' if room.total else 'It'} fits nowhere: {', '.join(reasons)}.")


# The table.


class _Column(NamedTuple):
    """A heading, and one cell per row and one for the total."""

    heading: str
    cells: list[str]

    @property
    def width(self) -> int:
        return max(map(cell_len, (heading_of(self.heading), *self.cells)))


def _table(
    report: TopReport, shown: Sequence[TopRow], width: int, gap: int
) -> tuple[TextTable, list[str]]:
    """Return the table, and the resources that are left out."""
    rows = [*shown, report.total]
    names = [*(_name(report.group, row) for row in shown), "total"]
    name = _Column(_HEADINGS[report.group], names)
    first, last = _counts(report, rows)
    resources = _ordered(report)
    free = width - sum(cells.width + gap for cells in (*first, *last))
    for has_both in (True, False):
        found = [_of_resource(report, resource, rows, has_both=has_both) for resource in resources]
        fitting = _fitting(found, free - name.width, gap)
        if fitting >= len(FIRST_RESOURCES):
            break
    else:
        # Long names are wrapped, so that the main resources are shown.
        fitting = _fitting(found[: len(FIRST_RESOURCES)], free - _NAME_WIDTH_MIN, gap)
    chosen = [cells for group in found[:fitting] for cells in group]
    taken = sum(cells.width + gap for cells in chosen)
    columns = [name, *first, *chosen, *last]
    lines = zip(*(cells.cells for cells in columns), strict=True)
    room = max(free - taken, _NAME_WIDTH_MIN)
    wrapped = [line for cells in lines for line in _wrapped(cells, room)]
    left_out = resources[fitting:]
    headings = [column.heading for column in columns]
    return TextTable(headings, wrapped, headings[1:]), left_out


def _fitting(found: Sequence[Sequence[_Column]], width: int, gap: int) -> int:
    """Return how many of the groups of columns fit."""
    for number, group in enumerate(found):
        width -= sum(cells.width + gap for cells in group)
        if width < 0:
            return number
    return len(found)


def _wrapped(cells: Sequence[str], width: int) -> Iterator[tuple[str, ...]]:
    """Yield a row, and further rows for the rest of a name that is too long."""
    name, *others = cells
    yield (name[:width], *others)
    for at in range(width, len(name), width):
        yield (name[at : at + width], *("" for _ in others))


def _ordered(report: TopReport) -> list[str]:
    """Return the resources to show, the one that is sorted by first."""
    asked = {use.resource for use in report.total.resources if use.requested}
    asked |= {report.sort_by, *report.pending.requests}
    names = [use.resource for use in report.total.resources if use.resource in asked]
    others = [name for name in names if name not in FIRST_RESOURCES]
    # Devices come before storage and huge pages.
    ordered = [*FIRST_RESOURCES, *sorted(others, key=is_measured_in_bytes)]
    return sorted(ordered, key=lambda name: name != report.sort_by)


def _name(group: TopGroup, row: TopRow) -> str:
    if group is TopGroup.OWNERS:
        return str(PodOwner(row.namespace, row.name, row.kind))
    if group is TopGroup.PRIORITIES and row.name != str(row.priority):
        return f"{row.name} ({row.priority})"
    name = row.name or _NONE
    return f"{name} (cordoned)" if group is TopGroup.NODES and row.cordoned else name


def _counts(report: TopReport, rows: Sequence[TopRow]) -> tuple[list[_Column], list[_Column]]:
    """Return the columns before the resources, and those behind."""
    first, last = [], []
    if report.group is not TopGroup.NODES:
        first.append(_numbers("nodes", [row.nodes for row in rows]))
    if not report.group.is_of_nodes and report.pending.pods:
        pending = [row.pending.pods for row in rows if row.pending is not None]
        last.append(_numbers("pending", [*pending, report.pending.pods]))
    if report.room is not None:
        last.append(_numbers("room", [row.room or 0 for row in rows]))
    return first, last


def _numbers(heading: str, numbers: Sequence[int]) -> _Column:
    return _Column(heading, [str(number) for number in numbers])


def _of_resource(
    report: TopReport, resource: str, rows: Sequence[TopRow], *, has_both: bool
) -> list[_Column]:
    heading = resource.rpartition("/")[2]
    uses = [row.use_of(resource) for row in rows]
    share_cells = [_NONE if use.share is None else f"{use.share:.0%}" for use in uses]
    amount_cells = [kubectl_amount(resource, use.requested) for use in uses]
    if report.group.is_of_nodes:
        amount_cells = [
            f"{amount}/{kubectl_amount(resource, use.allocatable)}"
            for amount, use in zip(amount_cells, uses, strict=True)
        ]
    amounts = _Column(heading, amount_cells)
    shares = _Column(f"{heading}%", share_cells)
    if has_both:
        return [amounts, shares]
    # Many pods are a small share of a cluster.
    return [shares if report.group.is_of_nodes else amounts]


def kubectl_amount(resource: str, number: int) -> str:
    """Return an amount in kubectl's units, of at most five digits: 3500m, 8, 5376Mi, 32Gi."""
    if resource == "cpu":
        is_exact = number % 1000 and number < 10**_DIGITS_MAX
        return f"{number}m" if is_exact else str(round(number / 1000))
    if not is_measured_in_bytes(resource):
        return str(number)
    for unit, size in _STEPS:
        whole, rest = divmod(number, size)
        if not rest and whole < 10**_DIGITS_MAX and (whole or not number):
            return f"{whole}{unit}" if whole else "0"
    for unit, size in reversed(_STEPS):
        if number // size < 10**_DIGITS_MAX:
            return f"{round(number / size)}{unit}"
    return f"{number // _STEPS[0][1]}Ti"
