"""A follower gets every change of an object in order, even if it is slow."""

from __future__ import annotations

import asyncio

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kubesched.apiserver.plain import Plain
from kubesched.apiserver.stored_object import StoredObject, stamp
from kubesched.cluster.server import Follower
from kubesched.cluster.store import Key, Store
from tests.loops import on_virtual_time

KIND = "pods"
WRITES = st.lists(
    st.tuples(st.sampled_from("abc"), st.sampled_from(("put", "delete", "pause"))), max_size=60
)


def _plain(stored: StoredObject) -> Plain:
    return stored.plain


def write(store: Store[StoredObject], name: str, what: str) -> None:
    """Create, update or delete an object, whichever is possible."""
    key = Key(KIND, "n", name)
    value = StoredObject({"metadata": {"namespace": "n", "name": name}})
    if store.find(key) is None:
        if what == "put":
            store.create(key, value)
    elif what == "put":
        store.update(key, value)
    else:
        store.delete(key)


@pytest.mark.parametrize("kept", [pytest.param(1000, id="in-time"), pytest.param(2, id="too-slow")])
@settings(max_examples=60, deadline=None)
@given(before=WRITES, writes=WRITES)
@on_virtual_time
async def test_changes_of_a_follower_are_consistent(
    kept: int, before: list[tuple[str, str]], writes: list[tuple[str, str]]
) -> None:
    """Each starts with the state of the last one, and the last has the store's."""
    store = Store(stamp, kept)
    known: dict[Key, Plain] = {}

    def record(key: Key, old: Plain | None, new: Plain | None) -> None:
        assert known.get(key) is old
        assert old is not new
        if new is None:
            del known[key]
        else:
            known[key] = new

    for name, what in before:
        write(store, name, what)
    follower = Follower(store, KIND, record, _plain)
    follower.start()
    for name, what in writes:
        if what == "pause":
            await asyncio.sleep(0.01)
        else:
            write(store, name, what)
    await asyncio.sleep(0.01)
    follower.stop()
    assert {key: one.plain for key, one in store.everything()} == known


@on_virtual_time
async def test_a_stopped_follower_gets_no_changes() -> None:
    """Earlier changes are dropped, too."""
    store = Store(stamp)
    heard: list[Key] = []
    follower = Follower(store, KIND, lambda key, _old, _new: heard.append(key), _plain)
    follower.start()
    write(store, "a", "put")
    follower.stop()
    follower.stop()
    await asyncio.sleep(0.01)
    write(store, "b", "put")
    await asyncio.sleep(0.01)
    assert [] == heard
