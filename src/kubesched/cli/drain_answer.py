"""The work of `kubesched drain`: load the cluster, drain nodes in a trial, write the answer.

Rejects:  unknown nodes; suggests similar names.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Final

from kubesched.answers.cluster import Cluster
from kubesched.answers.drain import DrainedPod, DrainReport, PodFate
from kubesched.cli.errors import write_warnings
from kubesched.cli.files import check_inputs
from kubesched.cli.output import Writer
from kubesched.cli.trials import write_notes, write_preempted, write_wrapped
from kubesched.explain.sentences import count, names
from kubesched.inputs.sources import ClusterSource, SchedulerOptions

_INDENT: Final = 2
_MOVED_MAX: Final = 30
_TROUBLES_MAX: Final = 10


def ask_drain(
    options: SchedulerOptions, source: ClusterSource, nodes: Sequence[str]
) -> DrainReport:
    """Answer what happens when nodes are drained.

    Raises:
        UserError: A node does not exist.
        DecodeError, ConfigError, SetupError: A file cannot be used.
        PluginError: A plugin raised.
    """
    check_inputs([*source.files, options.config])
    cluster = Cluster.read(source, options)
    write_warnings(cluster.warnings)
    return cluster.drain(*nodes)


def write_drain(writer: Writer, report: DrainReport) -> None:
    """Write the answer."""
    write_wrapped(writer, _headline(report), headline=True)
    if report.flags:
        write_wrapped(writer, f"kubectl drain needs {' '.join(report.flags)}.")
    write_notes(writer, report.notes, report.unknown)
    troubles = [pod for pod in report.pods if pod.is_trouble]
    if troubles:
        writer.heading("What finds no place")
        write_troubles(writer, troubles)
    for node in report.nodes:
        _write_moved(writer, node, [pod for pod in report.pods if pod.node == node])
    write_preempted(writer, "Evicted for them", report.preempted)


def _headline(report: DrainReport) -> str:
    fates = Counter(pod.fate for pod in report.pods)
    nodes = names(report.nodes)
    moved = fates[PodFate.MOVED]
    if report.succeeds:
        places = f"{count(moved, 'pod')} of {nodes} find{'s' * (moved == 1)} a place elsewhere"
        return f"The drain works: {places}." if moved else f"{nodes}: nothing has to move."
    evicted = sum(not one.new_node for one in report.preempted)
    found = [
        (moved, "moves", "move"),
        (fates[PodFate.WAITS], "waits for a disruption budget", "wait for disruption budgets"),
        (fates[PodFate.PENDING], "stays pending", "stay pending"),
        (fates[PodFate.LOST], "would not come back", "would not come back"),
        (evicted, "other is evicted and finds none", "others are evicted and find none"),
    ]
    parts = [f"{number} {one if number == 1 else many}" for number, one, many in found if number]
    return f"Not every pod of {nodes} finds a place: {', '.join(parts)}."


def write_troubles(writer: Writer, pods: Sequence[DrainedPod], indent: int = _INDENT) -> None:
    """Write which pods have no place and why, those with the same reason together."""
    groups: dict[tuple[object, ...], list[DrainedPod]] = {}
    for pod in pods:
        key = (pod.fate, pod.budgets, pod.message, pod.unknown)
        groups.setdefault(key, []).append(pod)
    for found in groups.values():
        _write_trouble(writer, found, indent)


def _write_trouble(writer: Writer, pods: Sequence[DrainedPod], indent: int) -> None:
    first, is_one = pods[0], len(pods) == 1
    who = ", ".join(pod.pod for pod in pods[:_TROUBLES_MAX])
    if len(pods) > _TROUBLES_MAX:
        who = f"{who} and {len(pods) - _TROUBLES_MAX} more"
    match first.fate:
        case PodFate.WAITS:
            waits = "waits" if is_one else "wait"
            write_wrapped(writer, f"{who} {waits} for {names(first.budgets)}:", indent)
        case PodFate.LOST:
            why = "it has no controller" if is_one else "they have no controller"
            write_wrapped(writer, f"{who} would not come back: {why}", indent)
            return
        case _:
            write_wrapped(writer, f"{who} stay{'s' * is_one} pending:", indent)
    text = "not known, because the input lacks objects" if first.unknown else first.message
    write_wrapped(writer, text, indent + 2 * _INDENT, dim=True)


def _write_moved(writer: Writer, node: str, pods: Sequence[DrainedPod]) -> None:
    moved = [pod for pod in pods if pod.fate is PodFate.MOVED]
    stays = sum(pod.fate is PodFate.STAYS for pod in pods)
    ended = sum(pod.fate is PodFate.ENDED for pod in pods)
    if pods and not (moved or stays or ended):
        return
    writer.heading(f"From {node}")
    rounds = {pod.round for pod in moved}
    for pod in sorted(moved, key=lambda one: one.round)[:_MOVED_MAX]:
        when = f", in round {pod.round}" if len(rounds) > 1 else ""
        write_wrapped(writer, f"{pod.pod} to {pod.new_node}{when}", _INDENT)
    if len(moved) > _MOVED_MAX:
        _write_more(writer, len(moved) - _MOVED_MAX)
    if stays:
        text = f"{count(stays, 'pod')} of DaemonSets, or static: not evicted"
        writer.line(text, indent=_INDENT)
    if ended:
        writer.line(f"{count(ended, 'pod')} being deleted already", indent=_INDENT)
    if not pods:
        writer.line("no pods", indent=_INDENT)


def _write_more(writer: Writer, left: int) -> None:
    writer.line(f"and {left} more; -o json shows all", indent=_INDENT)
