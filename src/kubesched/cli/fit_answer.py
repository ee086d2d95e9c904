"""The work of `kubesched fit`: load manifests and cluster, ask, write the answer.

Rejects:  manifests without a workload, names in --replicas that no workload has, shapes of nodes
          that cannot be used.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Final, NamedTuple, cast

from kubesched.answers.asking import run_trial
from kubesched.answers.fit import FitQuestion, FitReport, MorePods, PodsOnNode, WorkloadFit, fit
from kubesched.answers.manifests import read_manifests
from kubesched.answers.missing_nodes import MissingNodes
from kubesched.answers.node_shapes import NodeShape, parse_price, parse_shape, shape_of
from kubesched.answers.trial_cluster import TrialCluster
from kubesched.answers.workload_pods import WORKLOADS, Workload
from kubesched.api.apps import DaemonSet
from kubesched.api.core import Node
from kubesched.api.decode import STANDARD_INPUT, load
from kubesched.cli.errors import write_warnings
from kubesched.cli.output import Writer, simple_table
from kubesched.cli.trials import write_notes, write_preempted, write_without_node, write_wrapped
from kubesched.explain.sentences import count, names
from kubesched.inputs.cluster_input import read_cluster
from kubesched.inputs.errors import UserError
from kubesched.inputs.loading import (
    distinct_objects,
    load_scheduler,
)
from kubesched.inputs.near_names import near_names
from kubesched.inputs.sources import ClusterSource, SchedulerOptions
from kubesched.snapshot.objects import KubernetesObject

_INDENT: Final = 2
_NODES_MAX: Final = 12
_REPLICAS_MAX: Final = 100_000


class FitArguments(NamedTuple):
    """The arguments of the command, as written."""

    manifests: tuple[Path, ...]
    namespace: str
    replicas: tuple[str, ...]
    more: bool
    templates: tuple[str, ...]


def ask_fit(options: SchedulerOptions, source: ClusterSource, arguments: FitArguments) -> FitReport:
    """Answer whether the workloads of manifests fit.

    Raises:
        UserError: An argument is wrong, or the manifests have no workload.
        DecodeError, ConfigError, SetupError: A file cannot be used.
        PluginError: A plugin raised.
    """
    both = [*arguments.manifests, *source.files]
    if both.count(Path(STANDARD_INPUT)) > 1:
        raise UserError("`-` stands twice, but standard input can be read only once")
    scheduler = load_scheduler(options)
    given = read_cluster(source, (), options.profile)
    namespace = arguments.namespace or given.namespace or "default"
    items, warnings = read_manifests(arguments.manifests, namespace)
    question = _question(arguments, items)
    write_warnings([*given.warnings, *warnings])

    async def ask(cluster: TrialCluster) -> FitReport:
        return await fit(cluster, items, question)

    return run_trial(scheduler, options, given, ask)


# The question.


def _question(arguments: FitArguments, items: Sequence[KubernetesObject]) -> FitQuestion:
    workloads = [item for item in items if isinstance(item, WORKLOADS)]
    every, single = _replicas(arguments.replicas, workloads)
    if arguments.more:
        if len(workloads) > 1:
            raise UserError(
                f"--max: there are {len(workloads)} workloads; name a file with only one of them"
            )
        if isinstance(workloads[0], DaemonSet):
            raise UserError(
                "--max: a DaemonSet has one pod per node; name a workload with replicas"
            )
    return FitQuestion(every, single, arguments.more, _shapes(arguments.templates))


def _replicas(
    written: Sequence[str], workloads: Sequence[Workload]
) -> tuple[int | None, dict[str, int]]:
    """Return the number of pods for every workload, and those for single ones."""
    every: int | None = None
    single: dict[str, int] = {}
    scaled = [item.metadata.name for item in workloads if not isinstance(item, DaemonSet)]
    for text in written:
        name, equals, number = text.rpartition("=")
        name = name.rpartition("/")[2]
        if not number.isdecimal() or int(number) > _REPLICAS_MAX:
            raise UserError(
                f"--replicas {text}: write a number up to {_REPLICAS_MAX}, or NAME=NUMBER"
            )
        if not equals:
            every = int(number)
        elif name in scaled:
            single[name] = int(number)
        else:
            raise UserError(f"--replicas {text}: {_no_such_workload(name, workloads, scaled)}")
    return every, single


def _no_such_workload(name: str, workloads: Sequence[Workload], scaled: Sequence[str]) -> str:
    if any(item.metadata.name == name for item in workloads):
        return "a DaemonSet has one pod per node; leave it out"
    near = near_names(name, scaled)
    hint = f"did you mean {' or '.join(near)}?" if near else f"there is {names(sorted(scaled))}"
    return f"no workload in the manifests has this name; {hint}"


def _shapes(templates: Sequence[str]) -> tuple[NodeShape, ...]:
    shapes = []
    for number, text in enumerate(templates, 1):
        try:
            shapes.append(_shape(text, number))
        except ValueError as error:
            raise UserError(f"--node-template {text}: {error}") from error
    prices = [shape.price is None for shape in shapes]
    if any(prices) and not all(prices):
        raise UserError(
            f"--node-template {templates[prices.index(True)]}: it has no price, but another has; "
            "add ,price=P to all or to none"
        )
    used: set[str] = set()
    for shape in shapes:
        if shape.name in used:
            raise UserError(f"--node-template: two are named {shape.name}; add ,name=NAME to one")
        used.add(shape.name)
    return tuple(shapes)


def _shape(text: str, number: int) -> NodeShape:
    file, _, words = text.partition(",")
    if "=" in file:
        return parse_shape(text, number)
    price = None
    for word in filter(None, words.split(",")):
        if not word.startswith("price="):
            raise ValueError(f"{word}: after a file, only price=P can be given")
        price = parse_price(word.removeprefix("price="))
    try:
        found = [one.object for one in load([Path(file)])]
    except OSError as error:
        raise ValueError(str(error)) from error
    if len(found) != 1 or not isinstance(found[0], Node):
        raise ValueError(f"{file} does not hold one Node; write a shape such as cpu=8,memory=32Gi")
    [node] = distinct_objects(load([Path(file)]))
    return shape_of(cast("Node", node), price)


# The answer.


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
