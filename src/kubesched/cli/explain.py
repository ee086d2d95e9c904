"""`kubesched explain`: the outcome first, then the reasons."""

from __future__ import annotations

from collections.abc import Sequence

from kubesched.cli.asked import AnswerOptions, open_cluster
from kubesched.cli.output import Writer, write_document, write_page, writer
from kubesched.explain.report import PodExplanation, PodOutcome, RetryEvents, Unknown
from kubesched.explain.sentences import (
    ReasonGroup,
    as_far_as_known,
    choice_sentence,
    count,
    group_details,
    group_heading,
    headline,
    not_helped_groups,
    pre_filter_sentences,
    rejection_groups,
    summary,
    unknown_sentences,
)
from kubesched.explain.tables import (
    candidate_table,
    deciding_plugins,
    same_for_all,
    score_table,
    verdict_table,
)
from kubesched.inputs.pod_names import find_nodes
from kubesched.inputs.sources import ClusterSource


def explain(
    asked: AnswerOptions,
    source: ClusterSource,
    pod: str,
    namespace: str,
    all_filters: bool,
    nodes: tuple[str, ...],
    top: int,
) -> None:
    """Explain the decision for a pod.

    Tables show the named nodes, or all for none; those of scores and candidates show at most `top`.

    Raises:
        UserError: The pod or a node does not exist, or an input is wrong.
        PluginError: A plugin raised.
    """
    cluster = open_cluster(source, asked)
    chosen = frozenset(find_nodes(nodes, [one.metadata.name for one in cluster.nodes], "--node "))
    if asked.html is None:
        report = cluster.explain(pod, namespace, all_filters=all_filters)
    else:
        report, view = cluster.explain_page(pod, namespace, all_filters=all_filters)
        write_page(asked.html, report, view)
    if asked.output == "table":
        _write(writer(), report, chosen, top)
    else:
        write_document(report.narrowed(chosen) if chosen else report, asked.output)


def _write(writer: Writer, report: PodExplanation, nodes: frozenset[str], top: int) -> None:
    writer.headline(headline(report))
    if text := summary(report):
        writer.line(text)
    writer.notes(report.notes)
    write_unknown(writer, report.unknown)
    if report.pre_filter is not None:
        writer.section("Before looking at nodes", [*pre_filter_sentences(report.pre_filter)])
    _write_scores(writer, report, nodes, top)
    _write_nodes(writer, report, nodes)
    _write_preemption(writer, report, top)
    if report.outcome is PodOutcome.UNSCHEDULABLE and report.message:
        writer.section("What kubectl shows", [report.message])
    write_retry(writer, report.retry_after)


def write_unknown(writer: Writer, unknown: Sequence[Unknown]) -> None:
    """Write the kinds that are not known, and the commands that fetch them."""
    if unknown:
        *kinds, command = unknown_sentences(unknown)
        writer.section("Not known, because the input has none of these", kinds)
        writer.command(command)


# Nodes.


def _write_nodes(writer: Writer, report: PodExplanation, nodes: frozenset[str]) -> None:
    chosen = [verdict for verdict in report.nodes if not nodes or verdict.node in nodes]
    if nodes or report.all_filters:
        if chosen:
            writer.heading("Every filter, node by node" if report.all_filters else "Node by node")
            writer.table(verdict_table(chosen))
        return
    unknown = [verdict for verdict in chosen if verdict.unknown]
    rejected = [verdict for verdict in chosen if verdict.rejections and verdict.tried]
    if rejected:
        writer.heading("Why not the other nodes" if report.feasible_count else "Why not")
        for group in rejection_groups(rejected):
            _write_group(writer, group)
        if unknown:
            writer.item(f"{count(len(unknown), 'node')}: not known")
    untried = [verdict for verdict in chosen if not (verdict.tried or verdict.unknown)]
    if untried and rejected:
        text = f"{count(len(untried), 'node')} not looked at"
        reason = untried[0].rejections[0].message if untried[0].rejections else ""
        writer.item(f"{text}: {reason}" if reason else text)


def _write_group(writer: Writer, group: ReasonGroup) -> None:
    writer.item(group_heading(group))
    for text in group_details(group):
        writer.detail(text)


def _write_scores(writer: Writer, report: PodExplanation, nodes: frozenset[str], top: int) -> None:
    wanted = [score for score in report.scores if not nodes or score.node in nodes]
    if not wanted:
        return
    # Of nodes with the same score, the chosen one first.
    shown = sorted(wanted, key=lambda score: (score.rank, score.node != report.node))[:top]
    title = f"Scores, best {len(shown)} of {len(wanted)}" if len(shown) < len(wanted) else "Scores"
    writer.heading(title)
    writer.table(score_table(shown, deciding_plugins(report.scores)))
    same = same_for_all(report.scores)
    if same:
        listed = ", ".join(f"{score.plugin} {score.weighted}" for score in same)
        writer.item(f"the same for all: {listed}", dim=True)
    if report.skipped_scores:
        listed = ", ".join(report.skipped_scores)
        writer.item(f"nothing to score: {listed}", dim=True)


# What would help.


def _write_preemption(writer: Writer, report: PodExplanation, top: int) -> None:
    preemption = report.preemption
    if preemption is None or not preemption.eligible:
        return
    if preemption.candidates:
        writer.heading("Preemption")
        if text := as_far_as_known(report, choice_sentence(preemption)):
            writer.item(text)
        writer.table(candidate_table(preemption, top))
    elif preemption.not_helped:
        writer.heading("Preemption")
    for group in not_helped_groups(preemption.not_helped):
        _write_group(writer, group)
    if preemption.not_tried and (preemption.candidates or preemption.not_helped):
        text = f"{count(preemption.not_tried, 'node')}: evicting pods cannot cure the rejection"
        writer.item(text)


def write_retry(writer: Writer, retry_after: Sequence[RetryEvents]) -> None:
    """Write the events that requeue the pod."""
    events = [f"{one.plugin}: {', '.join(one.events) or 'no event'}" for one in retry_after]
    writer.section("Tried again after", events)
