"""`kubesched explain`: the outcome first, then the reasons."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from kubesched.cli.asking import AnswerOptions, open_cluster
from kubesched.cli.output import TextTable, Writer, write_document, write_page, writer
from kubesched.explain.report import (
    Answer,
    NodeScore,
    NodeVerdict,
    PluginScore,
    PodExplanation,
    PodOutcome,
    PreemptionCandidate,
    PreemptionExplanation,
    RetryEvents,
    Unknown,
)
from kubesched.explain.sentences import (
    answer_groups,
    as_far_as_known,
    choice_sentence,
    count,
    group_details,
    group_heading,
    headline,
    pre_filter_sentences,
    summary,
    unknown_sentences,
)
from kubesched.inputs.pod_names import find_nodes
from kubesched.inputs.sources import ClusterSource

_VICTIMS_MAX: Final = 3


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
        _write_groups(writer, [(verdict.node, verdict.rejections[0]) for verdict in rejected])
        if unknown:
            writer.item(f"{count(len(unknown), 'node')}: not known")
    untried = [verdict for verdict in chosen if not (verdict.tried or verdict.unknown)]
    if untried and rejected:
        text = f"{count(len(untried), 'node')} not looked at"
        reason = untried[0].rejections[0].message if untried[0].rejections else ""
        writer.item(f"{text}: {reason}" if reason else text)


def _write_groups(writer: Writer, answers: Iterable[tuple[str, Answer]]) -> None:
    """Write nodes with their answers, those with the same reasons together."""
    for group in answer_groups(answers):
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
    deciding = deciding_plugins(report.scores)
    writer.table(score_table(shown, deciding))
    others = [score for score in shown[0].scores if score.plugin not in deciding]
    if others:
        listed = ", ".join(f"{score.plugin} {score.weighted}" for score in others)
        writer.item(f"the same for all: {listed}", dim=True)
    if report.skipped_scores:
        listed = ", ".join(report.skipped_scores)
        writer.item(f"nothing to score: {listed}", dim=True)


# What would help.


def _write_preemption(writer: Writer, report: PodExplanation, top: int) -> None:
    preemption = report.preemption
    if preemption is None or not preemption.eligible:
        return
    if not (preemption.candidates or preemption.not_helped):
        return
    writer.heading("Preemption")
    if preemption.candidates:
        if text := as_far_as_known(report, choice_sentence(preemption)):
            writer.item(text)
        writer.table(candidate_table(preemption, top))
    _write_groups(writer, [(found.node, found.answer) for found in preemption.not_helped])
    if preemption.not_tried:
        text = f"{count(preemption.not_tried, 'node')}: evicting pods cannot cure the rejection"
        writer.item(text)


def write_retry(writer: Writer, retry_after: Sequence[RetryEvents]) -> None:
    """Write the events that requeue the pod."""
    events = [f"{one.plugin}: {', '.join(one.events) or 'no event'}" for one in retry_after]
    writer.section("Tried again after", events)


# Tables.


def verdict_table(verdicts: Sequence[NodeVerdict]) -> TextTable:
    """Return one row per node and rejection; a node that fits has one row."""
    headings = ("node", "fits", "plugin", "code", "reason", "detail")
    rows: list[tuple[str, ...]] = []
    for verdict in verdicts:
        answers = verdict.rejections
        if not answers:
            fits = "yes" if verdict.feasible else "not known" if verdict.unknown else "not tried"
            rows.append((verdict.node, fits, "", "", "", ""))
        rows.extend(
            (verdict.node, "no", answer.plugin, answer.code, answer.message, answer.detail)
            for answer in answers
        )
    return TextTable(headings, rows)


def score_table(scores: Sequence[NodeScore], plugins: Sequence[str]) -> TextTable:
    """Return one row per node: rank, total, and the weighted score of each of `plugins`.

    If the raw score was normalized, the cell has both values as well: `180 (12→90)`.
    """
    first = {score.plugin: score for score in scores[0].scores}
    weighted = [_score_heading(first[name]) for name in plugins]
    rows = [_score_row(node, plugins) for node in scores]
    return TextTable(("rank", "node", "total", *weighted), rows, ("rank", "total", *weighted))


def deciding_plugins(scores: Sequence[NodeScore]) -> tuple[str, ...]:
    """Return the plugins whose scores differ between nodes, in the profile's order."""
    seen: dict[str, set[int]] = {}
    for node in scores:
        for score in node.scores:
            seen.setdefault(score.plugin, set()).add(score.weighted)
    return tuple(name for name, values in seen.items() if len(values) > 1)


def _score_heading(score: PluginScore) -> str:
    return (
        score.plugin
        if score.weight == 1
        else f"{score.plugin} \N{MULTIPLICATION SIGN}{score.weight}"
    )


def _score_row(node: NodeScore, plugins: Sequence[str]) -> tuple[str, ...]:
    found = {score.plugin: score for score in node.scores}
    cells = (_score_cell(found[name]) for name in plugins)
    return (str(node.rank), node.node, str(node.total), *cells)


def _score_cell(score: PluginScore) -> str:
    if score.raw == score.normalized:
        return str(score.weighted)
    return f"{score.weighted} ({score.raw}→{score.normalized})"


def candidate_table(preemption: PreemptionExplanation, top: int) -> TextTable:
    """Return one row per candidate: the chosen one, its ties, then by falling preference."""
    headings = ("node", "chosen", "victims", "top priority", "budgets violated", "who")
    numbers = ("victims", "top priority", "budgets violated")
    ordered = sorted(preemption.candidates, key=lambda c: _preference(preemption, c))
    return TextTable(headings, [_candidate_row(preemption, c) for c in ordered[:top]], numbers)


def _preference(
    preemption: PreemptionExplanation, found: PreemptionCandidate
) -> tuple[bool, bool, int, int, int]:
    return (
        found.node != preemption.chosen,
        found.node not in preemption.ties,
        found.pdb_violations or 0,
        found.victims[0].priority,
        len(found.victims),
    )


def _candidate_row(
    preemption: PreemptionExplanation, found: PreemptionCandidate
) -> tuple[str, ...]:
    chosen = "yes" if found.node == preemption.chosen else ""
    if not chosen and found.node in preemption.ties:
        chosen = "ties"
    who = ", ".join(victim.pod for victim in found.victims[:_VICTIMS_MAX])
    more = len(found.victims) - _VICTIMS_MAX
    return (
        found.node,
        chosen,
        str(len(found.victims)),
        str(found.victims[0].priority),
        "?" if found.pdb_violations is None else str(found.pdb_violations),
        f"{who} and {more:,} more" if more > 0 else who,
    )
