"""Tests of the victims on a node, row by row and with columns."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from kubesched.framework.preemption.victims import (
    NO_VICTIMS,
    select_victims_on_node,
    select_victims_on_rows,
)
from kubesched.framework.status import Status, failure
from kubesched.testing.builders import make_node, make_pod, make_snapshot

from .cluster import NO_CPU, CpuFit, Fragile, ZoneCounts, question_of


@pytest.mark.parametrize(
    ("fails", "priorities", "expected"),
    [
        pytest.param("remove", [1], failure("cannot remove"), id="removing-fails"),
        pytest.param("add", [1], failure("cannot add"), id="adding-fails"),
        pytest.param("", [], NO_VICTIMS, id="nobody-there"),
        pytest.param("", [20], NO_VICTIMS, id="nobody-of-lower-priority"),
        pytest.param("", [1, 20], NO_CPU.by("CpuFit"), id="not-enough-even-without-them"),
    ],
)
def test_why_a_node_is_no_candidate(fails: str, priorities: list[int], expected: Status) -> None:
    """A node that is not a candidate has the reason as its status."""
    bound = [
        make_pod(f"v{at}", node_name="n1", priority=at, requests={"cpu": 2 - at // 20})
        for at in priorities
    ]
    node = make_node("n1", allocatable={"cpu": 2}, labels={"fails": fails})
    new = make_pod("new", priority=10, requests={"cpu": 2})
    question = question_of(new, make_snapshot([node], bound), (CpuFit, Fragile))
    assert expected == select_victims_on_node(question, 0)


def test_a_node_without_victims_is_a_failure() -> None:
    """A filter that accepts the node with all pods contradicts its earlier rejection."""
    snapshot = make_snapshot([make_node("n1")], [make_pod("v", node_name="n1")])
    question = question_of(make_pod("new", priority=1), snapshot)
    expected = failure('expected at least one victim pod on node "n1"')
    assert expected == select_victims_on_node(question, 0)
    assert {0: expected} == select_victims_on_rows(question, [0])


def test_states_of_skipped_plugins_do_not_make_rows_dependent() -> None:
    """Only a clonable state of a plugin that filters makes rows dependent."""
    question = question_of(make_pod("new"), make_snapshot([make_node("n1")]))
    cycle = question.cycle
    cycle.filter_states["A"] = 3
    assert replace(question).rows_are_independent
    cycle.filter_states["B"] = ZoneCounts({})
    assert not replace(question).rows_are_independent
    cycle.skip_filter.add("B")
    assert replace(question).rows_are_independent
