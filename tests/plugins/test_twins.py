"""Slow twins, written from the rules, of the plugins whose own tests are tables."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubesched.framework.cycle_state import CycleState
from kubesched.framework.queued_pod_info import QueuedPodInfo
from kubesched.plugins.node_name import NodeName
from kubesched.plugins.node_resources.balanced_allocation import NodeResourcesBalancedAllocation
from kubesched.plugins.node_unschedulable import NodeUnschedulable
from kubesched.plugins.priority_sort import PrioritySort
from kubesched.plugins.scheduling_gates import SchedulingGates
from kubesched.snapshot.pod_info import PodInfo
from kubesched.testing.builders import (
    Json,
    all_rows,
    make_node,
    make_pod,
    make_pod_info,
    make_snapshot,
    make_table,
)
from kubesched.testing.handle import FakeHandle
from tests.plugins.building import build

CORDON = "node.kubernetes.io/unschedulable"
tolerations = st.fixed_dictionaries(
    {},
    optional={
        "key": st.sampled_from(["", CORDON, "other"]),
        "operator": st.sampled_from(["", "Equal", "Exists", "Lt"]),
        "value": st.sampled_from(["", "1"]),
        "effect": st.sampled_from(["", "NoSchedule", "NoExecute"]),
    },
)


@pytest.mark.slow
@given(st.lists(st.sampled_from("abcdef"), unique=True), st.sampled_from(["", *"abcdefg"]))
def test_node_name(names: list[str], wanted: str) -> None:
    """A pod that names a node fits there only, one that names none fits everywhere."""
    answers = NodeName(None, FakeHandle()).filter(
        None, make_pod_info(node_name=wanted), make_table(make_node(name) for name in names)
    )
    assert [wanted in ("", name) for name in names] == answers.passed.tolist()


def tolerates_cordon(toleration: Json) -> bool:
    """The rule for the cordon's taint, which has a key, no value, and effect NoSchedule."""
    if toleration.get("effect", "") not in ("", "NoSchedule"):
        return False
    if toleration.get("key", "") not in ("", CORDON):
        return False
    operator = toleration.get("operator", "")
    return operator == "Exists" or (operator in ("", "Equal") and toleration.get("value", "") == "")


@given(st.lists(st.booleans()), st.lists(tolerations, max_size=3))
def test_node_unschedulable(cordoned: list[bool], borne: list[Json]) -> None:
    """A cordoned node takes only pods that tolerate the cordon."""
    table = make_table(
        make_node(f"n{at}", unschedulable=is_cordoned) for at, is_cordoned in enumerate(cordoned)
    )
    plugin, pod = NodeUnschedulable(None, FakeHandle()), make_pod_info(tolerations=borne)
    fits = any(map(tolerates_cordon, borne))
    answers = plugin.filter(None, pod, table)
    assert [fits or not is_cordoned for is_cordoned in cordoned] == answers.passed.tolist()


amounts = st.integers(0, 9)
usage = st.tuples(st.integers(0, 8), st.integers(0, 8), amounts, amounts)


def balance(cpu: int, memory: int, whole_cpu: int, whole_memory: int) -> int:
    """How evenly two resources are used: 100 if by the same share."""
    shares = [
        min(1.0, used / whole)
        for used, whole in ((cpu, whole_cpu), (memory, whole_memory))
        if whole
    ]
    deviation = abs(shares[0] - shares[1]) / 2 if len(shares) == 2 else 0.0
    return math.trunc((1 - deviation) * 100)


@given(st.lists(usage, min_size=1, max_size=12), st.tuples(st.integers(1, 5), st.integers(0, 5)))
def test_balanced_allocation(rows: list[tuple[int, int, int, int]], asked: tuple[int, int]) -> None:
    """The score shows the change of the balance; 75 means no change."""
    nodes, bound = [], []
    for at, (whole_cpu, whole_memory, cpu, memory) in enumerate(rows):
        offered = {"cpu": whole_cpu, "memory": whole_memory, "pods": 9}
        nodes.append(make_node(f"n{at}", allocatable=offered))
        bound.append(
            make_pod(f"p{at}", node_name=f"n{at}", requests={"cpu": cpu, "memory": memory})
        )
    snapshot = make_snapshot(nodes, bound)
    plugin = build(NodeResourcesBalancedAllocation)
    pod = make_pod_info("new", requests={"cpu": asked[0], "memory": asked[1]})
    state = plugin.pre_score(CycleState(), pod, snapshot, all_rows(snapshot)).state
    assert state is not None
    expected = []
    for whole_cpu, whole_memory, cpu, memory in rows:
        before = balance(cpu, memory, whole_cpu, whole_memory)
        after = balance(cpu + asked[0], memory + asked[1], whole_cpu, whole_memory)
        expected.append(50 + (50 + after - before) // 2)
    assert expected == plugin.score(state, pod, snapshot.nodes).tolist()
    for row in range(len(rows)):
        one = snapshot.nodes.take(np.array([row]))
        assert [expected[row]] == plugin.score(state, pod, one).tolist()


@given(st.lists(st.tuples(st.integers(-3, 3), st.integers(0, 5)), max_size=8))
def test_priority_sort(pods: list[tuple[int, int]]) -> None:
    """Higher priority comes first, then longer waiting time."""
    queued = [
        QueuedPodInfo(make_pod_info(priority=priority), timestamp=float(at))
        for priority, at in pods
    ]
    keys = [PrioritySort(None, FakeHandle()).sort_key(each) for each in queued]
    for one, key in zip(pods, keys, strict=True):
        for other, other_key in zip(pods, keys, strict=True):
            goes_first = one[0] > other[0] or (one[0] == other[0] and one[1] < other[1])
            assert goes_first == (key < other_key)


@given(st.lists(st.sampled_from(["a.io/x", "b", "c.io/y"]), unique=True))
def test_scheduling_gates(gates: list[str]) -> None:
    """A pod with gates is rejected, and the message lists its gates in order."""
    pod = PodInfo(make_pod(spec={"schedulingGates": [{"name": gate} for gate in gates]}))
    status = SchedulingGates(None, FakeHandle()).pre_enqueue(pod, make_snapshot())
    assert (not gates) == status.is_success
    if gates:
        assert f"waiting for scheduling gates: [{' '.join(gates)}]" == status.message
