"""NodeResourcesFit: all rows at once against one node at a time."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubesched.api.core import Node, Pod
from kubesched.framework.cycle_state import CycleState
from kubesched.framework.status import Code
from kubesched.snapshot.pod_info import PodInfo
from kubesched.testing.builders import Amounts, all_rows, make_node, make_pod, make_snapshot
from tests.plugins.node_resources.fits import FPGA, GPU, HUGE, new_plugin, strategy_args

_NAMES = ("cpu", "memory", "ephemeral-storage", GPU, FPGA, HUGE, "kubernetes.io/x")
_REQUESTS = st.dictionaries(st.sampled_from(_NAMES), st.integers(0, 6), max_size=4)
_NODES = st.lists(
    st.tuples(
        st.fixed_dictionaries({name: st.integers(0, 9) for name in _NAMES}),
        st.integers(0, 3),
        st.lists(_REQUESTS, max_size=3),
    ),
    min_size=1,
    max_size=12,
)


def _fits(
    pod: Amounts, node: Amounts, slots: int, used: Sequence[Amounts]
) -> tuple[Code, set[str]]:
    """Answer for one node, from the specification; whole units of everything."""
    reasons = {"Too many pods"} if len(used) + 1 > slots else set()
    never = False
    for name, amount in pod.items():
        free = int(node[name]) - sum(int(other.get(name, 0)) for other in used)
        if int(amount) > 0 and int(amount) > free:
            reasons.add(f"Insufficient {name}")
            never = never or int(amount) > int(node[name])
    if never:
        return Code.UNSCHEDULABLE_AND_UNRESOLVABLE, reasons
    return (Code.UNSCHEDULABLE if reasons else Code.SUCCESS), reasons


@pytest.mark.slow
@given(_NODES, _REQUESTS)
def test_filter_equals_the_twin(
    cluster: list[tuple[Amounts, int, list[Amounts]]], asked: Amounts
) -> None:
    """Each row gets the twin's answer, alone, among few rows and among many."""
    copies = 4
    nodes: list[Node] = []
    pods: list[Pod] = []
    for i, (allocatable, slots, used) in enumerate(cluster * copies):
        nodes.append(make_node(f"n{i}", allocatable={**allocatable, "pods": slots}))
        pods += [make_pod(f"p{i}-{j}", node_name=f"n{i}", requests=u) for j, u in enumerate(used)]
    few, many = make_snapshot(nodes[: len(cluster)], pods), make_snapshot(nodes, pods)
    plugin, pod = new_plugin(), PodInfo(make_pod(requests=asked))
    state = plugin.pre_filter(CycleState(), pod, many).state
    assert state is not None
    expected = [_fits(asked, *node) for node in cluster]
    for table in (few.nodes, many.nodes):
        answers = plugin.filter(state, pod, table)
        found = [(answers[row].code, set(answers[row].reasons)) for row in range(len(answers))]
        assert expected * (len(found) // len(cluster)) == found
    for row, (code, reasons) in enumerate(expected):
        one = many.nodes.take(np.array([row]))
        status = plugin.filter(state, pod, one)[0]
        assert (code, reasons) == (status.code, set(status.reasons))
        assert status == plugin.filter_row(state, pod, many.nodes, row)
        assert bool(reasons) == bool(plugin.describe(state, pod, one))


@pytest.mark.slow
@given(_NODES, _REQUESTS, st.sampled_from(["LeastAllocated", "MostAllocated"]))
def test_one_row_scores_as_in_the_table(
    cluster: list[tuple[Amounts, int, list[Amounts]]], asked: Amounts, kind: str
) -> None:
    """Rows with different resources get the same scores together and one by one."""
    nodes: list[Node] = []
    pods: list[Pod] = []
    for i, (allocatable, _, used) in enumerate(cluster * 9):
        nodes.append(make_node(f"n{i}", allocatable=allocatable))
        pods += [make_pod(f"p{i}-{j}", node_name=f"n{i}", requests=u) for j, u in enumerate(used)]
    snapshot = make_snapshot(nodes, pods)
    plugin = new_plugin(strategy_args(kind, *((name, at + 1) for at, name in enumerate(_NAMES))))
    info = PodInfo(make_pod(requests=asked))
    state = plugin.pre_score(CycleState(), info, snapshot, all_rows(snapshot)).state
    assert state is not None
    ones = [snapshot.nodes.take(np.array([row])) for row in range(len(cluster))]
    expected = [int(plugin.score(state, info, one)[0]) for one in ones]
    assert expected * 9 == plugin.score(state, info, snapshot.nodes).tolist()
    for row, score in enumerate(expected):
        assert score == plugin.score_row(state, info, snapshot.nodes, row)
