"""Pools: generations, missing slices, contradictions, node selection."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubesched.api.resource import Counter, CounterSet, DeviceCounterConsumption, ResourceSlice
from kubesched.framework.dra.pools import AllocationError, NodePools, Pool, PoolIndex
from kubesched.testing.builders import make_node, make_table
from tests.plugins.dynamic_resources.objects import DRIVER, device, node_selector, slice_of

NODE = make_node("n1", labels={"zone": "a"})


def pools(*slices: ResourceSlice, partitionable: bool = True) -> tuple[Pool, ...]:
    """The pools of the node."""
    return PoolIndex(slices, partitionable=partitionable).of(NODE).pools


def names(pool: Pool) -> list[str]:
    """The devices of a pool."""
    return [one.name for item in pool.slices for one in item.spec.devices]


@pytest.mark.parametrize(
    ("where", "is_there"),
    [
        pytest.param({"node_name": "n1"}, True, id="named"),
        pytest.param({"node_name": "n2"}, False, id="other-named"),
        pytest.param({"all_nodes": True}, True, id="all"),
        pytest.param({"node_selector": node_selector("zone", "a")}, True, id="selected"),
        pytest.param({"node_selector": node_selector("zone", "b")}, False, id="not-selected"),
        pytest.param({"all_nodes": None}, False, id="nothing-said"),
    ],
)
def test_slices_for_a_node(where: dict[str, object], is_there: bool) -> None:
    """A slice is for the nodes that it selects; without a selection, for none."""
    found = pools(slice_of([device("d0")], **where))  # type: ignore[arg-type]  # as given
    assert is_there == bool(found)


def test_devices_that_choose_their_nodes() -> None:
    """A slice whose devices choose is there if one of them chooses the node."""
    here, there = device("x", node_name="n1"), device("y", node_selector=node_selector("zone", "b"))
    assert pools(slice_of([here, there], per_device_node_selection=True))
    assert not pools(slice_of([there], per_device_node_selection=True))


def test_only_the_newest_generation_counts() -> None:
    """Older slices are ignored."""
    old = slice_of([device("old")], "a", generation=1)
    new = slice_of([device("new")], "b", generation=2)
    for order in ((old, new), (new, old)):
        (pool,) = pools(*order)
        assert ["new"] == names(pool)


def test_pool_is_gone_where_a_newer_generation_has_nothing() -> None:
    """A node has no pool if the newest generation has nothing for it."""
    old = slice_of([device("old")], "a", generation=1, count=2)
    new = slice_of([device("new")], "b", generation=2, node_name="n2")
    assert () == pools(old, new)


def test_incomplete_pool() -> None:
    """With missing slices, the pool exists but provides nothing."""
    (pool,) = pools(slice_of([device("d0")], count=2))
    assert pool.is_incomplete
    assert [] == names(pool)


def test_slices_for_other_nodes_complete_a_pool() -> None:
    """A pool is complete if all its slices exist, wherever they are for."""
    here = slice_of([device("x")], "a", count=2, node_name="n1")
    there = slice_of([device("y")], "b", count=2, node_name="n2")
    (pool,) = pools(here, there)
    assert not pool.is_incomplete
    assert ["x"] == names(pool)
    assert (there,) == pool.slices_elsewhere


def test_invalid_pools() -> None:
    """Device names twice, counter sets twice, counters that are not there."""
    stock = CounterSet(name="set", counters={"memory": Counter(value=1)})
    unknown = DeviceCounterConsumption(counter_set="set", counters={"cpu": Counter(value=1)})
    counters = slice_of((), "counters", count=2, shared_counters=(stock,))
    assert pools(slice_of([device("x"), device("x")]))[0].is_invalid
    twice = slice_of((), shared_counters=(stock, stock))
    assert pools(twice)[0].is_invalid
    eats = slice_of([device("x", consumes_counters=(unknown,))], "devices", count=2)
    assert pools(counters, eats)[0].is_invalid


def test_shared_counters_are_seen_from_every_node() -> None:
    """A slice of counters belongs to its pool on every node."""
    stock = CounterSet(name="set", counters={"memory": Counter(value=1)})
    counters = slice_of((), "counters", count=2, shared_counters=(stock,), node_name="n2")
    (pool,) = pools(counters, slice_of([device("x")], "devices", count=2, node_name="n1"))
    assert {"set"} == pool.counter_sets.keys()
    assert () == pools(counters, partitionable=False)


def test_pools_of_counters_without_devices_for_the_node() -> None:
    """They are not listed, so that nodes with counters of their own do not list each other's.

    As upstream, pools that cannot be used are listed: they end a search for all devices.
    """
    stock = CounterSet(name="set", counters={"memory": Counter(value=1)})
    own = slice_of([device("x")], "x", count=1, node_name="n1")
    counters = slice_of((), "c", pool="p2", count=2, shared_counters=(stock,), node_name="n2")
    there = slice_of([device("y")], "y", pool="p2", count=2, node_name="n2")
    assert ["p1"] == [pool.id[1] for pool in pools(own, counters, there)]
    (_, incomplete) = pools(own, counters)
    assert incomplete.is_incomplete
    assert ["p1"] == [pool.id[1] for pool in pools(own, counters, partitionable=False)]


def test_order_of_pools() -> None:
    """Driver and name decide; pools with binding conditions are last."""
    found = pools(
        slice_of([device("a", binding_conditions=("ready",))], "a", pool="a"),
        slice_of([device("c")], "c", pool="c"),
        slice_of([device("b")], "b", pool="b"),
        slice_of([device("z")], "z", pool="z", driver="a.example.com"),
    )
    assert [
        ("a.example.com", "z"),
        (DRIVER, "b"),
        (DRIVER, "c"),
        (DRIVER, "a"),
    ] == [pool.id for pool in found]


def test_unreadable_selector_is_an_error() -> None:
    """As upstream, an invalid selector is an error."""
    broken = slice_of([device("x")], node_selector=node_selector("zone", operator="Near"))
    with pytest.raises(AllocationError, match=r"^failed to perform node selection for slice s1: "):
        pools(broken)


# Three nodes with a label that slices may select.
NODES = tuple(
    make_node(f"n{at}", labels={"zone": zone}) for at, zone in enumerate(("a", "b", "b"), 1)
)
STOCK = (CounterSet(name="set", counters={"memory": Counter(value=1)}),)


@st.composite
def some_slices(draw: st.DrawFn, name: str) -> ResourceSlice:
    """A slice, mostly one that names its node."""
    fields: dict[str, Any] = draw(
        st.sampled_from(
            [
                *({"node_name": f"n{at}"} for at in (1, 2, 3)),
                *({"node_name": f"n{at}", "shared_counters": STOCK} for at in (1, 2)),
                {"all_nodes": True, "shared_counters": STOCK},
                {"node_selector": node_selector("zone", "b", "c")},
                {"node_selector": node_selector("zone", "a", operator="NotIn")},
            ]
        )
    )
    return slice_of(
        () if "shared_counters" in fields else [device(draw(st.sampled_from("xy")))],
        name,
        driver=draw(st.sampled_from([DRIVER, "a.example.com"])),
        pool=draw(st.sampled_from(["p1", "p2"])),
        generation=draw(st.sampled_from([1, 1, 2])),
        count=draw(st.sampled_from([1, 1, 2])),
        **fields,
    )


changes = st.lists(
    st.sampled_from("abcd").flatmap(
        lambda name: st.tuples(st.just(name), st.none() | some_slices(name))
    ),
    max_size=3,
)


def sorted_pools(found: NodePools) -> list[tuple[Pool, set[str]]]:
    """The pools without the order of slices elsewhere, which are only counted."""
    return [
        (replace(pool, slices_elsewhere=()), {one.metadata.name for one in pool.slices_elsewhere})
        for pool in found.pools
    ]


@given(st.lists(changes, max_size=6), st.booleans())
def test_an_updated_index_is_like_a_new_one(
    story: list[list[tuple[str, ResourceSlice | None]]], partitionable: bool
) -> None:
    """It has the same pools, and those of nodes that are not concerned are as before."""
    slices, table = dict[str, ResourceSlice | None](), make_table(NODES)
    kept = PoolIndex((), partitionable=partitionable)
    for step in story:
        before = [kept.of(node) for node in NODES]
        slices |= dict(step)
        concerned = kept.update(dict(step), len(NODES))
        stored = [item for item in slices.values() if item is not None]
        new = PoolIndex(stored, partitionable=partitionable)
        if concerned is None:
            kept = new
        for node, previous in zip(NODES, before, strict=True):
            assert sorted_pools(new.of(node)) == sorted_pools(kept.of(node))
            if concerned is not None and node.metadata.name not in concerned:
                assert previous is kept.of(node)
        assert new.shares_counters == kept.shares_counters
        assert new.without_devices(table).tolist() == kept.without_devices(table).tolist()


def test_all_nodes_are_concerned_if_a_pool_becomes_incomplete() -> None:
    """Here the pool's counters name no node, and its devices do."""
    counters = slice_of((), "counters", count=2, all_nodes=True, shared_counters=STOCK)
    index = PoolIndex([counters, slice_of([device("x")], "there", count=2, node_name="n1")])
    assert index.of(NODES[1]).pools == ()
    assert index.update({"there": None}, len(NODES)) is None


def test_nodes_with_devices_of_their_own_do_not_concern_others() -> None:
    """They may come and go without a new index, until most of what it has is outdated."""
    index = PoolIndex([slice_of([device("x")], "here", pool="p1", node_name="n1")])
    known = index.of(NODE)
    for at in range(500):
        for new in (slice_of([device("y")], "there", pool="p2", node_name="n2"), None):
            assert ["n2"] == list(index.update({"there": new}, 2) or ()), at
    assert known is index.of(NODE)
    there = slice_of([device("y")], "there", pool="p2", node_name="n2")
    while index.update({"there": there}, 2):
        at += 1
    assert 505 > at


def test_slices_that_select_their_nodes_are_found_by_label() -> None:
    """Others are asked about each node. The order of pools stays."""
    found = [
        slice_of([device(value)], f"s{at}", pool=f"p{at}", node_selector=selector)
        for at, (value, selector) in enumerate(
            [
                ("a", node_selector("zone", "a", "b")),
                ("not-a", node_selector("zone", "a", operator="NotIn")),
                ("b", node_selector("zone", "b", "b")),
                ("other", node_selector("rack", "a")),
            ]
        )
    ]
    there = PoolIndex(found).of(make_node("n2", labels={"zone": "b"})).pools
    assert ["a", "not-a", "b"] == [name for pool in there for name in names(pool)]


def test_nodes_with_the_same_slices_of_a_pool_share_it() -> None:
    """Unless a slice or device names nodes."""
    own = slice_of([device("a")], "a", pool="a", node_name="n1")
    common, devices = slice_of([device("b")], "b", pool="b"), [device("c", all_nodes=True)]
    choosing = slice_of(devices, "c", pool="c", per_device_node_selection=True)
    index = PoolIndex([own, common, choosing])
    here, there = (index.of(node) for node in NODES[:2])
    assert [False, True, False] == [pool.is_common for pool in here.pools]
    assert here.pools[1] is there.pools[0]
    assert here.candidates[1] is there.candidates[0]
    assert here.pools[2] is not there.pools[1]
