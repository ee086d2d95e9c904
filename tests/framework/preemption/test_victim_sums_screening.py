"""Screening: rows that are rejected even without the pods of lower priority."""

from __future__ import annotations

from collections.abc import Sequence

from kubesched.framework.preemption.victim_sums import Screening
from kubesched.framework.preemption.victims import NO_VICTIMS, Question
from kubesched.framework.status import NodeToStatus
from kubesched.snapshot.node_columns import NodeColumns
from kubesched.snapshot.node_table import NodeTable
from kubesched.snapshot.pod_info import PodInfo
from kubesched.testing.builders import make_node, make_pod, make_pod_info, make_snapshot

from .cluster import CpuFit, Ports, ZoneCrowd, question_of

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
