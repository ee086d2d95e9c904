"""An explanation as tables of text, independent of rendering.

Invariants: every row has one cell per column.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import NamedTuple

from kubesched.explain.report import (
    NodeScore,
    NodeVerdict,
    PluginScore,
    PreemptionCandidate,
    PreemptionExplanation,
)

_VICTIMS_MAX = 3


class TextTable(NamedTuple):
    """Headings, rows of cells, and the headings of numbers, which are aligned to the right."""

    headings: Sequence[str]
    rows: Sequence[Sequence[str]]
    numbers: Collection[str] = ()


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


# Scores.


def score_table(scores: Sequence[NodeScore], plugins: Sequence[str]) -> TextTable:
    """Return one row per node: rank, total, and the weighted score of each of `plugins`.

    If the raw score was normalized, the cell has both values as well: `180 (12→90)`.
    """
    first = {score.plugin: score for score in scores[0].scores} if scores else {}
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


def same_for_all(scores: Sequence[NodeScore]) -> tuple[PluginScore, ...]:
    """Return the scores that are equal for all nodes and so decide nothing."""
    if not scores:
        return ()
    deciding = deciding_plugins(scores)
    return tuple(score for score in scores[0].scores if score.plugin not in deciding)


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


# Preemption.


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
        f"{who} and {more} more" if more > 0 else who,
    )
