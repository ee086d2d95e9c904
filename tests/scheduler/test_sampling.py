"""The number of feasible nodes to find, and where searches start, compared with a slow twin."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kubesched.framework.plugin import PreFilterResult
from kubesched.framework.status import unschedulable
from kubesched.scheduler.sampling import NodeSampler, feasible_nodes_to_find
from kubesched.scheduler.trace import Trace
from kubesched.snapshot.snapshot import Snapshot
from kubesched.testing.builders import make_node, make_pod_info, make_snapshot
from tests.scheduler.toys import cluster, comparable, cycle_of, placed, rejected, rejections, toy

POD = make_pod_info("pod")
NO = unschedulable("no")
ZONE = "topology.kubernetes.io/zone"


@pytest.mark.parametrize(
    ("nodes", "percentage", "expected"),
    [
        pytest.param(99, 10, 99, id="few nodes are all looked at"),
        pytest.param(100, 10, 100, id="at least a hundred"),
        pytest.param(1000, 10, 100, id="exactly a hundred"),
        pytest.param(1000, 9, 100, id="share below a hundred"),
        pytest.param(1009, 30, 302, id="rounded down"),
        pytest.param(5000, 100, 5000, id="all"),
        pytest.param(5000, 0, 5000, id="not set"),
        pytest.param(0, 50, 0, id="none"),
    ],
)
def test_number_of_feasible_nodes_to_find(nodes: int, percentage: int, expected: int) -> None:
    """A percentage of the nodes, but at least one hundred."""
    assert expected == feasible_nodes_to_find(nodes, percentage)


def _names(count: int) -> list[str]:
    return [f"node-{number:03}" for number in range(count)]


def _zoned(names: Sequence[str], zones: int) -> Snapshot:
    """Return nodes that are spread unevenly over zones."""
    return make_snapshot(
        make_node(name, labels={ZONE: f"z{at * at % zones}"}) for at, name in enumerate(names)
    )


def _slow_search(order: list[int], passed: list[bool], start: int, limit: int) -> list[int]:
    """Visit the candidates up to the first feasible one that is not needed."""
    tried: list[int] = []
    found = 0
    for step in range(len(order)):
        at = (start + step) % len(order)
        found += passed[at]
        if found > limit:
            break
        tried.append(order[at])
    return tried


@given(
    zones=st.integers(1, 4),
    allowed=st.none() | st.sets(st.integers(0, 29)),
    start=st.integers(0, 60),
    limit=st.integers(1, 30),
)
def test_parts_are_all_rows_in_order(
    zones: int, allowed: set[int] | None, start: int, limit: int
) -> None:
    """They begin at the start, and the first is large enough for the limit."""
    nodes = _zoned(_names(30), zones).nodes
    order = [row for row in nodes.snapshot_order.tolist() if allowed is None or row in allowed]
    sampler = NodeSampler()
    sampler.next_start = start
    rows = None if allowed is None else np.array(sorted(allowed), np.intp)
    parts = [part.tolist() for part in sampler.parts(nodes, rows, limit)]
    at = start % len(order) if order else 0
    assert [*order[at:], *order[:at]] == [row for part in parts for row in part]
    assert not parts or len(parts[0]) >= min(limit, len(order))


def test_the_start_wraps_around() -> None:
    """It moves by the number of evaluated nodes."""
    sampler = NodeSampler()
    starts = []
    for processed in (40, 50, 30, 100):
        sampler.advance(processed, 100)
        starts.append(sampler.next_start)
    assert [40, 90, 20, 20] == starts


@pytest.mark.slow
@settings(deadline=None)
@given(
    rejected_nodes=st.sets(st.integers(0, 149), max_size=149),
    zones=st.integers(1, 4),
    allowed=st.none() | st.sets(st.integers(0, 149), min_size=120),
)
def test_three_searches_equal_a_slow_twin(
    rejected_nodes: set[int], zones: int, allowed: set[int] | None
) -> None:
    """The twin goes through upstream's list of nodes."""
    names = _names(150)
    snapshot = _zoned(names, zones)
    only = None if allowed is None else frozenset(names[at] for at in allowed)
    plugin = toy(
        "P",
        pre_filter=PreFilterResult[None](node_names=only),
        filter=dict.fromkeys((names[at] for at in rejected_nodes), NO),
        score={},
    )
    cycle = cycle_of(plugin, percentage=67)
    order = [
        row for row in snapshot.nodes.snapshot_order.tolist() if allowed is None or row in allowed
    ]
    passed = [row not in rejected_nodes for row in order]
    start = 0
    for _ in range(3):
        limit = max(100, len(order) * 67 // 100)
        tried = _slow_search(order, passed, start % len(order), limit)
        trace = Trace()
        cycle.schedule_one(POD, snapshot, trace)
        assert sorted(tried) == trace.tried_rows.tolist()
        start = (start + len(tried)) % 150
        assert start == cycle.sampler.next_start
        feasible = sorted(row for row in tried if row not in rejected_nodes)
        assert feasible == trace.feasible_rows.tolist()


def test_the_next_search_starts_where_the_last_one_stopped() -> None:
    """Every node is evaluated in time."""
    snapshot = cluster(*_names(300))
    cycle = cycle_of(toy("P", filter={}, score={}), percentage=34)
    seen: set[int] = set()
    for _ in range(3):
        trace = Trace()
        decision = placed(cycle.schedule_one(POD, snapshot, trace))
        assert (102, 102) == (decision.feasible, decision.evaluated)
        seen |= set(trace.tried_rows.tolist())
    assert 300 == len(seen)


def test_sampling_decides_the_same_with_memory() -> None:
    """Remembered answers are for all rows, of which a search uses some."""
    snapshot = cluster(*_names(150))
    plain = cycle_of(toy("P", filter={}, score={}), percentage=67)
    cycle = cycle_of(toy("P", filter={}, score={}), percentage=67, remembers=True)
    for _ in range(5):
        expected = placed(plain.schedule_one(POD, snapshot))
        decision = placed(cycle.schedule_one(POD, snapshot))
        assert (expected.node_name, expected.feasible) == (decision.node_name, decision.feasible)


def test_a_failure_does_not_move_the_start_twice() -> None:
    """A cycle that fails with memory is tried without, and looks at the same nodes."""
    snapshot = cluster(*_names(150))
    plugin = toy("P", filter={}, score={"node-007": 101})
    plain, cycle = (
        cycle_of(plugin, percentage=67, remembers=remembers) for remembers in (False, True)
    )
    for _ in range(3):
        expected = comparable(plain.schedule_one(POD, snapshot))
        assert expected == comparable(cycle.schedule_one(POD, snapshot))
        assert plain.sampler.next_start == cycle.sampler.next_start


def test_a_rejection_is_about_all_nodes() -> None:
    """The percentage does not matter."""
    names = _names(120)
    snapshot = cluster(*names)
    cycle = cycle_of(toy("P", filter=dict.fromkeys(names, NO)), percentage=10)
    decision = rejected(cycle.schedule_one(POD, snapshot))
    assert dict.fromkeys(names, ("P", "no")) == rejections(decision)
    assert "0/120 nodes are available: 120 no." == decision.message


def test_a_search_of_all_nodes_keeps_the_start() -> None:
    """It ends where it began."""
    cycle = cycle_of(toy("P", filter={}), percentage=100)
    cycle.sampler.next_start = 7
    cycle.schedule_one(POD, cluster(*_names(120)))
    assert 7 == cycle.sampler.next_start


def test_a_restricted_search_moves_the_start() -> None:
    """It moves by the number of nodes that the search evaluated."""
    few = frozenset(_names(120)[:5])
    cycle = cycle_of(toy("P", pre_filter=PreFilterResult[None](node_names=few), filter={}))
    cycle.schedule_one(POD, cluster(*_names(120)))
    assert 5 == cycle.sampler.next_start


@pytest.mark.parametrize("percentage", [pytest.param(10, id="samples"), pytest.param(0, id="all")])
def test_a_cycle_without_search_fixes_the_order(percentage: int) -> None:
    """A zone that changes afterwards does not count, if searches use the order."""
    nodes = [make_node(name, labels={ZONE: name[0]}) for name in ("a-0", "a-1", "b-0")]
    snapshot = make_snapshot(nodes)
    cycle = cycle_of(toy("P", pre_filter=PreFilterResult[None](status=NO)), percentage=percentage)
    rejected(cycle.schedule_one(POD, snapshot))
    snapshot.nodes.update_node(make_node("a-0", labels={ZONE: "b"}))
    order = [snapshot.nodes.names[row] for row in snapshot.nodes.snapshot_order]
    assert (["a-0", "b-0", "a-1"] if percentage else ["a-1", "b-0", "a-0"]) == order
