"""Sentences about outcomes, and about groups of nodes that were rejected for the same reason."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubesched.explain.report import (
    Answer,
    NodeScore,
    NotHelped,
    PodExplanation,
    PodOutcome,
    PreemptionCandidate,
    PreemptionExplanation,
    PreFilterStep,
    Victim,
)
from kubesched.explain.sentences import (
    answer_groups,
    choice_sentence,
    count,
    group_details,
    group_heading,
    headline,
    names,
    pre_filter_sentences,
    summary,
)


def report(outcome: PodOutcome, **fields: object) -> PodExplanation:
    """Return a report on the pod shop/web-1."""
    return PodExplanation(
        pod="shop/web-1",
        scheduler_name="default-scheduler",
        priority=0,
        outcome=outcome,
        **fields,  # type: ignore[arg-type]  # the test's own
    )


SCORES = (NodeScore("a", 1, 90), NodeScore("b", 2, 70))
CANDIDATE = PreemptionCandidate("a", (Victim("x/y", 0), Victim("x/z", 0)))


@pytest.mark.parametrize(
    ("found", "first", "second"),
    [
        pytest.param(
            report(PodOutcome.SCHEDULABLE, node="a", node_count=3, feasible_count=2, scores=SCORES),
            "Pod shop/web-1 goes to a.",
            "It fits 2 of 3 nodes; a scores highest, 90 to 70 of b.",
            id="best",
        ),
        pytest.param(
            report(
                PodOutcome.SCHEDULABLE,
                node="a",
                node_count=3,
                feasible_count=3,
                ties=("a", "b", "c"),
            ),
            "Pod shop/web-1 goes to a.",
            "It fits 3 of 3 nodes; a ties with b and c, and one of them is drawn.",
            id="ties",
        ),
        pytest.param(
            report(PodOutcome.SCHEDULABLE, node="a", node_count=3, feasible_count=1),
            "Pod shop/web-1 goes to a.",
            "Of 3 nodes no other can take the pod.",
            id="only-feasible",
        ),
        pytest.param(
            report(PodOutcome.SCHEDULABLE, node="a", node_count=1, feasible_count=1),
            "Pod shop/web-1 goes to a.",
            "It is the only node there is.",
            id="only-node",
        ),
        pytest.param(
            report(PodOutcome.SCHEDULABLE, node="a", node_count=3, nominated_hit=True),
            "Pod shop/web-1 goes to a.",
            "It was nominated to that node and fits there, so no other node was tried.",
            id="nominated",
        ),
        pytest.param(
            report(PodOutcome.UNSCHEDULABLE, node_count=1),
            "Pod shop/web-1 does not fit the only node.",
            "",
            id="one-node",
        ),
        pytest.param(
            report(
                PodOutcome.UNSCHEDULABLE,
                node_count=2,
                preemption=PreemptionExplanation(
                    eligible=True, candidates=(CANDIDATE,), chosen="a"
                ),
            ),
            "Pod shop/web-1 fits none of 2 nodes.",
            "Evicting 2 pods on a would make room for it.",
            id="preemption",
        ),
        pytest.param(
            report(
                PodOutcome.UNSCHEDULABLE,
                node_count=2,
                preemption=PreemptionExplanation(
                    eligible=True, not_helped=(NotHelped("a", Answer("", "Unschedulable")),)
                ),
            ),
            "Pod shop/web-1 fits none of 2 nodes.",
            "Evicting other pods was tried on 1 node, without success.",
            id="in-vain",
        ),
        pytest.param(
            report(
                PodOutcome.UNSCHEDULABLE,
                node_count=2,
                preemption=PreemptionExplanation(eligible=True, not_tried=2),
            ),
            "Pod shop/web-1 fits none of 2 nodes.",
            "Evicting other pods would help on no node.",
            id="incurable",
        ),
        pytest.param(
            report(PodOutcome.UNSCHEDULABLE),
            "Pod shop/web-1 cannot be placed: there are no nodes.",
            "",
            id="no-nodes",
        ),
        pytest.param(
            report(PodOutcome.GATED, held_by=Answer("SchedulingGates", "x", ("waiting",))),
            "Pod shop/web-1 is held back by SchedulingGates: waiting.",
            "",
            id="gated",
        ),
        pytest.param(
            report(PodOutcome.ERROR, message="boom"),
            "Pod shop/web-1 cannot be judged: boom.",
            "",
            id="error",
        ),
    ],
)
def test_headline_and_summary(found: PodExplanation, first: str, second: str) -> None:
    """The first two sentences state the outcome and how the node was chosen."""
    assert (first, second) == (headline(found), summary(found))


def test_choice() -> None:
    """The choice is explained where there was one."""
    other = PreemptionCandidate("b", (Victim("x/y", 0),))
    alone = PreemptionExplanation(
        eligible=True, candidates=(CANDIDATE,), chosen="a", decided_by="x"
    )
    chosen = PreemptionExplanation(
        eligible=True, candidates=(CANDIDATE, other), chosen="a", decided_by="fewest victims"
    )
    tied = PreemptionExplanation(
        eligible=True,
        candidates=(CANDIDATE, other),
        chosen="a",
        decided_by="first in name order",
        ties=("a", "b"),
    )
    assert choice_sentence(alone) == ""
    assert choice_sentence(chosen) == "a is chosen before 1 other candidate: fewest victims."
    assert choice_sentence(tied) == (
        "a is chosen before 1 other candidate: first in name order of 2 that are equal otherwise."
    )


@pytest.mark.parametrize(
    ("step", "sentences"),
    [
        pytest.param(PreFilterStep("Success"), [], id="nothing"),
        pytest.param(
            PreFilterStep("Unschedulable", "P", ("x", "y")),
            ["P rejects the pod as a whole: x, y."],
            id="rejected",
        ),
        pytest.param(
            PreFilterStep("Unschedulable", reasons=("x",)),
            ["The pod is rejected as a whole: x."],
            id="by-nobody",
        ),
        pytest.param(
            PreFilterStep("Success", restricted_to=("a", "b"), restricted_by=("P", "Q")),
            ["P and Q leave only a and b."],
            id="restricted",
        ),
        pytest.param(
            PreFilterStep("Success", restricted_to=(), restricted_by=("P",)),
            ["P leaves only no node."],
            id="restricted-to-nothing",
        ),
    ],
)
def test_pre_filter(step: PreFilterStep, sentences: list[str]) -> None:
    """Each result of PreFilter is one sentence."""
    assert sentences == list(pre_filter_sentences(step))


@pytest.mark.parametrize(
    ("listed", "text"),
    [
        pytest.param([], "", id="none"),
        pytest.param(["a"], "a", id="one"),
        pytest.param(["a", "b"], "a and b", id="two"),
        pytest.param(["a", "b", "c", "d"], "a, b, c and d", id="four"),
        pytest.param(["a", "b", "c", "d", "e"], "a, b, c and 2 more", id="five"),
    ],
)
def test_names(listed: list[str], text: str) -> None:
    """Few names are listed, of many the first three."""
    assert text == names(listed)


@pytest.mark.parametrize(
    ("number", "expected"),
    [(0, "0 nodes"), (1, "1 node"), (999, "999 nodes"), (5000, "5,000 nodes")],
)
def test_counts(number: int, expected: str) -> None:
    """One is singular, and thousands are separated, as on the pages."""
    assert expected == count(number, "node")


# Groups.


answers = st.builds(
    Answer,
    st.sampled_from(["A", "B"]),
    st.sampled_from(["Unschedulable", "Error"]),
    st.sampled_from([("x",), ("x", "y"), ()]),
    st.sampled_from(["", "d1", "d2"]),
)


@given(st.lists(answers))
def test_every_node_is_in_one_group(given_answers: list[Answer]) -> None:
    """Groups hold each node once, with its own answer, the largest group first."""
    nodes = [(f"n{at}", answer) for at, answer in enumerate(given_answers)]
    groups = answer_groups(nodes)
    assert dict(nodes) == {node: answer for group in groups for node, answer in group}
    assert len(nodes) == sum(map(len, groups))
    keys = [{(one.plugin, one.code, one.message) for _, one in group} for group in groups]
    assert all(len(found) == 1 for found in keys)
    assert len(keys) == len(set.union(set(), *keys))
    assert [len(group) for group in groups] == sorted(map(len, groups), reverse=True)


def test_a_group_in_words() -> None:
    """The count and reason, then details, then the number of the others."""
    usual = [(f"n{at}", Answer("P", "Unschedulable", ("no room",), f"d{at}")) for at in range(5)]
    other = [("n", Answer("", "Pending"))]
    assert "5 nodes: no room (P)" == group_heading(usual)
    assert ["n0: d0", "n1: d1", "n2: d2", "and 2 more"] == list(group_details(usual))
    assert "1 node: no reason given (Pending)" == group_heading(other)
    assert ["n"] == list(group_details(other))


def test_frequent_details_come_first() -> None:
    """The most frequent detail comes first in a group."""
    group = [
        (name, Answer("", "Unschedulable", ("no victims",), detail))
        for name, detail in (("a", "x"), ("b", "y"), ("c", "y"))
    ]
    assert ["b and c: y", "a: x"] == list(group_details(group))
