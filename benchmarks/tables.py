"""Tables of a record, for terminals and as Markdown."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from benchmarks.diverse import Diverse
from benchmarks.footprint import Footprint
from benchmarks.history import Record
from benchmarks.live import LiveRun
from benchmarks.long import LongRun
from benchmarks.loop import LoopSpeed
from benchmarks.million import Million
from benchmarks.openb import Replay
from benchmarks.overload import Overload
from benchmarks.plugins import POINTS
from benchmarks.preemption import PreemptionSpeed
from benchmarks.throughput import Throughput
from benchmarks.workloads import WORKLOADS, Reference

_MISSING = "-"


@dataclass(frozen=True, slots=True)
class Table:
    """Rows of text; the first column is aligned to the left, the others to the right.

    Attributes:
        title: What the table shows.
        columns: One heading per column.
        rows: One text per column each.
    """

    title: str
    columns: Sequence[str]
    rows: Sequence[Sequence[str]]

    def text(self) -> str:
        """Return the table for a terminal."""
        lines = [self.columns, *self.rows]
        widths = [max(len(line[at]) for line in lines) for at in range(len(self.columns))]
        body = (
            "  ".join(
                [line[0].ljust(widths[0]), *map(str.rjust, line[1:], widths[1:])],
            )
            for line in lines
        )
        return "\n".join((self.title, "", *body, ""))

    def markdown(self) -> str:
        """Return the table for a page."""
        rule = ["---", *(["--:"] * (len(self.columns) - 1))]
        body = (f"| {' | '.join(line)} |" for line in (self.columns, rule, *self.rows))
        return "\n".join((f"### {self.title}", "", *body, ""))


def tables(record: Record) -> Iterator[Table]:
    """Iterate over the tables of what a record holds."""
    if record.throughput:
        yield _throughput(record)
    if record.tracing is not None:
        yield _tracing(record)
    if record.plugins:
        yield _plugins(record)
    if record.kernels:
        yield _kernels(record)
    if record.scaling is not None:
        yield _scaling(record)
    yield from _tables_of_runs(record)


def _tables_of_runs(record: Record) -> Iterator[Table]:
    if record.loop is not None:
        yield _loop(record.loop)
    if record.live is not None:
        yield _live(record.live)
    if record.footprint is not None:
        yield _footprint(record.footprint)
    if record.long is not None:
        yield _long(record.long)
    if record.openb:
        yield _openb(record.openb)
    if record.diverse:
        yield _diverse(record.diverse)
    if record.million:
        yield _million(record.million)
    if record.overload:
        yield _overload(record.overload)
    if record.preemption is not None:
        yield _preemption(record.preemption)


def caption(record: Record) -> str:
    """Return date, commit and versions of the figures as one line."""
    size = ", a tenth of the size" if record.is_quick else ""
    return (
        f"{record.date}, commit {record.commit}, Python {record.python}, "
        f"NumPy {record.numpy}, {record.cpus} CPUs{size}"
    )


def _throughput(record: Record) -> Table:
    # kube-scheduler's figures for ten times the pods are no reference.
    known = () if record.is_quick else WORKLOADS
    references = {workload.name: workload.reference for workload in known}
    columns = (
        "workload",
        "nodes",
        "pods before",
        "pods",
        "pods/s",
        "pods/CPU s",
        "decision µs",
        "p50",
        "p99",
        "RSS MiB",
        "kube-scheduler pods/s",
        "its decision µs",
        "its RSS MiB",
    )
    rows = [
        (*_run(found), *_reference(references.get(found.name, Reference())))
        for found in record.throughput.values()
    ]
    return Table("Throughput", columns, rows)


def _run(found: Throughput) -> tuple[str, ...]:
    return (
        found.name,
        f"{found.nodes:,}",
        f"{found.before:,}",
        f"{found.pods:,}",
        f"{found.pods_per_second:,.0f}",
        f"{found.pods_per_cpu_second:,.0f}",
        _figure(found.decision_us),
        _figure(found.decision_p50_us),
        _figure(found.decision_p99_us),
        f"{found.rss_mib:,}",
    )


def _reference(reference: Reference) -> tuple[str, str, str]:
    speed, decision_ms, rss_gib = (
        reference.pods_per_second,
        reference.decision_ms,
        reference.rss_gib,
    )
    speeds = _MISSING if speed is None else "-".join(map(str, dict.fromkeys(speed)))
    return (
        speeds,
        _MISSING if decision_ms is None else _figure(decision_ms * 1000),
        _MISSING if rss_gib is None else f"{rss_gib * 1024:,.0f}",
    )


def _tracing(record: Record) -> Table:
    found = record.tracing
    assert found is not None, "asked only of a record that has it"
    columns = ("decision", "without a trace, µs", "with a trace, µs")
    row = (found.name, _figure(found.untraced_us), _figure(found.traced_us))
    return Table("Tracing", columns, (row,))


def _plugins(record: Record) -> Table:
    rows = [
        (f"{name}, {kind} pod", *(_figure(costs.get(point)) for point in POINTS))
        for kind, plugins in record.plugins.items()
        for name, costs in plugins.items()
    ]
    return Table("Plugins, µs per pod", ("plugin", *POINTS), rows)


def _kernels(record: Record) -> Table:
    sizes = sorted({size for costs in record.kernels.values() for size in costs})
    rows = [
        (name, *(_figure(costs.get(size)) for size in sizes))
        for name, costs in record.kernels.items()
    ]
    columns = ("kernel", *(f"{size:,} nodes" for size in sizes))
    return Table("Kernels, µs per call", columns, rows)


def _scaling(record: Record) -> Table:
    found = record.scaling
    assert found is not None, "asked only of a record that has it"
    ratios = ", ".join(map(str, found.ratios))
    rows = [(f"{size:,}", _figure(cost)) for size, cost in sorted(found.pod_us.items())]
    title = f"Scaling: the largest costs {found.ratio} times the standard size ({ratios})"
    return Table(title, ("nodes", "µs of CPU per pod"), rows)


def _loop(found: LoopSpeed) -> Table:
    columns = ("nodes", "pods", "bound", "virtual s", "pods/s", "pods/CPU s", "RSS MiB")
    row = (
        f"{found.nodes:,}",
        f"{found.pods:,}",
        f"{found.bound:,}",
        _figure(found.virtual_seconds),
        f"{found.pods_per_second:,.0f}",
        f"{found.pods_per_cpu_second:,.0f}",
        f"{found.rss_mib:,}",
    )
    return Table("Loop: queue, cycles and simulated binding", columns, (row,))


def _live(found: LiveRun) -> Table:
    columns = ("nodes", "pods", "bound", "s", "pods/s", "CPU ms/pod", "RSS MiB", "server's RSS MiB")
    row = (
        f"{found.nodes:,}",
        f"{found.pods:,}",
        f"{found.bound:,}",
        _figure(found.seconds),
        f"{found.pods_per_second:,.0f}",
        _figure(found.cpu_ms_per_pod),
        f"{found.rss_mib:,}",
        f"{found.server_rss_mib:,}",
    )
    return Table("Live: the scheduler's own process on a sandbox", columns, (row,))


def _footprint(found: Footprint) -> Table:
    columns = ("nodes", "pods", "s", "CPU s", "RSS MiB")
    row = (
        f"{found.nodes:,}",
        f"{found.pods:,}",
        _figure(found.seconds),
        _figure(found.cpu_seconds),
        f"{found.rss_mib:,}",
    )
    return Table("Footprint: the scheduler's own process and a full cluster", columns, (row,))


def _long(found: LongRun) -> Table:
    columns = ("virtual hours", "nodes", "pods", "s", "CPU s", "RSS MiB", "grown by")
    row = (
        f"{found.virtual_hours:,}",
        f"{found.nodes:,}",
        f"{found.pods:,}",
        _figure(found.seconds),
        _figure(found.cpu_seconds),
        f"{found.peak_rss_mib:,}",
        f"{found.growth:.1%}",
    )
    verdict = "stays flat" if found.is_flat else "GROWS"
    samples = ", ".join(
        f"{each:,.0f}" for each in found.rss_mib[:: max(1, len(found.rss_mib) // 10)]
    )
    return Table(f"Long simulation: memory {verdict} ({samples} MiB)", columns, (row,))


def _openb(found: Mapping[str, Replay]) -> Table:
    columns = ("trace", "nodes", "pods", "bound", "virtual days", "s", "CPU s", "GPUs fragmented")
    rows = [
        (
            name,
            f"{each.nodes:,}",
            f"{each.pods:,}",
            f"{each.bound:,}",
            f"{each.virtual_days:,}",
            _figure(each.seconds),
            _figure(each.cpu_seconds),
            _MISSING if each.gpu_fragmented is None else f"{each.gpu_fragmented:.1%}",
        )
        for name, each in found.items()
    ]
    return Table("A GPU trace with its times", columns, rows)


def _diverse(found: Mapping[str, Diverse]) -> Table:
    columns = (
        *("shape", "nodes", "pods", "placed", "µs/pod", "first 5,000", "last 1,000"),
        *("p50", "p99", "slowest", "loaded MiB", "RSS MiB"),
    )
    rows = [
        (
            name,
            f"{each.nodes:,}",
            f"{each.pods:,}",
            f"{each.placed:,}",
            *(
                f"{us:,.0f}"
                for us in (
                    *(each.pod_us, each.first_us, each.last_us),
                    *(each.p50_us, each.p99_us, each.slowest_us),
                )
            ),
            f"{each.loaded_mib:,}",
            f"{each.rss_mib:,}",
        )
        for name, each in found.items()
    ]
    return Table("Pods that differ: CPU time from the decoded to the assumed pod", columns, rows)


def _million(found: Mapping[str, Million]) -> Table:
    columns = (
        *("pods are", "nodes", "pods", "bound", "decode s", "load s", "CPU s", "µs/pod"),
        *("decoded MiB", "RSS MiB"),
    )
    rows = [
        (
            name,
            f"{each.nodes:,}",
            f"{each.pods:,}",
            f"{each.bound:,}",
            f"{each.decode_seconds:,.0f}",
            f"{each.load_seconds:,.0f}",
            f"{each.cpu_seconds:,.1f}",
            f"{each.cpu_seconds / max(each.bound, 1) * 1e6:,.0f}",
            f"{each.decoded_mib:,}",
            f"{each.rss_mib:,}",
        )
        for name, each in found.items()
    ]
    return Table("A million nodes: queue, cycles, simulated binding and watch", columns, rows)


def _overload(found: Sequence[Overload]) -> Table:
    columns = (
        *("nodes", "load", "hours", "pods", "bound", "pending", "attempts", "CPU s"),
        *("µs/attempt", "RSS MiB"),
    )
    rows = [
        (
            f"{each.nodes:,}",
            f"{each.load:.0%}",
            f"{each.virtual_hours:g}",
            f"{each.pods:,}",
            f"{each.bound:,}",
            f"{each.pending:,}",
            f"{each.attempts:,}",
            f"{each.cpu_seconds:,.1f}",
            _figure(each.cpu_seconds / max(1, each.attempts) * 1e6),
            f"{each.peak_rss_mib:,}",
        )
        for each in found
    ]
    return Table("Simulations of crowded clusters", columns, rows)


def _preemption(found: PreemptionSpeed) -> Table:
    columns = ("nodes", "pods", "budgets", "preemptors", "bound", "evicted", "CPU s", "per CPU s")
    counts = (found.pods, found.budgets, found.preemptors, found.bound, found.evicted)
    row = (
        f"{found.nodes:,}",
        *(f"{count:,}" for count in counts),
        f"{found.cpu_seconds:,.1f}",
        f"{found.preemptors_per_cpu_second:,.0f}",
    )
    return Table("Asynchronous preemption: loop, evictions and watch", columns, (row,))


def _figure(value: float | None) -> str:
    """Return a value with three significant digits."""
    if value is None:
        return _MISSING
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"
