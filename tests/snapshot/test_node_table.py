"""Selections of rows, and the amounts that pods add to them."""

from __future__ import annotations

import numpy as np
import pytest

from kubesched.snapshot.node_columns import NodeColumns
from kubesched.snapshot.node_table import NodeTable, SelectedRows
from kubesched.snapshot.pod_info import PodInfo
from kubesched.testing.builders import make_node, make_pod_info, make_table


def holders(table: NodeTable, row: int = 0) -> list[str]:
    """The ports in use, with one entry per user."""
    return sorted(map(repr, table.used_ports[row]))


def two_holders_of_port_80() -> tuple[NodeColumns, list[PodInfo]]:
    """A node with two pods that were bound manually."""
    pods = [make_pod_info(name, host_ports=[80]) for name in ("a", "b")]
    table = make_table([make_node()])
    for pod in pods:
        table.add_pod(pod, 0)
    return table, pods


def test_a_port_is_free_once_one_of_its_holders_leaves() -> None:
    """As upstream, the table keeps a set of ports without counting their users."""
    table, pods = two_holders_of_port_80()
    table.remove_pod(pods[0], 0)
    assert [] == holders(table)


def test_what_if_frees_a_port_that_another_pod_holds_too() -> None:
    """Upstream keeps a set of ports, so a pod removed by preemption frees its port."""
    table, pods = two_holders_of_port_80()
    node = table.take(np.array([0]))
    node.remove_pod(pods[0])
    assert [] == holders(node)
    node.add_pod(pods[0])
    assert 1 == len(holders(node))
    assert 1 == len(holders(table))


def test_a_selection_of_a_selection_is_independent() -> None:
    """Selections can be nested."""
    table = make_table([make_node()])
    outer = table.take(np.array([0]))
    outer.add_pod(make_pod_info("a", requests={"cpu": 1}))
    inner = outer.take(np.array([0]))
    inner.add_pod(make_pod_info("b", requests={"cpu": 2}))
    assert [0, 1_000, 3_000] == [t.requested_of("cpu")[0] for t in (table, outer, inner)]
    assert [0, 1, 2] == [len(t.pods[0]) for t in (table, outer, inner)]


def test_unknown_resources_are_zero() -> None:
    """An unknown resource has zero amounts."""
    table = make_table([make_node()])
    assert [0] == table.allocatable_of("example.com/none").tolist()
    assert [0] == table.requested_of("example.com/none").tolist()


OLD = [make_pod_info(name, requests={"cpu": 1}) for name in ("old", "older")]


def three_rows() -> SelectedRows:
    """Three rows of which two have pods."""
    table = make_table(make_node(f"n{row}", allocatable={"a.com/a": 9}) for row in range(3))
    for row, pod in enumerate(OLD):
        table.add_pod(pod, row)
    return table.take(np.arange(3))


PODS = [
    make_pod_info("a", requests={"cpu": 1, "a.com/a": 2, "unknown": 7}, host_ports=[80]),
    make_pod_info("b", requests={"cpu": 1, "a.com/a": 2}),
    make_pod_info("c", requests={"memory": 5}),
    make_pod_info("d", requests={"cpu": 1, "a.com/a": 2}),
]


@pytest.mark.parametrize(
    "rows", [pytest.param([0, 1, 2, 2], id="ascending"), pytest.param([2, 0, 2, 0], id="mixed")]
)
def test_many_pods_are_accounted_for_as_one_by_one(rows: list[int]) -> None:
    """Adding and removing pods together gives the numbers and ports of single steps."""
    single, together = three_rows(), three_rows()
    placed = list(zip(rows, PODS, strict=True))
    for row, pod in placed:
        single.add_pod(pod, row)
    together.add_pods(placed)
    assert single.numbers.tolist() == together.numbers.tolist()
    assert single.pods == together.pods
    assert [holders(single, row) for row in range(3)] == [
        holders(together, row) for row in range(3)
    ]
    together.remove_pods(placed)
    assert three_rows().numbers.tolist() == together.numbers.tolist()
    together.add_pods([])
    together.check()


def test_without_any_pods() -> None:
    """Only what nodes offer is left, and only in the selection."""
    table = make_table(make_node(f"n{row}", allocatable={"a.com/a": 9}) for row in range(3))
    table.add_pods(enumerate(PODS[:3]))
    bare, before = table.take(np.arange(3)), table.numbers.copy()
    bare.remove_all_pods()
    bare.check()
    assert [{}, {}, {}] == bare.pods
    assert [[], [], []] == [holders(bare, row) for row in range(3)]
    assert [9, 9, 9] == bare.allocatable_of("a.com/a").tolist()
    assert before.tolist() == table.numbers.tolist()


def test_amounts_alone() -> None:
    """Amounts can be added without pods."""
    whole, sums = three_rows(), three_rows()
    whole.add_pods(list(enumerate(PODS[:3])))
    sums.add_amounts(sums.amounts_of_pods(PODS[:3]))
    assert whole.numbers.tolist() == sums.numbers.tolist()
    assert three_rows().pods == sums.pods
