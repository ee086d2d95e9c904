"""Watches and lists agree: who follows a watch knows what a list shows."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubesched.apiserver.listing import list_objects, list_options
from kubesched.apiserver.presentation import PLAIN, Presentation
from kubesched.apiserver.request import ApiRequest
from kubesched.apiserver.status import StatusError
from kubesched.apiserver.stored_object import StoredObject, stamp
from kubesched.apiserver.watching import WatchStream
from kubesched.cluster.store import Key, Store
from kubesched.simulator.virtual_loop import run
from tests.loops import on_virtual_time

from .verdicts import served

NOW = datetime(2024, 5, 1, tzinfo=UTC)
WRITES = st.lists(
    st.tuples(
        st.sampled_from(("a", "b", "c", "d")),
        st.sampled_from(("x", "y")),
        st.sampled_from(("red", "blue", None)),
    ),
    max_size=25,
)
Write = tuple[str, str, str | None]
CONFIG_MAPS = served("configmaps")


def put(store: Store[StoredObject], write: Write) -> None:
    """Create or change an object; without a colour, delete it."""
    name, namespace, colour = write
    key = Key("configmaps", namespace, name)
    metadata = {"name": name, "namespace": namespace, "labels": {"colour": colour}}
    stored = StoredObject({"kind": "ConfigMap", "apiVersion": "v1", "metadata": metadata})
    exists = store.find(key) is not None
    if colour is None:
        if exists:
            store.delete(key)
    elif exists:
        store.update(key, stored)
    else:
        store.create(key, stored)


def new_store(changes_kept: int = 1000) -> Store[StoredObject]:
    """An empty store."""
    return Store(stamp, changes_kept)


def opened(store: Store[StoredObject], namespace: str = "", **query: str) -> AsyncGenerator[bytes]:
    """Open a watch."""
    parameters = {name: (value,) for name, value in query.items()}
    options = list_options(ApiRequest("GET", "/", parameters), CONFIG_MAPS, is_watch=True)
    shown = Presentation(CONFIG_MAPS, PLAIN, "", lambda: NOW)
    timeout = options.timeout_seconds or 3600
    return WatchStream(store, CONFIG_MAPS, namespace, options, shown, timeout).lines()


async def events(lines: AsyncGenerator[bytes]) -> list[dict[str, Any]]:
    """Return all events until the watch ends."""
    return [json.loads(line) async for part in lines for line in part.splitlines()]


async def names(store: Store[StoredObject], namespace: str = "", **query: str) -> list[str]:
    """Return the objects of a list."""
    parameters = {name: (value,) for name, value in query.items()}
    options = list_options(ApiRequest("GET", "/", parameters), CONFIG_MAPS, is_watch=False)
    found = await list_objects(store, CONFIG_MAPS, namespace, options)
    return [shown_name(one.plain) for one in found.items]


def shown_name(plain: dict[str, Any]) -> str:
    """Return a name that identifies a state of an object."""
    metadata = plain["metadata"]
    return f"{metadata['namespace']}/{metadata['name']}@{metadata['resourceVersion']}"


@given(WRITES, WRITES, st.sampled_from(("", "x")), st.sampled_from(("", "colour=red")))
@on_virtual_time
async def test_a_watch_equals_a_list(
    before: list[Write], after: list[Write], namespace: str, selector: str
) -> None:
    """Applying all events to an empty set gives the list of the same selection."""
    store = new_store()
    for write in before:
        put(store, write)
    query = {"labelSelector": selector} if selector else {}
    lines = opened(store, namespace, timeoutSeconds="10", **query)
    seen = asyncio.create_task(events(lines))
    for number, write in enumerate(after):
        put(store, write)
        if number % 3 == 0:
            await asyncio.sleep(0.1)
    known: dict[tuple[str, str], str] = {}
    for event in await seen:
        metadata = event["object"]["metadata"]
        key = metadata["namespace"], metadata["name"]
        if event["type"] == "DELETED":
            del known[key]
        else:
            assert (event["type"] == "ADDED") == (key not in known)
            known[key] = shown_name(event["object"])
    assert sorted(await names(store, namespace, **query)) == sorted(known.values())


@given(WRITES, WRITES, st.integers(1, 4))
def test_pages_show_one_state(before: list[Write], between: list[Write], limit: int) -> None:
    """All pages together are the list at the time of the first, whatever is written meanwhile."""

    async def turn() -> tuple[list[str], list[str]]:
        store = new_store()
        for write in before:
            put(store, write)
        whole = await names(store)
        left = list(between)
        pages: list[str] = []
        query = {"limit": str(limit)}
        while True:
            parameters = {name: (value,) for name, value in query.items()}
            options = list_options(ApiRequest("GET", "/", parameters), CONFIG_MAPS, is_watch=False)
            page = await list_objects(store, CONFIG_MAPS, "", options)
            pages += [shown_name(one.plain) for one in page.items]
            if not page.continue_token:
                return whole, pages
            assert len(page.items) == limit
            query["continue"] = page.continue_token
            if left:
                put(store, left.pop())

    whole, pages = run(turn())
    assert whole == pages


@on_virtual_time
async def test_lists_are_sorted_by_path() -> None:
    """Lists have the order of upstream's keys, in which a namespace ends with a slash."""
    store = new_store()
    for namespace in ("a-b", "a"):
        for name in ("z", "y"):
            put(store, (name, namespace, "red"))
    assert [name.partition("@")[0] for name in await names(store)] == [
        "a-b/y",
        "a-b/z",
        "a/y",
        "a/z",
    ]


@on_virtual_time
async def test_a_list_waits_for_a_version() -> None:
    """A list waits for its version, and times out if it does not come."""
    store = new_store()
    asyncio.get_running_loop().call_later(1, put, store, ("a", "x", "red"))
    assert await names(store, resourceVersion="2")
    with pytest.raises(StatusError, match="Too large resource version: 9, current: 2") as late:
        await names(store, resourceVersion="9")
    assert late.value.code == 504


@on_virtual_time
async def test_a_watch_from_an_old_version() -> None:
    """A watch from a version that was dropped gets an error and ends."""
    store = new_store()
    put(store, ("a", "x", "red"))
    store.compact_all()
    (event,) = await events(opened(store, resourceVersion="1"))
    assert (event["type"], event["object"]["code"]) == ("ERROR", 410)


@on_virtual_time
async def test_a_watch_that_falls_behind() -> None:
    """A client that reads too slowly gets an error."""
    store = new_store(changes_kept=2)
    lines = opened(store, timeoutSeconds="5")
    put(store, ("a", "x", "red"))
    first = json.loads(await anext(lines))
    for _ in range(10):
        put(store, ("a", "x", "blue"))
    assert [first["type"], *(event["type"] for event in await events(lines))] == ["ADDED", "ERROR"]


@on_virtual_time
async def test_bookmarks_come_every_minute() -> None:
    """A long watch gets a bookmark a minute, as long as something has changed, and a last one."""
    store = new_store()
    loop = asyncio.get_running_loop()
    query = {"timeoutSeconds": "200", "allowWatchBookmarks": "true", "resourceVersion": "1"}
    lines = opened(store, labelSelector="never=matches", **query)
    loop.call_later(30, put, store, ("a", "x", "red"))
    loop.call_later(150, put, store, ("a", "x", "blue"))
    assert [(json.loads(line)["type"], round(loop.time())) async for line in lines] == [
        ("BOOKMARK", 60),
        ("BOOKMARK", 180),
    ]


@on_virtual_time
async def test_a_watch_leaves_nothing_behind() -> None:
    """A closed watch gets no more events."""
    store = new_store()
    lines = opened(store, allowWatchBookmarks="true")
    await anext(lines)
    await lines.aclose()
    assert len(store._log("configmaps").watches) == 0
