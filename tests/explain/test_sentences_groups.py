"""Groups of nodes that were rejected for the same reason."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from kubesched.explain.report import Answer
from kubesched.explain.sentences import answer_groups, group_details, group_heading

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
