"""Filtering all nodes at once, compared with one after the other and nothing kept."""

from __future__ import annotations

import asyncio

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from kubesched.api.meta import NodeSelector
from kubesched.api.resource import DeviceCapacity, ResourceClaim
from kubesched.framework.cycle_state import CycleState
from kubesched.framework.status import NodeToStatus
from kubesched.plugins.dynamic_resources import DynamicResources
from kubesched.plugins.dynamic_resources.dynamic_resources import DynamicResourcesArgs
from kubesched.plugins.dynamic_resources.state import ClaimInformation, DynamicResourcesState
from kubesched.snapshot.pod_info import PodInfo
from kubesched.testing.builders import make_node, make_snapshot
from tests.plugins.dynamic_resources.cluster import GPU, HERE, Cluster, gpu_class, local, user_of
from tests.plugins.dynamic_resources.objects import (
    allocation_of,
    alternative,
    claim,
    counted,
    device,
    device_class,
    first_available,
    node_selector,
    request,
    result,
    slice_of,
)

_IN_RACK = node_selector("rack", "a")
_SHARED = device(
    "e0", allow_multiple_allocations=True, capacity={"memory": DeviceCapacity(value="2")}
)
_SLICES = (
    local("s1", "n1", 2),
    local("s2", "n2"),
    slice_of([device("r0")], "s3", pool="rack", node_selector=_IN_RACK),
    slice_of([_SHARED], "s6", pool="shared", node_name="n3"),
    slice_of([device("h0")], "s7", pool="half", count=2, node_name="n3"),
    *counted(1, 1, total=1),
)
_ASKED = (
    (request(),),
    (request(count=2),),
    (first_available("r", alternative("two", count=2), alternative("one")),),
    (request(allocation_mode="All"),),
)
_OTHER = "example.com/nic"
_EXTENDED: tuple[dict[str, str | int], ...] = ({}, {GPU: 1}, {GPU: 2}, {GPU: 1, _OTHER: 1})
Answers = list[tuple[object, object, int | None]]

steps = st.lists(
    st.tuples(
        st.sampled_from(["keep", "undo", "write", "release", "label", "come", "slice", "offer"]),
        st.integers(0, len(_ASKED) - 1),
        st.integers(0, 2),
        st.booleans(),
        st.sampled_from(_EXTENDED),
    ),
    max_size=16,
)


def _filtered(
    cluster: Cluster, plugin: DynamicResources, pod: PodInfo, rows: list[int], *, one_by_one: bool
) -> tuple[CycleState, Answers]:
    """Return the status and the allocation of these rows."""
    cycle, nodes = CycleState(), cluster.snapshot.nodes
    state = plugin.pre_filter(cycle, pod, cluster.snapshot).state
    cycle.filter_states[plugin.name] = state
    assert state is not None
    if one_by_one:
        statuses = NodeToStatus.of([state.filter(nodes.nodes[row]) for row in rows])
    elif len(rows) < len(nodes):
        statuses = plugin.filter(state, pod, nodes.take(np.array(rows, np.intp)))
    else:
        statuses = plugin.filter(state, pod, nodes)
    found: Answers = []
    for at, row in enumerate(rows):
        name, is_feasible = nodes.names[row], statuses[at].is_success
        # The score is asked first: it must not depend on what is looked up later.
        score = state.score(name) if is_feasible and state.has_alternatives() else None
        found.append((statuses[at], state.allocation_on(name) if is_feasible else None, score))
    return cycle, found


@pytest.mark.slow
@settings(max_examples=200, deadline=None)
@given(steps, st.booleans())
def test_kept_results_equal_new_ones(
    story: list[tuple[str, int, int, bool, dict[str, str | int]]], has_shared: bool
) -> None:
    """While allocations are kept, undone, written and released, and nodes and slices change."""
    nodes = [make_node(f"n{at}") for at in range(1, 4)]
    slices = _SLICES if has_shared else _SLICES[:2]
    cluster = Cluster(device_class(), gpu_class(), *slices, nodes=nodes)
    table = cluster.snapshot.nodes
    for at, (what, which, where, everywhere, extended) in enumerate(story):
        if what == "release":
            for written in list(cluster.store.list(ResourceClaim))[:1]:
                cluster.store.delete(written)
        elif what == "slice":
            cluster.store.put(local("s2", "n2", which))
        elif what == "label":
            table.update_node(make_node("n2", labels={"rack": "ab"[which % 2]}))
        elif what == "offer":
            offered = {GPU: which % 2, _OTHER: which // 2}
            table.update_node(make_node("n1", allocatable=offered))
        elif what == "come" and "n3" in table.row_of:
            table.remove_node("n3")
        elif what == "come":
            table.add_node(make_node("n3"))
        cluster.store.put(claim(*_ASKED[which], name=f"c{at}"))
        claims = (f"c{at}",) if which or not extended else ()
        pod = user_of(*claims, name=f"p{at}", requests=extended)
        rows = [row for row in range(len(table)) if everywhere or row != where]
        cycle, found = _filtered(cluster, cluster.plugin, pod, rows, one_by_one=False)
        fresh = DynamicResources(DynamicResourcesArgs(), cluster.handle)
        assert _filtered(cluster, fresh, pod, rows, one_by_one=True)[1] == found
        if what in ("keep", "undo", "write"):
            fitting = [row for row, each in zip(rows, found, strict=True) if each[1] is not None]
            _reserve(cluster, cycle, pod, what, fitting)


def _reserve(cluster: Cluster, cycle: CycleState, pod: PodInfo, what: str, rows: list[int]) -> None:
    for row in rows[:1]:
        name = cluster.snapshot.nodes.names[row]
        assert cluster.plugin.reserve(cycle, pod, name).is_success
        if what == "undo":
            cluster.plugin.unreserve(cycle, pod, name)
        elif what == "write":
            asyncio.run(cluster.plugin.pre_bind(cycle, pod, name))


def test_only_nodes_whose_devices_changed_are_filtered() -> None:
    """The first pod filters all nodes, later ones those whose devices were taken since."""
    cluster = Cluster(device_class(), local("s1", "n1", 2), local("s2", "n2"))
    for at in range(4):
        cluster.store.put(claim(request(), name=f"c{at}"))
    asked: list[list[str]] = []
    for at in range(4):
        if at == 2:
            cluster.place(user_of("c3", name="r"))
        cycle, _ = cluster.filter(user_of(f"c{at}"))
        state = cycle.filter_states[cluster.plugin.name]
        assert isinstance(state, DynamicResourcesState)
        asked.append(list(state.search_on))
    assert [["n1", "n2"], [], ["n1"], []] == asked


def test_nodes_without_devices_are_not_filtered_one_by_one() -> None:
    """They have no result, like the one of them that is searched."""
    nodes = [make_node(f"n{at}") for at in range(1, 6)]
    cluster = Cluster(device_class(), local("s1", "n1"), local("s2", "n3"), nodes=nodes)
    cluster.store.put(claim(request(), name="c"))
    cycle, answers = cluster.filter(user_of("c"))
    state = cycle.filter_states[cluster.plugin.name]
    assert isinstance(state, DynamicResourcesState)
    assert ["n1", "n3"] == list(state.search_on)
    assert ["n1", "n3"] == [name for name, status in answers.items() if status.is_success]


def test_pods_that_are_reserved_again_get_the_same_devices() -> None:
    """As in a group whose pods are placed tentatively first."""
    cluster = Cluster(device_class(), local("s1", "n1", 3))
    pods = [user_of(f"c{at}", name=f"p{at}") for at in range(3)]
    for at in range(3):
        cluster.store.put(claim(request(), name=f"c{at}"))
    cycles: list[CycleState] = []
    found: list[list[object]] = []
    for pod in pods:
        cycle, _ = cluster.filter(pod)
        assert cluster.plugin.reserve(cycle, pod, "n1").is_success
        cycles.append(cycle)
    for _ in range(2):
        tracker = cluster.handle.services.claim_tracker
        found.append([tracker.pending_allocation(f"uid-c{at}") for at in range(3)])
        for cycle, pod in zip(cycles, pods, strict=True):
            cluster.plugin.unreserve(cycle, pod, "n1")
        for cycle, pod in zip(cycles, pods, strict=True):
            assert cluster.plugin.reserve(cycle, pod, "n1").is_success
    assert found[0] == found[1]
    assert len({str(each) for each in found[0]}) == 3


_SELECTORS = (None, HERE, _IN_RACK, node_selector("rack", operator="Exists"))
_PENDING = replace(result("d1"), binding_conditions=("Attached",))

allocated = st.lists(
    st.tuples(st.sampled_from(_SELECTORS), st.sampled_from(["", "shared", "waits"])), max_size=3
)


@given(allocated, st.booleans(), st.lists(st.integers(0, 2), min_size=1, max_size=3, unique=True))
def test_allocated_claims_are_filtered_alike_for_one_node_and_all(
    claims: list[tuple[NodeSelector | None, str]], is_timed_out: bool, rows: list[int]
) -> None:
    """The same nodes are rejected, and the same claims are unavailable, in the same order."""
    nodes = [make_node("n1"), make_node("n2", labels={"rack": "a"}), make_node("n3")]
    table = make_snapshot(nodes).nodes.take(np.array(sorted(rows), np.intp))

    def state() -> DynamicResourcesState:
        every = []
        for at, (selector, kind) in enumerate(claims):
            found = allocation_of(_PENDING if kind == "waits" else "d1")
            found = replace(found, node_selector=selector)
            own = None if kind == "shared" else found
            one = ClaimInformation(claim(name=f"c{at}", allocation=own))
            one.shared = found if kind == "shared" else None
            every.append(one)
        return DynamicResourcesState(every, is_timed_out=lambda _claim: is_timed_out)

    together, singly = state(), state()
    expected = [singly.filter(node) for node in table.nodes]
    found = together.filter_all(table)
    assert expected == [found[row] for row in range(len(table))]
    names = [[one.claim.metadata.name for one in each.unavailable] for each in (together, singly)]
    assert names[0] == names[1]
