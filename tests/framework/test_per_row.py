"""Plugins that answer for one node at a time."""

from __future__ import annotations

from typing import ClassVar

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kubesched.framework.per_row import NodeRow, PerRowFilter, PerRowScore
from kubesched.framework.status import SUCCESS, Status, unschedulable
from kubesched.snapshot.pod_info import PodInfo
from kubesched.testing.builders import make_node, make_pod, make_pod_info, make_table
from kubesched.testing.handle import FakeHandle

POD = make_pod_info("pod")


class Crowded(PerRowFilter[int]):
    """Rejects nodes with at least as many pods as its state."""

    name: ClassVar = "Crowded"

    def filter_node(self, state: int, pod: PodInfo, node: NodeRow) -> Status:
        """Count."""
        return unschedulable(f"{len(node.pods)} pods") if len(node.pods) >= state else SUCCESS


class Free(PerRowScore[int]):
    """Scores the free amount, divided by its state."""

    name: ClassVar = "Free"

    def score_node(self, state: int, pod: PodInfo, node: NodeRow) -> int:
        """Subtract."""
        return (node.allocatable("cpu") - node.requested("cpu")) // state


CROWDED, FREE = Crowded(None, FakeHandle()), Free(None, FakeHandle())


def test_node_row() -> None:
    """A row shows its node, its pods in order of arrival, and amounts."""
    node = make_node("b", labels={"zone": "z"}, allocatable={"cpu": 2, "example.com/gpu": 3})
    pods = [make_pod(name, node_name="b", requests={"cpu": "300m"}) for name in ("q", "p")]
    row = NodeRow(make_table([make_node("a"), node], pods), 1)
    assert ("b", node, {"zone": "z"}) == (row.name, row.node, row.labels)
    assert ["q", "p"] == [info.name for info in row.pods]
    assert (2000, 3, 0) == tuple(map(row.allocatable, ("cpu", "example.com/gpu", "unknown")))
    assert (600, 0, 0) == tuple(map(row.requested, ("cpu", "example.com/gpu", "unknown")))


@settings(deadline=None)
@given(st.lists(st.integers(0, 3), min_size=1, max_size=6), st.integers(1, 3))
def test_answers_stand_in_row_order(counts: list[int], state: int) -> None:
    """Each row has the answer of its own node, in the table and in a selection of it."""
    pods = [
        make_pod(f"{row}-{n}", node_name=f"n{row}", requests={"cpu": "100m"})
        for row, count in enumerate(counts)
        for n in range(count)
    ]
    table = make_table([make_node(f"n{row}") for row in range(len(counts))], pods)
    rejections = CROWDED.filter(state, POD, table)
    expected = [unschedulable(f"{c} pods") if c >= state else SUCCESS for c in counts]
    assert expected == [rejections[row] for row in range(len(counts))]
    assert expected == [CROWDED.filter_row(state, POD, table, row) for row in range(len(counts))]
    scores = FREE.score(state, POD, table)
    assert scores.tolist() == [FREE.score_row(state, POD, table, row) for row in range(len(counts))]
    assert [(4000 - 100 * count) // state for count in counts] == scores.tolist()
    assert np.int64 == scores.dtype
    last = table.take(np.array([len(counts) - 1]))
    assert scores[-1:].tolist() == FREE.score(state, POD, last).tolist()


def test_no_rows() -> None:
    """A table without rows has no answers."""
    table = make_table([])
    assert 0 == len(CROWDED.filter(1, POD, table))
    assert 0 == len(FREE.score(1, POD, table))


def test_only_survivors_are_asked_about() -> None:
    """As upstream, a rejected node is not evaluated again."""
    assert Crowded.survivors_only
    assert Free.survivors_only


class Forgetful(PerRowFilter[None], PerRowScore[None]):
    """Lacks its return statements."""

    name: ClassVar = "Forgetful"

    def filter_node(self, state: None, pod: PodInfo, node: NodeRow) -> Status:
        """Return nothing."""
        return None  # type: ignore[return-value]  # what is tested

    def score_node(self, state: None, pod: PodInfo, node: NodeRow) -> int:
        """Return nothing."""
        return None  # type: ignore[return-value]  # what is tested


def test_a_method_without_a_return_value_is_named() -> None:
    """The message says what to return."""
    plugin, table = Forgetful(None, FakeHandle()), make_table([make_node("a")])
    with pytest.raises(TypeError, match="filter_node must return a Status such as SUCCESS, not N"):
        plugin.filter(None, POD, table)
    with pytest.raises(TypeError, match="score_node must return a whole number, not None"):
        plugin.score(None, POD, table)
