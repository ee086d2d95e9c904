"""The work of `kubesched compare` on clusters: read, simulate, write the differences."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

import click

from kubesched.answers.cluster import Cluster
from kubesched.answers.cluster_comparison import (
    ClusterComparison,
    ClusterDifference,
    ClusterEnd,
    ComparedCluster,
    PodDifference,
    compared_clusters,
)
from kubesched.answers.workload_pods import PodOwner
from kubesched.api.decode import STANDARD_INPUT
from kubesched.cli.errors import write_warnings
from kubesched.cli.explain_text import write_unknown
from kubesched.cli.files import short_names
from kubesched.cli.output import ITEM, Writer, page_width, table_width
from kubesched.cli.simulate_run import run_simulation
from kubesched.explain.sentences import count, names, phrases
from kubesched.explain.tables import TextTable
from kubesched.inputs.sources import ClusterSource, SchedulerOptions
from kubesched.simulator.report import ResourceUse, Summary, ZoneUse

_NONE: Final = "-"
_LETTERS: Final = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"


def compare_clusters(
    sources: Sequence[ClusterSource], options: Sequence[SchedulerOptions]
) -> ClusterComparison | None:
    """Place the pending pods of each cluster, and compare; None after Ctrl-C, which is reported.

    Either several clusters have one scheduler, or one cluster has several.

    Raises:
        UserError: A cluster, configuration or plugin cannot be used.
        DecodeError, ConfigError, SetupError: A file cannot be used.
        PluginError: A plugin raised.
    """
    read = [Cluster.read(source, options[0]) for source in sources]
    clusters = [*read, *(read[0].under(each) for each in options[1:])]
    for found in read:
        write_warnings(f"{found.source}: {warning}" for warning in found.warnings)
    if len(options) > 1:
        called = short_names([each.config or Path("default") for each in options])
    else:
        called = short_names([Path(_name(*pair)) for pair in zip(sources, read, strict=True)])
    ends = []
    for name, cluster in zip(called, clusters, strict=True):
        end, _ = run_simulation(cluster)
        if end.report.partial:
            click.echo(f"kubesched: no comparison: {name} was interrupted", err=True)
            return None
        ends.append(ClusterEnd(name, cluster.objects, end))
    return compared_clusters(ends, options[0].seed)


def _name(source: ClusterSource, found: Cluster) -> str:
    """Return the path of a file, or the name of a context."""
    if source.files and str(source.files[0]) != STANDARD_INPUT:
        return str(source.files[0])
    return found.source.removeprefix("context ")


# Text.


def write_comparison(writer: Writer, comparison: ClusterComparison, top: int) -> None:
    """Write the differences, then the totals; each list shows at most `top` pods."""
    first = comparison.clusters[0].name
    for number, difference in enumerate(comparison.differences):
        if number:
            writer.line()
        writer.headline(_headline(difference, first))
        _write_difference(writer, difference, first, top)
    writer.heading("Totals, after the pending pods were placed")
    _write_table(writer, comparison.clusters, list(_totals(comparison.clusters)), "what")
    zones = list(_zones(comparison.clusters))
    if len(zones) > 1:
        writer.heading("Pods in each zone, and requested of its cpu")
        _write_table(writer, comparison.clusters, zones, "zone")
    unknown = {one.kind: one for cluster in comparison.clusters for one in cluster.unknown}
    write_unknown(writer, list(unknown.values()))


def _headline(difference: ClusterDifference, first: str) -> str:
    found = [
        (len(difference.elsewhere), "pod lands elsewhere", "pods land elsewhere"),
        (len(difference.no_longer_fit), "pod no longer fits", "pods no longer fit"),
        (len(difference.newly_fit), "pod newly fits", "pods newly fit"),
        (len(difference.pods_gone), "pod is gone", "pods are gone"),
        (len(difference.pods_new), "pod is new", "pods are new"),
    ]
    if text := phrases(found):
        return f"{difference.cluster}, compared with {first}: {text}."
    return f"{difference.cluster}: every pod ends as in {first}."


def _write_difference(writer: Writer, difference: ClusterDifference, first: str, top: int) -> None:
    chosen = [pod for pod in difference.elsewhere if pod.scheduled]
    moved = [pod for pod in difference.elsewhere if not pod.scheduled]
    lists = {
        "Land elsewhere": chosen,
        "Run on another node": moved,
        "No longer fit": difference.no_longer_fit,
        "Newly fit": difference.newly_fit,
    }
    for heading, pods in lists.items():
        if pods:
            writer.heading(heading)
            _write_pods(writer, pods[:top], first, difference.cluster)
            writer.rest(len(pods) - top, f"--top {len(pods)} shows all")
    if difference.workloads:
        writer.heading(f"Pods in {first} only (gone), or in {difference.cluster} only (new)")
        for found in difference.workloads[:top]:
            owner = PodOwner(found.namespace, found.name, found.kind)
            counts = phrases([(found.gone, "gone", "gone"), (found.new, "new", "new")])
            writer.item(f"{owner}: {counts}")
        number = len(difference.workloads)
        writer.rest(number - top, f"--top {number} shows all")
    for heading, nodes in (("gone", difference.nodes_gone), ("new", difference.nodes_new)):
        if nodes:
            writer.heading(f"{count(len(nodes), 'node')} {heading}")
            writer.item(names(nodes))


def _write_pods(writer: Writer, pods: Sequence[PodDifference], first: str, other: str) -> None:
    for pod in pods:
        writer.item(f"{pod.pod}: {pod.before or _NONE} → {pod.after or _NONE}")
        if pod.why:
            where = other if pod.before else first
            writer.detail(f"in {where}: {pod.why}")


# Tables.

_Row = tuple[str, ...]


def _write_table(
    writer: Writer, clusters: Sequence[ComparedCluster], rows: Sequence[_Row], what: str
) -> None:
    """Write a table with a column per cluster; long names are replaced by letters."""
    headings = [cluster.name for cluster in clusters]
    table = _table_of(what, headings, rows)
    if table_width(table) + ITEM > page_width():
        letters = list(_LETTERS[: len(headings)])
        for letter, name in zip(letters, headings, strict=False):
            writer.item(f"{letter}: {name}")
        table = _table_of(what, letters, rows)
    writer.table(table)


def _table_of(what: str, headings: Sequence[str], rows: Sequence[_Row]) -> TextTable:
    return TextTable((what, *headings), rows, headings)


def _totals(clusters: Sequence[ComparedCluster]) -> Iterator[_Row]:
    """Yield one row per figure, without those that are 0 everywhere."""
    summaries = [cluster.summary for cluster in clusters]
    yield "nodes", *(str(one.nodes) for one in summaries)
    yield "pods on nodes", *(str(_use(one, "pods").requested_after) for one in summaries)
    yield "pods placed", *(f"{one.placed} of {one.pods}" for one in summaries)
    counts = {
        "pods that did not fit": [one.unplaced for one in summaries],
        "pods held back": [one.gated for one in summaries],
        "pods ignored": [one.ignored for one in summaries],
        "pods evicted": [one.evicted for one in summaries],
    }
    for words, numbers in counts.items():
        if any(numbers):
            yield words, *map(str, numbers)
    resources = dict.fromkeys(use.resource for one in summaries for use in one.resources)
    for name in resources:
        uses = [_use(one, name) for one in summaries]
        if any(use.requested_after for use in uses):
            yield f"{name} requested", *(_share(use.share_after) for use in uses)
    for name in resources:
        shares = [cluster.fragmentation.get(name) for cluster in clusters]
        if any(share is not None for share in shares):
            yield f"{name} fragmented", *map(_share, shares)


def _zones(clusters: Sequence[ComparedCluster]) -> Iterator[_Row]:
    """Yield one row per zone: the number of pods there, and the share of cpu."""
    found = [{(zone.region, zone.zone): zone for zone in one.zones} for one in clusters]
    keys = sorted({key for zones in found for key in zones})
    has_regions = len({region for region, _ in keys}) > 1
    for region, zone in keys:
        name = "/".join(filter(None, (region, zone))) if has_regions else zone
        yield name or _NONE, *(_zone(zones.get((region, zone))) for zones in found)


def _zone(zone: ZoneUse | None) -> str:
    if zone is None:
        return _NONE
    uses = {use.resource: use for use in zone.resources}
    return f"{uses['pods'].requested_after}, {_share(uses['cpu'].share_after)}"


def _use(summary: Summary, resource: str) -> ResourceUse:
    """Return the use of a resource, which may exist only in another cluster."""
    found = [use for use in summary.resources if use.resource == resource]
    return found[0] if found else ResourceUse(resource, 0, 0, 0, None, None)


def _share(share: float | None) -> str:
    return _NONE if share is None else f"{share:.0%}"
