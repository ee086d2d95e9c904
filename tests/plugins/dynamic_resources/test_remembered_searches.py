"""Searches that are remembered, against searches that are made anew."""

from __future__ import annotations

from collections.abc import Sequence

from hypothesis import given, settings
from hypothesis import strategies as st

from kubesched.api.core import Node
from kubesched.api.resource import (
    AllocationResult,
    CounterSet,
    Device,
    DeviceCapacity,
    ResourceClaim,
    ResourceSlice,
)
from kubesched.api.resource import Counter as SharedCounter
from kubesched.framework.dra import AllocatedState, DeviceClasses
from kubesched.plugins.dynamic_resources.allocator import Allocator, NodeRejected
from kubesched.plugins.dynamic_resources.node_devices import Features
from kubesched.plugins.dynamic_resources.pools import PoolIndex
from kubesched.plugins.dynamic_resources.remembered_searches import RememberedSearches
from kubesched.plugins.dynamic_resources.requests import AllocationError
from kubesched.plugins.dynamic_resources.selection import DeviceMatcher
from kubesched.testing.builders import make_node
from plugins.dynamic_resources.objects import (
    DRIVER,
    claim,
    consumes,
    device,
    device_class,
    request,
    slice_of,
)
from plugins.dynamic_resources.test_allocator_twin import some_claims

NODES = (make_node("n1"), make_node("n2"))
CAPACITY = {"memory": DeviceCapacity(value="1Gi")}
COUNTERS = (CounterSet(name="set", counters={"memory": SharedCounter(value=2)}),)


def _devices(prefix: str, models: str, **fields: object) -> list[Device]:
    return [
        device(f"{prefix}{at}", {f"{DRIVER}/model": model}, **fields)
        for at, model in enumerate(models)
    ]


def _slices() -> list[ResourceSlice]:
    """A pool for each node, and those that both reach: plain, with counters, with shares."""
    return [
        slice_of(_devices("a", "abc"), "s1", pool="p1", node_name="n1"),
        slice_of(_devices("b", "ab"), "s2", pool="p2", node_name="n2"),
        slice_of(_devices("c", "bc"), "s3", pool="p3"),
        slice_of(
            _devices("d", "aa", consumes_counters=consumes(1)),
            "s4",
            pool="p4",
            count=2,
            all_nodes=True,
        ),
        slice_of(name="s5", pool="p4", count=2, shared_counters=COUNTERS),
        slice_of(
            _devices("e", "b", allow_multiple_allocations=True, capacity=CAPACITY), "s6", pool="p0"
        ),
    ]


class _Allocating:
    """Allocators for one pod after the other, with a memory and without."""

    def __init__(self) -> None:
        classes, self._index = DeviceClasses([device_class()]), PoolIndex(_slices())
        self._classes = classes
        self._searches = RememberedSearches(self._index, classes)

    def answer(
        self, state: AllocatedState, node: Node, claims: Sequence[ResourceClaim], *, remembers: bool
    ) -> tuple[AllocationResult, ...] | str | None:
        allocator = Allocator(
            state,
            self._classes,
            self._index,
            DeviceMatcher(),
            Features(),
            0,
            self._searches if remembers else None,
        )
        try:
            return allocator.allocate(node, claims)
        except (AllocationError, NodeRejected) as error:
            return str(error)


steps = st.lists(
    st.tuples(st.integers(0, 2), st.sampled_from(NODES), st.booleans(), st.booleans()), max_size=14
)


@settings(max_examples=150, deadline=None)
@given(st.lists(some_claims(), min_size=3, max_size=3), steps)
def test_what_is_remembered_is_what_a_new_search_finds(
    asked: list[list[ResourceClaim]], story: list[tuple[int, Node, bool, bool]]
) -> None:
    """While claims of three kinds are allocated on two nodes, and allocations end."""
    allocating, kept = _Allocating(), list[AllocationResult]()
    for which, node, takes, gives_back in story:
        state = AllocatedState()
        for allocation in kept:
            state.add(allocation, consumable=True)
        found = allocating.answer(state, node, asked[which], remembers=True)
        assert found == allocating.answer(state, node, asked[which], remembers=False)
        if takes and isinstance(found, tuple):
            kept += found
        if gives_back and kept:
            kept.pop(0)


def test_a_search_is_made_again_only_if_a_device_was_taken_or_given_back() -> None:
    """The very same results come back until then, for claims of any name."""
    allocating = _Allocating()
    free, other = AllocatedState(), AllocatedState()
    first = allocating.answer(free, NODES[0], [claim(request(), name="x")], remembers=True)
    again = allocating.answer(free, NODES[0], [claim(request(), name="y")], remembers=True)
    assert isinstance(first, tuple)
    assert first is again
    other.add(first[0], consumable=True)
    changed = allocating.answer(other, NODES[0], [claim(request(), name="z")], remembers=True)
    assert isinstance(changed, tuple)
    assert first != changed


def test_a_node_that_was_replaced_is_searched_again() -> None:
    """Labels decide which devices it reaches."""
    allocating, state = _Allocating(), AllocatedState()
    asked = [claim(request())]
    first = allocating.answer(state, NODES[0], asked, remembers=True)
    again = allocating.answer(state, make_node("n1"), asked, remembers=True)
    assert first == again
    assert first is not again
