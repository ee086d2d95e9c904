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
    ("fails", "bound", "expected"),
    [
        pytest.param(
            "remove",
            {"n1": [("v", 1)]},
            {"n1": failure("cannot remove")},
            id="removing-fails",
        ),
        pytest.param("add", {"n1": [("v", 1)]}, {"n1": failure("cannot add")}, id="adding-fails"),
        pytest.param("", {"n1": []}, {"n1": NO_VICTIMS}, id="nobody-there"),
        pytest.param("", {"n1": [("v", 20)]}, {"n1": NO_VICTIMS}, id="nobody-of-lower-priority"),
        pytest.param(
            "",
            {"n1": [("v", 1), ("w", 20)]},
            {"n1": NO_CPU.by("CpuFit")},
            id="not-enough-even-without-them",
        ),
    ],
)
def test_why_a_node_is_no_candidate(
    fails: str, bound: dict[str, list[tuple[str, int]]], expected: dict[str, Status]
) -> None:
    """A node that is no candidate has the reason as its status."""
    snapshot = make_snapshot(
        [make_node(name, allocatable={"cpu": 2}, labels={"fails": fails}) for name in bound],
        [
            make_pod(pod, node_name=node, priority=priority, requests={"cpu": 2 - priority // 20})
            for node, pods in bound.items()
            for pod, priority in pods
        ],
    )
    question = question_of(
        make_pod("new", priority=10, requests={"cpu": 2}), snapshot, (CpuFit, Fragile)
    )
    found = [select_victims_on_node(question, row) for row in range(len(bound))]
    assert list(expected.values()) == found


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
