"""`kubesched compare`: clusters, scenarios, or configurations on one of them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from itertools import product
from pathlib import Path
from string import ascii_uppercase
from typing import Final

import click

from kubesched.answers.cluster import Cluster
from kubesched.answers.cluster_comparison import (
    ClusterComparison,
    ClusterDifference,
    ClusterEnd,
    ComparedCluster,
    PodDifference,
    WorkloadDifference,
    compared_clusters,
)
from kubesched.answers.workload_pods import PodOwner
from kubesched.api.decode import STANDARD_INPUT
from kubesched.cli.asking import run_simulation
from kubesched.cli.errors import EXIT_INTERRUPTED, write_warnings
from kubesched.cli.explain import write_unknown
from kubesched.cli.files import check_inputs, check_outputs, short_names
from kubesched.cli.output import (
    ITEM,
    OutputFormat,
    TextTable,
    Writer,
    page_width,
    table_width,
    write_answer,
    write_page,
)
from kubesched.cli.timeline import play
from kubesched.explain.sentences import count, names, phrases
from kubesched.inputs.errors import UserError
from kubesched.inputs.scenario_input import (
    holds_cluster,
    is_scenario,
    named_files,
    read_scenario,
    with_scheduler,
    workload_warnings,
)
from kubesched.inputs.sources import ClusterSource, SchedulerOptions
from kubesched.simulator.report import ResourceUse, Summary, ZoneUse
from kubesched.simulator.timeline_report import TimelineComparison, compared

_NONE: Final = "-"
_LETTERS: Final = (*ascii_uppercase, *map("".join, product(ascii_uppercase, repeat=2)))


def compare(
    files: tuple[Path, ...],
    contexts: tuple[str, ...],
    kubeconfig: Path | None,
    complete: bool,
    configs: tuple[Path, ...],
    seed: int | None,
    top: int,
    duration_seconds: float | None,
    html: Path | None,
    output: OutputFormat,
    feature_gates: str,
    plugins: tuple[str, ...],
) -> int:
    """Compare clusters, or scenarios; return the exit code."""
    check_inputs([*files, *configs, kubeconfig])
    saved = [file for file in files if holds_cluster(file)]
    live = [ClusterSource(kubeconfig=kubeconfig, context=name) for name in contexts]
    if kubeconfig is not None and not contexts:
        live.append(ClusterSource(kubeconfig=kubeconfig))
    inputs = len(files) + len(live)
    _check_count(inputs, len(configs), "clusters" if saved or live else "scenarios")
    given: list[Path | None] = [*configs] or [None]
    if inputs == len(configs) == 1:
        given.insert(0, None)
    options = [
        SchedulerOptions(
            config=config, feature_gates=feature_gates, plugins=plugins, seed=seed or 0
        )
        for config in given
    ]
    if not saved and not live:
        if complete:
            raise UserError("--complete is for clusters, and these are scenarios")
        return _compare_scenarios(files, options, seed, duration_seconds, html, output)
    check_outputs({"--html": html}, [*files, *configs, kubeconfig])
    _check_clusters(files, saved)
    if duration_seconds is not None:
        raise UserError("--duration is for scenarios, and these are clusters")
    sources = [*(ClusterSource((file,), complete=complete) for file in files), *live]
    comparison = _compare_clusters(sources, options)
    if comparison is None:
        return EXIT_INTERRUPTED
    write_answer(comparison, output, partial(_write, top=top), html)
    return 0


def _check_count(inputs: int, configs: int, sort: str) -> None:
    """Raise UserError unless there are several inputs, or configurations on one."""
    if not inputs:
        raise UserError("there is nothing to compare: name files, or --context NAME")
    if inputs > 1 and configs > 1:
        raise UserError(f"give several {sort} or several --config, not both")
    if inputs == 1 and not configs:
        one = sort.removesuffix("s")
        raise UserError(f"there is nothing to compare: give a second {one}, or --config")


def _check_clusters(files: Sequence[Path], saved: Sequence[Path]) -> None:
    """Raise UserError if a file is not a cluster."""
    if len(saved) < len(files):
        other = next(file for file in files if file not in saved)
        # These raise an error with the reason.
        if not is_scenario(other):
            read_scenario(other)
        if saved:
            read_scenario(saved[0])
        raise UserError(
            f"{other}: this is not a cluster; clusters are compared with clusters, and scenarios "
            "with scenarios"
        )


# Scenarios.


def _compare_scenarios(
    files: tuple[Path, ...],
    options: list[SchedulerOptions],
    seed: int | None,
    duration_seconds: float | None,
    html: Path | None,
    output: OutputFormat,
) -> int:
    configs = [each.config for each in options if each.config is not None]
    found = [read_scenario(file) for file in files]
    read = [file for each in found for file in named_files(each.scenario).values()]
    check_outputs({"--html": html}, [*files, *configs, *read])
    plays = [with_scheduler(each, one) for each in found for one in options]
    write_warnings(dict.fromkeys(line for each in plays for line in workload_warnings(each)))
    common = plays[0].scenario.seed if seed is None else seed
    plays = [each.changed(common, duration_seconds) for each in plays]
    if len({each.scenario.duration for each in plays}) > 1:
        raise UserError("the scenarios have different durations; give --duration")
    named = [each.config or files[0] for each in options] if len(options) > 1 else files
    names = short_names(named)
    reports = []
    for name, each in zip(names, plays, strict=True):
        reports.append(play(each))
        if reports[-1].partial:
            click.echo(
                f"kubesched: no comparison: {name} was interrupted; see --duration", err=True
            )
            return EXIT_INTERRUPTED
    comparison = compared(names, reports)
    write_page(html, comparison, *reports)
    write_answer(comparison, output, _write_measures)
    return 0


def _write_measures(writer: Writer, comparison: TimelineComparison) -> None:
    rows = [(row.name, *row.texts()) for row in comparison.measures]
    _write_table(writer, comparison.runs, rows, "what", indent=0)


# Clusters.


def _compare_clusters(
    sources: Sequence[ClusterSource], options: Sequence[SchedulerOptions]
) -> ClusterComparison | None:
    """Place the pending pods of each cluster, and compare; None after Ctrl-C, which is reported.

    Either several clusters have one scheduler, or one cluster has several.
    """
    read = [Cluster.read(source, options[0]) for source in sources]
    for source, found in zip(sources, read, strict=True):
        if source.files and found.warnings and not found.objects:
            raise UserError(*(f"{_name(source, found)}: {warning}" for warning in found.warnings))
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


def _write(writer: Writer, comparison: ClusterComparison, top: int) -> None:
    """Write the differences, then the totals; each list shows at most `top` pods."""
    first = comparison.clusters[0].name
    for number, difference in enumerate(comparison.differences):
        if number:
            writer.line()
        writer.headline(_headline(difference, first))
        _write_difference(writer, difference, first, top)
    writer.heading("Totals, after the pending pods were placed")
    headings = [cluster.name for cluster in comparison.clusters]
    _write_table(writer, headings, list(_totals(comparison.clusters)), "what")
    zones = list(_zones(comparison.clusters))
    if len(zones) > 1:
        writer.heading("Pods in each zone, and requested of its cpu")
        _write_table(writer, headings, zones, "zone")
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
    heading = f"Pods in {first} only (gone), or in {difference.cluster} only (new)"
    owners = [_workload_words(found) for found in difference.workloads]
    writer.section(heading, owners, top, f"--top {len(owners)} shows all")
    for heading, nodes in (("gone", difference.nodes_gone), ("new", difference.nodes_new)):
        if nodes:
            writer.section(f"{count(len(nodes), 'node')} {heading}", [names(nodes)])


def _workload_words(found: WorkloadDifference) -> str:
    owner = PodOwner(found.namespace, found.name, found.kind)
    return f"{owner}: {phrases([(found.gone, 'gone', 'gone'), (found.new, 'new', 'new')])}"


def _write_pods(writer: Writer, pods: Sequence[PodDifference], first: str, other: str) -> None:
    for pod in pods:
        writer.item(f"{pod.pod}: {pod.before or _NONE} → {pod.after or _NONE}")
        if pod.why:
            where = other if pod.before else first
            writer.detail(f"in {where}: {pod.why}")


# Tables.

_Row = tuple[str, ...]


def _write_table(
    writer: Writer, headings: Sequence[str], rows: Sequence[_Row], what: str, indent: int = ITEM
) -> None:
    """Write a table with a column per cluster or run; long names are replaced by letters."""
    table = _table_of(what, headings, rows)
    if table_width(table) + indent > page_width():
        letters = _LETTERS[: len(headings)]
        for letter, name in zip(letters, headings, strict=True):
            writer.line(f"{letter}: {name}", indent=indent)
        table = _table_of(what, letters, rows)
    writer.table(table, indent=indent)


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
