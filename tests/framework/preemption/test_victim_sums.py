"""Victims that are found by sums of requests, and rows that sums reject beforehand."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar

import numpy as np
import pytest
from hypothesis import given

from kubesched.framework.plugin import FilterPlugin, Plugin, Scope
from kubesched.framework.preemption.eligibility import lower_priority_pods
from kubesched.framework.preemption.report import Candidate
from kubesched.framework.preemption.victim_sums import (
    KnownSums,
    Screening,
    rows_of_sums,
    select_victims_by_sums,
)
from kubesched.framework.preemption.victims import (
    NO_VICTIMS,
    Question,
    Verdict,
    select_victims_on_node,
)
from kubesched.framework.status import NodeToStatus, failure, unresolvable
from kubesched.snapshot.node_columns import NodeColumns
from kubesched.snapshot.node_table import NodeTable
from kubesched.snapshot.pod_info import PodInfo
from kubesched.testing.builders import make_node, make_pod, make_pod_info, make_snapshot

from .cluster import CpuFit, Fragile, Ports, ZoneA, ZoneCrowd, is_alike, question_of, rivals_in
from .test_candidates_twin import Case, cases, snapshot_of


class _Counting(CpuFit):
    """Counts its calls and their rows."""

    calls: ClassVar[list[int]] = []

    def filter(self, state: None, pod: PodInfo, nodes: NodeTable) -> NodeToStatus:
        """Count, then filter."""
        self.calls.append(len(nodes))
        return super().filter(state, pod, nodes)


class _Failing(FilterPlugin[None]):
    """Fails on every row."""

    name: ClassVar = "Failing"
    scope: ClassVar = Scope.USAGE

    def filter(self, state: None, pod: PodInfo, nodes: NodeTable) -> NodeToStatus:
        """Fail where a pod is left."""
        return NodeToStatus.rejecting(nodes.pod_counts > 0, failure("broken"))


@pytest.mark.slow
@given(cases())
def test_sums_equal_one_by_one(case: Case) -> None:
    """Where filters read sums, all rows at once give the same verdicts as one by one."""
    snapshot = snapshot_of(case)
    question = question_of(case.preemptor.build(), snapshot, (CpuFit, ZoneA))
    rows = list(range(len(case.cpus)))
    assert rows == rows_of_sums(question, rows, {})
    expected = {row: select_victims_on_node(question, row) for row in rows}
    known = KnownSums(len(rows))
    for _ in range(2):
        rivals = rivals_in(question)
        found = select_victims_by_sums(question, rows, rivals, known)
        assert expected == found
    for row, passes in enumerate(known.fits_node.tolist()):
        assert not passes or case.zones[snapshot.nodes.names[row]] == "a"


def full_nodes(*sizes: int, plugin: type[FilterPlugin[None]] = _Counting) -> Question:
    """Return the question about nodes that many pods of one cpu fill."""
    names = [f"n{row}" for row in range(len(sizes))]
    snapshot = make_snapshot(
        [
            make_node(name, allocatable={"cpu": size, "pods": 999}, labels={"zone": "a"})
            for name, size in zip(names, sizes, strict=True)
        ],
        [
            make_pod(f"{name}-{at}", node_name=name, requests={"cpu": 1})
            for name, size in zip(names, sizes, strict=True)
            for at in range(size)
        ],
    )
    return question_of(make_pod("new", priority=1, requests={"cpu": 2}), snapshot, (plugin,))


def victims(verdicts: Mapping[int, Verdict]) -> list[list[str]]:
    """Return the names of the victims on each row."""
    found = [each for each in verdicts.values() if isinstance(each, Candidate)]
    assert len(found) == len(verdicts)
    return [[pod.name for pod in each.victims] for each in found]


@pytest.mark.parametrize("size", [3, 60])
def test_the_number_of_calls_does_not_depend_on_the_number_of_pods(size: int) -> None:
    """One call tries the row without its pods, one decides about all of them."""
    _Counting.calls.clear()
    found = select_victims_by_sums(full_nodes(size), [0], {}, KnownSums(1))
    assert [["n0-1", "n0-0"]] == victims(found)
    assert [1, size + 1] == _Counting.calls


def test_rows_with_equal_amounts_share_the_outcome() -> None:
    """Only one of them is tried, and later none."""
    question, known = full_nodes(4, 4, 4), KnownSums(3)
    _Counting.calls.clear()
    found = select_victims_by_sums(question, [0, 1], {}, known)
    assert [2, 5] == _Counting.calls
    found |= select_victims_by_sums(question, [2], {}, known)
    assert [2, 5, 1] == _Counting.calls
    assert [[f"n{row}-1", f"n{row}-0"] for row in range(3)] == victims(found)


def test_a_rival_is_part_of_the_amounts() -> None:
    """A pod that is nominated to a row takes room of its own."""
    question, known = full_nodes(4, 4), KnownSums(2)
    rivals = {1: [PodInfo(make_pod("rival", priority=1, requests={"cpu": 1}))]}
    found = select_victims_by_sums(question, [0, 1], rivals, known)
    assert [["n0-1", "n0-0"], ["n1-2", "n1-1", "n1-0"]] == victims(found)
    assert {0: found[0]} == select_victims_by_sums(question, [0], {}, known)


class _Named(FilterPlugin[None]):
    """Looks the row of a node up by its name."""

    name: ClassVar = "Named"
    scope: ClassVar = Scope.NODE

    def filter(self, state: None, pod: PodInfo, nodes: NodeTable) -> NodeToStatus:
        """Reject all nodes but one."""
        rejected = np.ones(len(nodes), np.bool_)
        rejected[nodes.row_of["n0"]] = False
        return NodeToStatus.rejecting(rejected, unresolvable("another name"))


def test_filters_of_node_objects_see_each_row_once() -> None:
    """Also of nodes that other pods are nominated to."""
    nodes = [make_node("n0", allocatable={"cpu": 4}), make_node("n1", allocatable={"cpu": 4})]
    pods = [make_pod(f"low-{name}", node_name=name, requests={"cpu": 4}) for name in ("n0", "n1")]
    snapshot = make_snapshot(nodes, pods)
    preemptor = make_pod("high", priority=1, requests={"cpu": 1})
    question = question_of(preemptor, snapshot, (_Named, CpuFit))
    rivals = {0: [PodInfo(make_pod("rival", priority=1, requests={"cpu": 1}))]}
    found, other = select_victims_by_sums(question, [0, 1], rivals, KnownSums(2)).values()
    assert isinstance(found, Candidate)
    assert ["low-n0"] == [victim.name for victim in found.victims]
    assert unresolvable("another name").reasons == getattr(other, "reasons", None)


def test_failures_are_not_kept() -> None:
    """A filter that fails runs again."""
    question, known = full_nodes(2, plugin=_Failing), KnownSums(1)
    rivals = {0: [PodInfo(make_pod("rival", priority=1))]}
    known.fits_node[:] = True
    found = select_victims_by_sums(question, [0], rivals, known)
    assert {0: failure("broken").by("Failing")} == found
    assert {} == known.outcomes


@pytest.mark.slow
@given(cases())
def test_rows_whose_pods_are_ignored_equal_one_by_one(case: Case) -> None:
    """A filter that looks at several rows does not matter where it ignores all pods that move."""
    snapshot = snapshot_of(case)
    question = question_of(case.preemptor.build(), snapshot, (CpuFit, ZoneCrowd))
    rivals = rivals_in(question)
    rows = rows_of_sums(question, range(len(case.cpus)), rivals)
    moving = {
        row: (*lower_priority_pods(question.pod, snapshot.nodes, row), *rivals.get(row, ()))
        for row in range(len(case.cpus))
    }
    assert rows == [
        row for row, pods in moving.items() if not any(is_alike(question.pod, pod) for pod in pods)
    ]
    expected = {row: select_victims_on_node(question, row) for row in rows}
    assert expected == select_victims_by_sums(question, rows, rivals, KnownSums(len(case.cpus)))


@pytest.mark.parametrize(
    ("plugins", "expected"),
    [
        pytest.param((CpuFit, ZoneA), [0], id="sums-and-nodes"),
        pytest.param((), [0], id="nothing"),
        pytest.param((CpuFit, Ports), [], id="more"),
        pytest.param((CpuFit, Fragile), [], id="not-ignored"),
    ],
)
def test_rows_of_sums(plugins: tuple[type[Plugin], ...], expected: list[int]) -> None:
    """Filters of nodes and of sums read nothing of pods."""
    snapshot = make_snapshot([make_node("n1")], [make_pod("old", node_name="n1")])
    question = question_of(make_pod("new", priority=1), snapshot, plugins)
    assert expected == rows_of_sums(question, [0], {})


# Screening: rows that are rejected even without the pods of lower priority.


NODES = [make_node(name, allocatable={"cpu": 4}) for name in ("empty", "low", "high", "port")]
PODS = [
    make_pod("low-1", node_name="low", priority=0, requests={"cpu": 2}),
    make_pod("low-2", node_name="low", priority=0, requests={"cpu": 2}),
    make_pod("high", node_name="high", priority=9, requests={"cpu": 2}),
    make_pod("low-3", node_name="high", priority=0, requests={"cpu": 2}),
    make_pod("low-4", node_name="port", priority=0, requests={"cpu": 1}, host_ports=[80]),
]
NONE = NO_VICTIMS.message
PREEMPTOR = make_pod("new", priority=5, requests={"cpu": 3}, host_ports=[80])


def rejections(
    question: Question, rows: Sequence[int], screening: Screening | None = None
) -> dict[str, str]:
    """Return node name -> why the preemptor does not fit there."""
    found = (screening or Screening()).reject(question, rows)
    return {question.snapshot.nodes.names[row]: status.message for row, status in found.items()}


def test_sums_of_requests_reject_rows() -> None:
    """Rows that may fit without pods of lower priority are left, also if their ports are in use."""
    snapshot = make_snapshot(NODES, PODS)
    question = question_of(PREEMPTOR, snapshot, (Ports, CpuFit, ZoneCrowd))
    assert {"empty": NONE, "high": "Insufficient cpu"} == rejections(question, range(4))


def test_usage_follows_the_table() -> None:
    """Pods that come and end, and resources that are new, count at the next question."""
    snapshot = make_snapshot(NODES, PODS)
    nodes, screening = snapshot.nodes, Screening()
    assert isinstance(nodes, NodeColumns)
    question = question_of(PREEMPTOR, snapshot, (CpuFit,))
    rows = high, low = nodes.row_of["high"], nodes.row_of["low"]
    assert {"high": "Insufficient cpu"} == rejections(question, rows, screening)
    nodes.remove_pod(next(iter(nodes.pods[high].values())), high)
    for name in ("guest-1", "guest-2"):
        requests = {"cpu": 1, "gpu": 1}
        guest = make_pod_info(name, node_name="low", priority=7, requests=requests)
        nodes.add_pod(guest, low)
    assert {"low": "Insufficient cpu"} == rejections(question, rows, screening)
    most = question_of(make_pod("new", priority=8, requests={"cpu": 3}), snapshot, (CpuFit,))
    assert {} == rejections(most, rows, screening)


def test_only_filters_up_to_the_first_that_reads_more_are_asked() -> None:
    """Rejections of a filter that reads more, and of those after it, are not known yet."""
    snapshot = make_snapshot(NODES, PODS)
    question = question_of(PREEMPTOR, snapshot, (ZoneCrowd, CpuFit))
    assert {"empty": NONE} == rejections(question, range(4))


def test_a_resource_without_a_column_is_not_screened() -> None:
    """The amounts of such a resource are not among the sums."""
    snapshot = make_snapshot(NODES, PODS)
    pod = make_pod("new", priority=5, requests={"cpu": 3, "example.com/rare": 1})
    assert {"empty": NONE} == rejections(question_of(pod, snapshot), range(4))


class NeedsRows(CpuFit):
    """Fails on a table without rows, as plugins that take a minimum do."""

    def filter(self, state: None, pod: PodInfo, nodes: NodeTable) -> NodeToStatus:
        """Read the first row."""
        assert nodes.names[0]
        return super().filter(state, pod, nodes)


def test_without_pods_of_lower_priority_no_filter_is_asked() -> None:
    """There is no row to ask about."""
    question = question_of(PREEMPTOR, make_snapshot(NODES, PODS), (NeedsRows,))
    assert {"empty": NONE} == rejections(question, [0])
    assert {"high": "Insufficient cpu"} == rejections(question, [2])
