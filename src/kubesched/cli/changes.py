"""Commands that try changes of a cluster: drain, whatif, upgrade and compact.

They return 0 if the change works, else 1.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Final

from kubesched.answers.drain import (
    CompactReport,
    DrainedPod,
    DrainReport,
    NodesAtOnce,
    NodeThatBlocks,
    PodFate,
    UpgradeReport,
)
from kubesched.answers.pod_outcomes import ClusterUse, PodsWithoutNode, PreemptedPod
from kubesched.answers.whatif import MovedPod, WhatIfReport
from kubesched.api.decode import STANDARD_INPUT
from kubesched.cli.asking import AnswerOptions, open_cluster
from kubesched.cli.errors import EXIT_DIFFERENT
from kubesched.cli.explain import write_unknown
from kubesched.cli.output import ITEM, TextTable, Writer, amount, write_answer
from kubesched.explain.sentences import count, grouped_by, names, phrases
from kubesched.inputs.errors import UserError
from kubesched.inputs.pod_names import node_name
from kubesched.inputs.sources import ClusterSource
from kubesched.inputs.status_line import StatusLine

_NODES_MAX: Final = 20
_MOVED_MAX: Final = 30
_TROUBLES_MAX: Final = 10
_PODS_MAX: Final = 20
_STEPS_MAX: Final = 30
_BLOCKED_MAX: Final = 10
_REASONS_MAX: Final = 5
_EVICTED_MAX: Final = 10
_SHOWS_ALL: Final = "-o json shows all"


# Drains.


def drain(
    asked: AnswerOptions, source: ClusterSource, words: tuple[str, ...], selector: str
) -> int:
    """Tell what happens to each pod when nodes are drained; return the exit code.

    `words` are names of nodes, then files.
    """
    nodes, source = _nodes_and_source(words, source, selector)
    with StatusLine() as status:
        watch = status.counting("{:,} of {:,} nodes drained, {:,} scheduling cycles")
        report = open_cluster(source, asked).drain(*nodes, selector=selector, watch=watch)
    write_answer(report, asked.output, _write_drain, asked.html)
    return 0 if report.succeeds else EXIT_DIFFERENT


def _nodes_and_source(
    words: Sequence[str], source: ClusterSource, selector: str
) -> tuple[list[str], ClusterSource]:
    """Return the names of nodes among the words, and the cluster with the files after them.

    Raises UserError unless either nodes or a selector is given, and if files are given for a live
    cluster.
    """
    first = next((at for at, word in enumerate(words) if _is_file(word)), len(words))
    files = tuple(Path(word) for word in words[first:])
    if selector:
        if first:
            raise UserError(f"{words[0]}: there is a --selector already; leave out one")
    elif not words:
        raise UserError("name a node, or give a --selector such as pool=a")
    elif not first:
        if words[0] != STANDARD_INPUT and not Path(words[0]).exists():
            raise UserError(f"{words[0]}: it is not a node, and there is no such file; name a node")
        raise UserError(f"{words[0]}: it is a file; name a node before it")
    if files and (source.kubeconfig or source.context):
        raise UserError(f"{files[0]}: there is a live cluster already; leave out one")
    return list(words[:first]), replace(source, files=(*source.files, *files))


def _is_file(word: str) -> bool:
    """Whether a word cannot be the name of a node, or names a file that exists."""
    return (
        word == STANDARD_INPUT
        or "/" in node_name(word)
        or word.endswith((".json", ".yaml", ".yml", ".gz"))
        or Path(word).exists()
    )


def _write_drain(writer: Writer, report: DrainReport) -> None:
    writer.headline(_drain_headline(report))
    if report.flags:
        writer.line(f"kubectl drain needs {' '.join(report.flags)}.")
    writer.notes(report.notes)
    write_unknown(writer, report.unknown)
    troubles = [pod for pod in report.pods if pod.is_trouble]
    if troubles:
        writer.heading("What finds no place")
        _write_troubles(writer, troubles)
    placed = grouped_by((pod for pod in report.pods if not pod.is_trouble), lambda pod: pod.node)
    told = [node for node in report.nodes if node in placed]
    for node in told[:_NODES_MAX]:
        _write_moved(writer, node, placed[node])
    if others := told[_NODES_MAX:]:
        writer.section("From other nodes", [f"{names(others)}; {_SHOWS_ALL}"])
    used = {pod.node for pod in report.pods}
    if empty := [node for node in report.nodes if node not in used]:
        writer.section("Without pods", [names(empty)])
    write_preempted(writer, "Evicted for them", report.preempted)


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


def _write_troubles(writer: Writer, pods: Sequence[DrainedPod], indent: int = ITEM) -> None:
    """Write which pods have no place and why, those with the same reason together."""
    alike = grouped_by(pods, lambda pod: (pod.fate, pod.budgets, pod.message, pod.unknown))
    for found in list(alike.values())[:_REASONS_MAX]:
        _write_trouble(writer, found, indent)
    _write_others(writer, sum(map(len, list(alike.values())[_REASONS_MAX:])), indent)


def _write_trouble(writer: Writer, pods: Sequence[DrainedPod], indent: int) -> None:
    first, is_one = pods[0], len(pods) == 1
    who = ", ".join(pod.pod for pod in pods[:_TROUBLES_MAX])
    if len(pods) > _TROUBLES_MAX:
        who = f"{who} and {len(pods) - _TROUBLES_MAX:,} more"
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
    writer.line(_why(first), indent=indent + 2 * ITEM, dim=True)


def _write_moved(writer: Writer, node: str, pods: Sequence[DrainedPod]) -> None:
    moved = [pod for pod in pods if pod.fate is PodFate.MOVED]
    stays = sum(pod.fate is PodFate.STAYS for pod in pods)
    ended = sum(pod.fate is PodFate.ENDED for pod in pods)
    writer.heading(f"From {node}")
    rounds = {pod.round for pod in moved}
    for pod in sorted(moved, key=lambda one: one.round)[:_MOVED_MAX]:
        when = f", in round {pod.round}" if len(rounds) > 1 else ""
        writer.item(f"{pod.pod} to {pod.new_node}{when}")
    writer.rest(len(moved) - _MOVED_MAX, _SHOWS_ALL)
    if stays:
        writer.item(f"{count(stays, 'pod')} of DaemonSets, or static: not evicted")
    if ended:
        writer.item(f"{count(ended, 'pod')} being deleted already")


# Plans.


def whatif(asked: AnswerOptions, source: ClusterSource, plan: Path) -> int:
    """Tell what a plan of changes does to the pods; return the exit code."""
    with StatusLine() as status:
        watch = status.counting("{:,} of {:,} steps carried out, {:,} scheduling cycles")
        report = open_cluster(source, asked, plan).whatif(plan, watch=watch)
    write_answer(report, asked.output, _write_whatif, asked.html)
    return 0 if report.works else EXIT_DIFFERENT


def _write_whatif(writer: Writer, report: WhatIfReport) -> None:
    writer.headline(_plan_headline(report))
    writer.notes(report.notes)
    write_unknown(writer, report.unknown)
    steps = [f"{number}. {step}" for number, step in enumerate(report.steps, 1)]
    writer.section("Steps", steps)
    _write_pods(writer, "Lost: nothing creates them again", report.lost)
    if report.waiting:
        writer.heading("Kept by a budget")
        _write_troubles(writer, report.waiting)
    write_without_node(writer, "Pending now", report.now_pending)
    write_preempted(writer, "Evicted by preemption", report.preempted)
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
    writer.section(heading, [_moved(one) for one in pods], _PODS_MAX, _SHOWS_ALL)


def _moved(one: MovedPod) -> str:
    left = f" from {one.node}" if one.node else ""
    came = f" to {one.new_node}" if one.new_node else ""
    return f"{one.pod or one.new_pod}{left}{came}"


# Orders of nodes.


def upgrade(
    asked: AnswerOptions, source: ClusterSource, selector: str, at_once: int, force: bool
) -> int:
    """Find an order in which nodes can be upgraded; return the exit code."""
    _check_files(source)
    with StatusLine() as status:
        watch = status.counting("{2:,} of {1:,} nodes can be upgraded so far")
        cluster = open_cluster(source, asked)
        report = cluster.upgrade(selector, at_once=at_once, force=force, watch=watch)
    write_answer(report, asked.output, partial(_write_upgrade, selector=selector), asked.html)
    return 0 if report.works else EXIT_DIFFERENT


def compact(asked: AnswerOptions, source: ClusterSource, selector: str, force: bool) -> int:
    """Find nodes that can be removed; return the exit code."""
    _check_files(source)
    with StatusLine() as status:
        watch = status.counting("{:,} of {:,} nodes tried, {:,} can be removed")
        cluster = open_cluster(source, asked)
        report = cluster.compact(selector, force=force, watch=watch)
    write_answer(report, asked.output, partial(_write_compact, selector=selector), asked.html)
    return 0 if report.removable else EXIT_DIFFERENT


def _check_files(source: ClusterSource) -> None:
    """Raise UserError if a file is missing and may be meant as a node."""
    for file in map(str, source.files):
        if not _is_file(file):
            one = f"kubernetes.io/hostname={node_name(file)}"
            raise UserError(f"{file}: there is no such file; nodes are named with --selector {one}")


def _write_upgrade(writer: Writer, report: UpgradeReport, selector: str) -> None:
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
    writer.notes(report.notes)
    write_unknown(writer, report.unknown)
    _write_steps(writer, report.steps)
    _write_blocked(writer, "Blocked", report.blocked)


def _write_compact(writer: Writer, report: CompactReport, selector: str) -> None:
    number = len(report.removable)
    nodes = count(number + len(report.kept), "node") + (f" with {selector}" if selector else "")
    lost = sum(step.lost for step in report.removable)
    cost = f"; {_lost(lost)}" if lost else ""
    text = f"{number:,} of {nodes} can be removed, one after another{cost}." if number else ""
    writer.headline(text or f"None of {nodes} can be removed.")
    writer.notes(report.notes)
    write_unknown(writer, report.unknown)
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
    writer.section("Order", lines, _STEPS_MAX, _SHOWS_ALL)


def _write_blocked(writer: Writer, heading: str, nodes: Sequence[NodeThatBlocks]) -> None:
    if not nodes:
        return
    writer.heading(heading)
    for one in nodes[:_BLOCKED_MAX]:
        writer.item(one.node)
        _write_troubles(writer, one.pods, 2 * ITEM)
        if not one.pods:
            text = "its pods would evict others that find no place, or that a budget protects"
            writer.line(text, indent=2 * ITEM)
    if len(nodes) > _BLOCKED_MAX:
        others = [one.node for one in nodes[_BLOCKED_MAX:]]
        writer.item(f"and {names(others)}; {_SHOWS_ALL}")


# What answers have in common.


def write_without_node(writer: Writer, heading: str, groups: Sequence[PodsWithoutNode]) -> None:
    """Write which pods have no node, and why."""
    if not groups:
        return
    writer.heading(heading)
    for group in groups[:_REASONS_MAX]:
        writer.item(f"{count(len(group.pods), 'pod')}: {names(group.pods)}")
        writer.detail(_why(group))
    _write_others(writer, sum(len(group.pods) for group in groups[_REASONS_MAX:]))


def _why(found: DrainedPod | PodsWithoutNode) -> str:
    return "not known, because the input lacks objects" if found.unknown else found.message


def _write_others(writer: Writer, pods: int, indent: int = ITEM) -> None:
    if pods:
        writer.line(f"and {count(pods, 'pod')} for other reasons; {_SHOWS_ALL}", indent=indent)


def write_preempted(writer: Writer, heading: str, evicted: Sequence[PreemptedPod]) -> None:
    """Write which pods preemption evicts, and where they go."""
    writer.section(heading, [_preempted(one) for one in evicted], _EVICTED_MAX, _SHOWS_ALL)


def _preempted(one: PreemptedPod) -> str:
    if one.new_node:
        fate = f"goes to {one.new_node}"
    else:
        fate = "stays pending" if one.controller else "nothing creates it again"
    return f"{one.pod} (priority {one.priority}) on {one.node}, for {one.preemptor}: {fate}"


def _write_use(writer: Writer, before: ClusterUse, after: ClusterUse) -> None:
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
