"""Cached searches, compared with new ones."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

import msgspec
import pytest
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
from kubesched.client.watch_events import SharedParts
from kubesched.framework.dra.claim_tracker import AllocatedState
from kubesched.framework.dra.devices import DeviceClasses
from kubesched.framework.dra.pools import AllocationError, PoolIndex
from kubesched.plugins.dynamic_resources.allocator import Allocator, NodeRejected
from kubesched.plugins.dynamic_resources.extended_resources import NO_CLAIM
from kubesched.plugins.dynamic_resources.node_devices import (
    DeviceMatcher,
    Features,
    UnusableDevices,
)
from kubesched.plugins.dynamic_resources.remembered_searches import (
    NOT_SEARCHED,
    SOLVED,
    UNSOLVED,
    ClaimSearch,
    NodeResults,
    RememberedSearches,
)
from kubesched.testing.builders import make_node, make_table
from tests.plugins.dynamic_resources.objects import (
    CLASS,
    DRIVER,
    allocated_state,
    allocation_of,
    allocator,
    claim,
    consumes,
    device,
    device_class,
    node_selector,
    request,
    result,
    selectors,
    slice_of,
)
from tests.plugins.dynamic_resources.test_allocator_twin import some_claims

# The last two have no devices of their own.
NODES = tuple(make_node(f"n{at}") for at in range(1, 5))
Answer = tuple[AllocationResult, ...] | str | None
CAPACITY = {"memory": DeviceCapacity(value="1Gi")}
COUNTERS = (CounterSet(name="set", counters={"memory": SharedCounter(value=2)}),)


def _devices(prefix: str, models: str, **fields: object) -> list[Device]:
    return [device(f"{prefix}{at}", {"model": model}, **fields) for at, model in enumerate(models)]


def _slices_of(driver: str, own: str = "") -> list[ResourceSlice]:
    """A pool for each node, and those that all reach: plain, with counters, with shares.

    A device of the plain one binds its pod to the node.
    """
    pools = [f"{own}p{at}" for at in range(5)]
    plain = [device("c0", {"model": "b"}), device("c1", {"model": "c"}, binds_to_node=True)]
    counting = _devices("d", "aa", consumes_counters=consumes(1))
    sharing = _devices("e", "b", allow_multiple_allocations=True, capacity=CAPACITY)
    return [
        slice_of(_devices("a", "abc"), f"{own}s1", driver=driver, pool=pools[1], node_name="n1"),
        slice_of(_devices("b", "ab"), f"{own}s2", driver=driver, pool=pools[2], node_name="n2"),
        slice_of(plain, f"{own}s3", driver=driver, pool=pools[3]),
        slice_of(counting, f"{own}s4", driver=driver, pool=pools[4], count=2, all_nodes=True),
        slice_of((), f"{own}s5", driver=driver, pool=pools[4], count=2, shared_counters=COUNTERS),
        slice_of(sharing, f"{own}s6", driver=driver, pool=pools[0]),
    ]


def _with_shared_parts(slices: Sequence[ResourceSlice]) -> list[ResourceSlice]:
    """The slices as a watch delivers them: equal devices of two drivers are one object."""
    parts, shared = SharedParts(ResourceSlice), list[ResourceSlice]()
    for item in slices:
        shared.append(msgspec.json.decode(msgspec.json.encode(item), type=ResourceSlice))
        parts.share(shared[-1])
    return shared


class _Allocating:
    """Allocators for one pod after the other, with a memory and without."""

    def __init__(self, slices: Sequence[ResourceSlice]) -> None:
        """Only kept searches see slices that share Device objects."""
        self._slices = slices
        self._classes = [device_class(CLASS, f'device.driver == "{DRIVER}"')]
        self._index, self._matcher = PoolIndex(_with_shared_parts(slices)), DeviceMatcher()
        self.state = AllocatedState()
        self._searches = RememberedSearches(self.state, self._index)
        self._table = make_table(NODES)

    def answers(
        self, claims: Sequence[ResourceClaim], without: AllocatedState | None = None
    ) -> list[Answer]:
        """Per node what one pod's allocator finds, or one that remembers nothing."""
        if without is not None:
            new = allocator(self._slices, classes=self._classes, allocated=without)
            return [_answer(partial(new.allocate, node, claims)) for node in NODES]
        remembering = Allocator(
            self.state, DeviceClasses(self._classes), self._index, self._matcher, Features(), 0
        )
        search = ClaimSearch(NO_CLAIM, claims, self._searches.of(claims))
        # Asked first, to see that what it knows stays right; then again with all answers.
        before = search.outcomes(self._table, remembering).tolist()
        found = [_answer(partial(search.on, node, remembering)) for node in NODES]
        after = search.outcomes(self._table, remembering).tolist()
        for answer, first, last in zip(found, before, after, strict=True):
            outcome = UNSOLVED if answer is None else SOLVED
            assert isinstance(answer, str) or outcome == last
            assert first in (last, NOT_SEARCHED)
        return found


def _answer(search: Callable[[], Answer]) -> Answer:
    try:
        return search()
    except (AllocationError, NodeRejected) as error:
        return str(error)


steps = st.lists(
    st.tuples(st.integers(0, 2), st.integers(0, 3), st.booleans(), st.booleans()), max_size=14
)


@pytest.mark.slow
@settings(max_examples=150, deadline=None)
@given(st.lists(some_claims(), min_size=3, max_size=3), steps, st.booleans())
def test_what_is_remembered_is_what_a_new_search_finds(
    asked: list[list[ResourceClaim]], story: list[tuple[int, int, bool, bool]], has_rival: bool
) -> None:
    """While claims of three kinds are allocated on four nodes, and allocations end.

    Another driver may have the very same devices; the class is for those of one driver.
    """
    slices = [*_slices_of(DRIVER), *(_slices_of("a.example.com", "rival-") if has_rival else ())]
    allocating, kept = _Allocating(slices), list[AllocationResult]()
    for which, row, takes, gives_back in story:
        found = allocating.answers(asked[which])
        assert found == allocating.answers(asked[which], without=allocated_state(*kept))
        taken = found[row]
        if takes and isinstance(taken, tuple):
            kept += taken
            for allocation in taken:
                allocating.state.count(allocation, 1, consumable=True)
        if gives_back and kept:
            allocating.state.count(kept.pop(0), -1, consumable=True)


def test_a_search_is_made_again_only_if_a_device_was_taken_or_given_back() -> None:
    """The very same results come back until then, for claims of any name."""
    allocating = _Allocating(_slices_of(DRIVER))
    first, *_ = allocating.answers([claim(request(), name="x")])
    again, *_ = allocating.answers([claim(request(), name="y")])
    assert isinstance(first, tuple)
    assert first is again
    allocating.state.count(first[0], 1, consumable=True)
    changed, *_ = allocating.answers([claim(request(), name="z")])
    assert isinstance(changed, tuple)
    assert first != changed


def test_only_nodes_whose_slices_changed_are_searched_again() -> None:
    """Also where the nodes of a group had the same devices."""
    slices = _slices_of(DRIVER)
    state, claims = AllocatedState(), [claim(request(), request("s"))]
    one = allocator(slices, allocated=state)
    searches = RememberedSearches(state, one.index)

    def answers() -> list[Answer]:
        search = ClaimSearch(NO_CLAIM, claims, searches.of(claims))
        return [search.on(node, one) for node in NODES]

    first = answers()
    changed = slice_of(_devices("f", "aa"), "s2", pool="p2", node_name="n2", generation=2)
    assert searches.update({"s2": changed}, len(NODES))
    again = answers()
    assert [True, False, True, True] == [a is b for a, b in zip(first, again, strict=True)]
    new = allocator([slices[0], changed, *slices[2:]], allocated=state)
    assert again == [new.allocate(node, claims) for node in NODES]
    assert not searches.update({"s3": None}, len(NODES))


def test_a_node_with_other_labels_is_searched_again() -> None:
    """Labels decide which devices it reaches; a heartbeat does not change them."""
    state = AllocatedState()
    one, claims = allocator(_slices_of(DRIVER), allocated=state), [claim(request())]
    searches = RememberedSearches(state, one.index)
    nodes = NODES[0], make_node("n1"), make_node("n1", labels={"a": "b"})
    first, same, other = (
        ClaimSearch(NO_CLAIM, claims, searches.of(claims)).on(node, one) for node in nodes
    )
    assert first is same
    assert first is not other
    assert first == other


def test_pools_of_two_drivers_that_share_counters_are_searched_again() -> None:
    """As upstream, the counters are those of the pool of the node that is asked first."""

    def pool(driver: str, node_name: str, total: int) -> list[ResourceSlice]:
        counters = CounterSet(name="set", counters={"memory": SharedCounter(value=total)})
        parts = _devices(node_name, "aaa", consumes_counters=consumes(1))
        return [
            slice_of((), f"{driver}-0", driver=driver, count=2, shared_counters=(counters,)),
            slice_of(parts, f"{driver}-1", driver=driver, count=2, node_name=node_name),
        ]

    plain = slice_of(_devices("z", "a"), "plain", pool="plain", node_name="n2")
    slices = [*pool("a.example.com", "n1", 2), *pool("b.example.com", "n2", 1), plain]
    state = AllocatedState()
    searches = RememberedSearches(state, PoolIndex(slices))
    asked = [claim(request(count=2))]

    def answers(results: NodeResults) -> list[Answer]:
        one, search = allocator(slices, allocated=state), ClaimSearch(NO_CLAIM, asked, results)
        return [_answer(partial(search.on, node, one)) for node in NODES]

    answers(searches.of(asked))
    state.count(allocation_of(result("z0", "plain")), 1, consumable=True)
    assert answers(NodeResults()) == answers(searches.of(asked))


def test_one_search_serves_all_nodes_with_the_same_devices() -> None:
    """Also after a device was allocated, and for nodes that were not asked about since."""
    one, table, searched = allocator([slice_of(_devices("a", "aa"))]), make_table(NODES), []
    state, claims = AllocatedState(), [claim(request())]
    searches, allocate = RememberedSearches(state, one.index), one.allocate

    def counting(
        node: Node, claims: Sequence[ResourceClaim], unusable: UnusableDevices | None = None
    ) -> tuple[AllocationResult, ...] | None:
        searched.append(node.metadata.name)
        return allocate(node, claims, unusable)

    one.allocate = counting  # type: ignore[method-assign]  # to count the searches
    search = ClaimSearch(NO_CLAIM, claims, searches.of(claims))
    assert [NOT_SEARCHED] * 4 == search.outcomes(table, one).tolist()
    for node in NODES:
        assert search.on(node, one)
    assert ["n1"] == searched
    for taken in ("a0", "a1"):
        state.count(allocation_of(taken), 1, consumable=True)
        search = ClaimSearch(NO_CLAIM, claims, searches.of(claims))
        assert [SOLVED] * 4 == search.outcomes(table, one).tolist()
    assert ["n1"] * 3 == searched


@pytest.mark.parametrize("model", ["a", "b"])
def test_nodes_may_see_different_devices_of_one_id(model: str) -> None:
    """While a pool is updated, a node may see an older slice, as it does upstream."""
    zones = [make_node(f"n{at}", labels={"zone": zone}) for at, zone in enumerate("ab")]
    slices = [
        slice_of(
            [device("d", {"model": zone})],
            f"s{zone}",
            generation=generation,
            node_selector=node_selector("zone", zone),
        )
        for generation, zone in enumerate("ab")
    ]
    one = allocator(slices)
    claims = [
        claim(request(selectors=selectors(f'device.attributes["{DRIVER}"].model == "{model}"')))
    ]
    for asked in ([claim(request())], claims):
        searches = RememberedSearches(AllocatedState(), one.index)
        search = ClaimSearch(NO_CLAIM, asked, searches.of(asked))
        assert [one.allocate(node, asked) for node in zones] == [
            search.on(node, one) for node in zones
        ]
