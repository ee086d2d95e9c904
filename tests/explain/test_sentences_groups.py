"""Groups of nodes that were rejected for the same reason."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from kubesched.explain.report import Answer, NodeVerdict, NotHelped
from kubesched.explain.sentences import not_helped_groups, rejection_groups

answers = st.builds(
    Answer,
    st.sampled_from(["A", "B"]),
    st.sampled_from(["Unschedulable", "Error"]),
    st.sampled_from([("x",), ("x", "y"), ()]),
    st.sampled_from(["", "d1", "d2"]),
)
verdicts = st.lists(st.lists(answers, max_size=2)).map(
    lambda lists: [
        NodeVerdict(f"n{at}", feasible=not found, rejections=tuple(found))
        for at, found in enumerate(lists)
    ]
)


@given(verdicts)
def test_every_rejected_node_is_in_one_group(found: list[NodeVerdict]) -> None:
    """Groups hold each rejected node once, with its own first answer, the largest group first."""
    groups = rejection_groups(found)
    seen = {
        name: (group.plugin, group.code, group.message, same.detail)
        for group in groups
        for same in group.details
        for name in same.nodes
    }
    expected = {
        v.node: (
            v.rejections[0].plugin,
            v.rejections[0].code,
            v.rejections[0].message,
            v.rejections[0].detail,
        )
        for v in found
        if v.rejections
    }
    assert expected == seen
    counts = [group.count for group in groups]
    assert counts == sorted(counts, reverse=True)
    assert sum(counts) == len(expected)


def test_frequent_details_come_first() -> None:
    """The most frequent detail comes first in a group."""
    nodes = [
        NotHelped(name, Answer("", "Unschedulable", ("no victims",), detail))
        for name, detail in (("a", "x"), ("b", "y"), ("c", "y"))
    ]
    (group,) = not_helped_groups(nodes)
    assert [(same.detail, same.nodes) for same in group.details] == [
        ("y", ("b", "c")),
        ("x", ("a",)),
    ]
