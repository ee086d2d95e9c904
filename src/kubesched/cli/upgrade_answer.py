"""The work of `kubesched upgrade` and `kubesched compact`: load the cluster, try, write the answer.

Rejects:  selectors that cannot be parsed, or select no node.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from kubesched.answers.asking import run_trial
from kubesched.answers.plan_steps import selected_nodes
from kubesched.answers.trial_cluster import QuestionError, TrialCluster, names_of
from kubesched.answers.upgrade import (
    CompactReport,
    NodesAtOnce,
    NodeThatBlocks,
    UpgradeReport,
    compact,
    upgrade,
)
from kubesched.cli.drain_answer import write_troubles
from kubesched.cli.errors import write_warnings
from kubesched.cli.files import check_inputs
from kubesched.cli.output import Writer
from kubesched.cli.trials import write_notes, write_use, write_wrapped
from kubesched.explain.sentences import count, names
from kubesched.inputs.cluster_input import ClusterInput, read_cluster
from kubesched.inputs.loading import load_scheduler
from kubesched.inputs.sources import ClusterSource, SchedulerOptions

_INDENT: Final = 2
_STEPS_MAX: Final = 30
_BLOCKED_MAX: Final = 10


def ask_upgrade(
    options: SchedulerOptions,
    source: ClusterSource,
    selector: str,
    at_once: int,
    *,
    may_lose: bool,
) -> UpgradeReport:
    """Answer in which order nodes can be upgraded.

    Raises:
        UserError: The selector is wrong.
        DecodeError, ConfigError, SetupError: A file cannot be used.
        PluginError: A plugin raised.
    """

    async def ask(cluster: TrialCluster) -> UpgradeReport:
        return await upgrade(cluster, _selected(cluster, selector), at_once, may_lose=may_lose)

    return run_trial(load_scheduler(options), options, _read(options, source), ask)


def ask_compact(
    options: SchedulerOptions, source: ClusterSource, selector: str, *, may_lose: bool
) -> CompactReport:
    """Answer which nodes can go.

    Raises:
        UserError: The selector is wrong.
        DecodeError, ConfigError, SetupError: A file cannot be used.
        PluginError: A plugin raised.
    """

    async def ask(cluster: TrialCluster) -> CompactReport:
        nodes = _selected(cluster, selector) if selector else names_of(cluster)
        return await compact(cluster, nodes, may_lose=may_lose)

    return run_trial(load_scheduler(options), options, _read(options, source), ask)


def _read(options: SchedulerOptions, source: ClusterSource) -> ClusterInput:
    check_inputs([*source.files, options.config])
    given = read_cluster(source, (), options.profile)
    write_warnings(given.warnings)
    return given


def _selected(cluster: TrialCluster, selector: str) -> list[str]:
    try:
        return selected_nodes(cluster, selector)
    except QuestionError as error:
        raise QuestionError(f"--selector {error}") from error


def write_upgrade(writer: Writer, report: UpgradeReport, selector: str) -> None:
    """Write the answer."""
    nodes = f"{count(report.nodes, 'node')} with {selector}"
    moved = f"{count(report.moved, 'pod')} move{'s' * (report.moved == 1)}"
    how = f"in {count(len(report.steps), 'step')} of at most {report.at_once}, {moved}"
    if report.works:
        text = f"All {nodes} can be upgraded, {how}."
    else:
        text = f"{len(report.blocked)} of {nodes} cannot be upgraded; the others can, {how}."
        if not report.steps:
            text = f"None of {nodes} can be upgraded."
    write_wrapped(writer, text, headline=True)
    write_notes(writer, report.notes, ())
    _write_steps(writer, "Order", report.steps)
    _write_blocked(writer, "Blocked", report.blocked)


def write_compact(writer: Writer, report: CompactReport) -> None:
    """Write the answer."""
    nodes = count(report.before.nodes, "node")
    number = len(report.removable)
    text = f"{number} of {nodes} can be removed, one after another." if number else ""
    write_wrapped(writer, text or f"None of {nodes} can be removed.", headline=True)
    write_notes(writer, report.notes, ())
    _write_steps(writer, "Order", report.removable)
    _write_blocked(writer, "Needed", report.kept)
    write_use(writer, report.before, report.after)


def _write_steps(writer: Writer, heading: str, steps: Sequence[NodesAtOnce]) -> None:
    if not steps:
        return
    writer.heading(heading)
    for number, step in enumerate(steps[:_STEPS_MAX], 1):
        moves = f"{count(step.moved, 'pod')} move{'s' * (step.moved == 1)}"
        write_wrapped(writer, f"{number}. {', '.join(step.nodes)}: {moves}", _INDENT)
    if len(steps) > _STEPS_MAX:
        writer.line(f"and {len(steps) - _STEPS_MAX} more; -o json shows all", indent=_INDENT)


def _write_blocked(writer: Writer, heading: str, nodes: Sequence[NodeThatBlocks]) -> None:
    if not nodes:
        return
    writer.heading(heading)
    for one in nodes[:_BLOCKED_MAX]:
        writer.line(one.node, indent=_INDENT)
        write_troubles(writer, one.pods, 2 * _INDENT)
        if not one.pods:
            text = "its pods would evict others that find no place"
            writer.line(text, indent=2 * _INDENT)
    if len(nodes) > _BLOCKED_MAX:
        others = [one.node for one in nodes[_BLOCKED_MAX:]]
        write_wrapped(writer, f"and {names(others)}; -o json shows all", _INDENT)
