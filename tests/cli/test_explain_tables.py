"""Reports as rows and columns."""

from __future__ import annotations

from kubesched.cli.explain import candidate_table, deciding_plugins, score_table, verdict_table
from kubesched.explain.report import (
    Answer,
    NodeScore,
    NodeVerdict,
    PluginScore,
    PreemptionCandidate,
    PreemptionExplanation,
    Victim,
)


def score(plugin: str, weighted: int, *, raw: int | None = None, weight: int = 1) -> PluginScore:
    """Return a score."""
    normalized = weighted // weight
    return PluginScore(plugin, normalized if raw is None else raw, normalized, weight, weighted)


SCORES = (
    NodeScore("a", 1, 150, (score("Fit", 50), score("Taint", 100, weight=2), score("Image", 0))),
    NodeScore(
        "b", 2, 60, (score("Fit", 50), score("Taint", 10, raw=7, weight=2), score("Image", 0))
    ),
)


def test_scores_show_what_decides() -> None:
    """Only plugins whose scores differ have a column."""
    assert deciding_plugins(SCORES) == ("Taint",)
    table = score_table(SCORES, deciding_plugins(SCORES))
    taint = "Taint \N{MULTIPLICATION SIGN}2"
    assert ("rank", "node", "total", taint) == table.headings
    assert ("rank", "total", taint) == table.numbers
    assert [("1", "a", "150", "100"), ("2", "b", "60", "10 (7→5)")] == table.rows


def test_verdicts() -> None:
    """A node has a row per rejection, one if it fits or was not tried."""
    answer = Answer("P", "Unschedulable", ("x", "y"), "detail")
    table = verdict_table(
        [
            NodeVerdict("a", feasible=True),
            NodeVerdict("b", feasible=False, rejections=(answer, answer)),
            NodeVerdict("c", feasible=False, tried=False),
        ]
    )
    assert [row[:2] for row in table.rows] == [
        ("a", "yes"),
        ("b", "no"),
        ("b", "no"),
        ("c", "not tried"),
    ]
    assert table.rows[1] == ("b", "no", "P", "Unschedulable", "x, y", "detail")


def test_candidates() -> None:
    """The chosen candidate comes first, then those that tie, then the others by harm."""

    def candidate(node: str, priority: int, count: int = 1) -> PreemptionCandidate:
        return PreemptionCandidate(node, (Victim("d/v", priority),) * count)

    preemption = PreemptionExplanation(
        eligible=True,
        candidates=(candidate("a", 9), candidate("b", 1, 5), candidate("c", 0), candidate("d", 0)),
        chosen="c",
        ties=("c", "d"),
    )
    rows = candidate_table(preemption, 3).rows
    assert [(row[0], row[1]) for row in rows] == [("c", "yes"), ("d", "ties"), ("b", "")]
    assert rows[2][2:] == ("5", "1", "0", "d/v, d/v, d/v and 2 more")
