"""Answers about changes of a cluster as text: fit, drain, whatif, upgrade and compact."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Final

from kubesched.answers.drain import DrainedPod, DrainReport, PodFate
from kubesched.answers.fit import FitReport, MorePods, PodsOnNode, WorkloadFit
from kubesched.answers.missing_nodes import MissingNodes
from kubesched.answers.pod_outcomes import PodsWithoutNode, PreemptedPod
from kubesched.answers.upgrade import CompactReport, NodesAtOnce, NodeThatBlocks, UpgradeReport
from kubesched.answers.whatif import ClusterUse, MovedPod, WhatIfReport
from kubesched.cli.explain_text import write_unknown
from kubesched.cli.output import ITEM, Writer
from kubesched.cli.simulate_text import amount
from kubesched.explain.report import Unknown
from kubesched.explain.sentences import count, names, phrases
from kubesched.explain.tables import TextTable

_MOVED_MAX: Final = 30
_TROUBLES_MAX: Final = 10
_PODS_MAX: Final = 20
_STEPS_MAX: Final = 30
_BLOCKED_MAX: Final = 10
_REASONS_MAX: Final = 5
_EVICTED_MAX: Final = 10


# Drains.


def write_drain(writer: Writer, report: DrainReport) -> None:
    """Write the answer."""
    writer.headline(_drain_headline(report))
    if report.flags:
        writer.line(f"kubectl drain needs {' '.join(report.flags)}.")
    _write_notes(writer, report.notes, report.unknown)
    troubles = [pod for pod in report.pods if pod.is_trouble]
    if troubles:
        writer.heading("What finds no place")
        write_troubles(writer, troubles)
    for node in report.nodes:
        _write_moved(writer, node, [pod for pod in report.pods if pod.node == node])
    _write_preempted(writer, "Evicted for them", report.preempted)


def _drain_headline(report: DrainReport) -> str:
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
    return f"Not every pod of {nodes} finds a place: {phrases(found)}."


def write_troubles(writer: Writer, pods: Sequence[DrainedPod], indent: int = ITEM) -> None:
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
            writer.line(f"{who} {waits} for {names(first.budgets)}:", indent=indent)
        case PodFate.LOST:
            why = "it has no controller" if is_one else "they have no controller"
            writer.line(f"{who} would not come back: {why}", indent=indent)
            return
        case _:
            writer.line(f"{who} stay{'s' * is_one} pending:", indent=indent)
    text = "not known, because the input lacks objects" if first.unknown else first.message
    writer.line(text, indent=indent + 2 * ITEM, dim=True)


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
        writer.item(f"{pod.pod} to {pod.new_node}{when}")
    writer.rest(len(moved) - _MOVED_MAX, "-o json shows all")
    if stays:
        text = f"{count(stays, 'pod')} of DaemonSets, or static: not evicted"
        writer.item(text)
    if ended:
        writer.item(f"{count(ended, 'pod')} being deleted already")
    if not pods:
        writer.item("no pods")


# Plans.


def write_what_if(writer: Writer, report: WhatIfReport) -> None:
    """Write the answer."""
    writer.headline(_plan_headline(report))
    _write_notes(writer, report.notes, report.unknown)
    steps = [f"{number}. {step}" for number, step in enumerate(report.steps, 1)]
    _write_list(writer, "Steps", steps, len(steps))
    _write_pods(writer, "Lost: nothing creates them again", report.lost)
    if report.waiting:
        writer.heading("Kept by a budget")
        write_troubles(writer, report.waiting)
    _write_without_node(writer, "Pending now", report.now_pending)
    _write_preempted(writer, "Evicted by preemption", report.preempted)
    _write_pods(writer, "No longer pending", report.no_longer_pending)
    _write_pods(writer, "Moved", report.moved)
    _write_pods(writer, "New", report.created)
    _write_pods(writer, "Removed by a step", report.removed)
    _write_use(writer, report.before, report.after)


def _plan_headline(report: WhatIfReport) -> str:
    pending = sum(len(group.pods) for group in report.now_pending)
    found = [
        (len(report.lost), "is lost", "are lost"),
        (len(report.waiting), "is kept by a budget", "are kept by budgets"),
        (pending, "is pending", "are pending"),
        (len(report.moved), "moves", "move"),
        (len(report.no_longer_pending), "is no longer pending", "are no longer pending"),
        (len(report.created), "is new", "are new"),
        (len(report.removed), "is removed", "are removed"),
    ]
    verdict = "The plan works" if report.works else "The plan leaves pods without a place"
    return f"{verdict}: {phrases(found, 'pod') or 'no pod changes'}."


def _write_pods(writer: Writer, heading: str, pods: Sequence[MovedPod]) -> None:
    _write_list(writer, heading, [_moved(one) for one in pods], _PODS_MAX)


def _moved(one: MovedPod) -> str:
    left = f" from {one.node}" if one.node else ""
    came = f" to {one.new_node}" if one.new_node else ""
    return f"{one.pod or one.new_pod}{left}{came}"


# Orders of nodes.


def write_upgrade(writer: Writer, report: UpgradeReport, selector: str) -> None:
    """Write the answer."""
    nodes = count(report.nodes, "node") + (f" with {selector}" if selector else "")
    moved = _moves(report.moved, sum(step.lost for step in report.steps))
    steps = f"{count(len(report.steps), 'step')} of at most {count(report.at_once, 'node')}"
    how = f"in {steps}: {moved}"
    if report.works:
        text = f"All {nodes} can be upgraded, {how}."
    else:
        text = f"{len(report.blocked):,} of {nodes} cannot be upgraded; the others can, {how}."
        if not report.steps:
            text = f"None of {nodes} can be upgraded."
    writer.headline(text)
    _write_notes(writer, report.notes, ())
    _write_steps(writer, report.steps)
    _write_blocked(writer, "Blocked", report.blocked)


def write_compact(writer: Writer, report: CompactReport) -> None:
    """Write the answer."""
    nodes = count(report.before.nodes, "node")
    number = len(report.removable)
    lost = sum(step.lost for step in report.removable)
    cost = f"; {_lost(lost)}" if lost else ""
    text = f"{number:,} of {nodes} can be removed, one after another{cost}." if number else ""
    writer.headline(text or f"None of {nodes} can be removed.")
    _write_notes(writer, report.notes, ())
    _write_steps(writer, report.removable)
    _write_blocked(writer, "Needed", report.kept)
    _write_use(writer, report.before, report.after)


def _moves(evicted: int, lost: int) -> str:
    """Return how many of the evicted pods move, and how many are lost."""
    moved = evicted - lost
    text = f"{count(moved, 'pod')} move{'s' * (moved == 1)}"
    return f"{text}, {_lost(lost)}" if lost else text


def _lost(pods: int) -> str:
    return f"{count(pods, 'pod')} without a controller go{'es' * (pods == 1)} for good"


def _write_steps(writer: Writer, steps: Sequence[NodesAtOnce]) -> None:
    lines = [
        f"{number}. {', '.join(step.nodes)}: {_moves(step.moved, step.lost)}"
        for number, step in enumerate(steps, 1)
    ]
    _write_list(writer, "Order", lines, _STEPS_MAX)


def _write_blocked(writer: Writer, heading: str, nodes: Sequence[NodeThatBlocks]) -> None:
    if not nodes:
        return
    writer.heading(heading)
    for one in nodes[:_BLOCKED_MAX]:
        writer.item(one.node)
        write_troubles(writer, one.pods, 2 * ITEM)
        if not one.pods:
            text = "its pods would evict others that find no place"
            writer.line(text, indent=2 * ITEM)
    if len(nodes) > _BLOCKED_MAX:
        others = [one.node for one in nodes[_BLOCKED_MAX:]]
        writer.item(f"and {names(others)}; -o json shows all")


# Workloads that may fit.

_NODES_MAX: Final = 12


def write_fit(writer: Writer, report: FitReport) -> None:
    """Write the answer."""
    writer.headline(_fit_headline(report))
    _write_notes(writer, report.notes, report.unknown)
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
        _write_without_node(writer, heading, one.not_placed)
    _write_preempted(writer, "Evicted for them", report.evictions)
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
    text = f"{begin}{count(more.count, 'more pod')} of {_workload_name(workload)} {verb}"
    if more.evicted:
        text = f"{text}, {more.without_evictions:,} without evictions"
    text = f"{text}."
    writer.item(text[:1].upper() + text[1:])
    if more.nodes:
        _write_nodes(writer, "They go to ", more.nodes)
    if more.evicted:
        writer.item(f"{count(len(more.evicted), 'pod')} would be evicted for them.")
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
    _write_without_node(writer, "What does not fit even then", missing.left)


# What answers have in common.


def _write_notes(writer: Writer, notes: Iterable[str], unknown: Sequence[Unknown]) -> None:
    """Write what was assumed, and what the files lack."""
    for note in notes:
        writer.line(f"Note: {note}", dim=True)
    write_unknown(writer, unknown)


def _write_list(writer: Writer, heading: str, lines: Sequence[str], limit: int) -> None:
    """Write lines below a heading, the first of many; nothing if there are none."""
    if not lines:
        return
    writer.heading(heading)
    for line in lines[:limit]:
        writer.item(line)
    writer.rest(len(lines) - limit, "-o json shows all")


def _write_without_node(writer: Writer, heading: str, groups: Sequence[PodsWithoutNode]) -> None:
    """Write which pods have no node, and why."""
    if not groups:
        return
    writer.heading(heading)
    for group in groups[:_REASONS_MAX]:
        number = count(len(group.pods), "pod")
        writer.item(f"{number}: {names(group.pods)}")
        text = "not known, because the input lacks objects" if group.unknown else group.message
        writer.detail(text)
    left = groups[_REASONS_MAX:]
    if left:
        pods = count(sum(len(group.pods) for group in left), "pod")
        writer.item(f"and {pods} for other reasons; -o json shows all")


def _write_preempted(writer: Writer, heading: str, evicted: Sequence[PreemptedPod]) -> None:
    """Write which pods preemption evicts, and where they go."""
    _write_list(writer, heading, [_preempted(one) for one in evicted], _EVICTED_MAX)


def _preempted(one: PreemptedPod) -> str:
    if one.new_node:
        fate = f"goes to {one.new_node}"
    else:
        fate = "stays pending" if one.controller else "nothing creates it again"
    return f"{one.pod} (priority {one.priority}) on {one.node}, for {one.preemptor}: {fate}"


def _write_use(writer: Writer, before: ClusterUse, after: ClusterUse) -> None:
    """Write how full a cluster is before and after a change."""
    writer.heading("Requested of allocatable")
    known = {one.resource: one for one in before.resources}
    rows = []
    for one in after.resources:
        earlier = known.get(one.resource, one)
        cells = [
            f"{amount(use.resource, use.requested)} of {amount(use.resource, use.allocatable)}"
            f"{'' if use.share is None else f' ({use.share:.0%})'}"
            for use in (earlier, one)
        ]
        rows.append((one.resource, *cells))
    writer.table(TextTable(("resource", "before", "after"), rows, ("before", "after")))
    nodes = f"{before.nodes:,} → {count(after.nodes, 'node')}"
    pending = f"{before.pending:,} → {count(after.pending, 'pending pod')}"
    writer.item(f"{nodes}, {pending}")
