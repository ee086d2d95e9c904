"""The handler of an informer ends with the server's objects, whatever fails in between."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Coroutine
from contextlib import asynccontextmanager, suppress
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kubesched.api.core import Pod
from kubesched.api.meta import KubeObject
from kubesched.api.scheme import kind_of
from kubesched.client.informers import Informer, Informers
from kubesched.client.requests import UNFINISHED_PODS
from tests.loops import on_virtual_time

from .faulty_server import FAULTLESS, Faults, FaultyServer
from .follower import Follower

PODS = kind_of(Pod)


@asynccontextmanager
async def running(main: Coroutine[Any, Any, None]) -> Any:
    """Run something meanwhile, and stop it."""
    task = asyncio.create_task(main)
    try:
        yield task
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task


class World:
    """A server, an informer of its pods, and a follower."""

    def __init__(
        self, seed: int = 0, faults: Faults = FAULTLESS, field_selector: str = UNFINISHED_PODS
    ) -> None:
        self.server = FaultyServer(Random(seed), faults)
        self.follower = Follower()
        self.informer = Informer(self.server, PODS, self.follower, Random(seed), field_selector)


@asynccontextmanager
async def playing(**options: Any) -> AsyncIterator[World]:
    """Run an informer."""
    world = World(**options)
    async with running(world.informer.run()):
        yield world


def items_of(world: World) -> dict[tuple[str, str], KubeObject]:
    """Return the informer's objects by namespace and name."""
    return {(item.metadata.namespace, item.metadata.name): item for item in world.informer.items}


@on_virtual_time
async def test_events_of_a_watch() -> None:
    """Existing objects are added, then each change is reported with the old state."""
    async with playing() as world:
        world.server.put("a")
        world.server.put("b")
        await world.informer.wait_for_sync()
        world.server.put("a", app="x")
        world.server.put("c")
        world.server.delete("b")
        await asyncio.sleep(1)
    assert {"added a 2", "added b 3"} == set(world.follower.told[:2])
    assert ["updated a 4", "added c 5", "deleted b 6"] == world.follower.told[2:]
    assert world.follower.there == items_of(world)
    assert world.follower.there["default", "c"] is list(world.informer.items)[-1]


@on_virtual_time
async def test_objects_that_leave_the_selection() -> None:
    """They are reported as deleted, with the state that left it."""
    async with playing() as world:
        world.server.put("a", "Running")
        world.server.put("b", "Succeeded")
        await world.informer.wait_for_sync()
        world.server.put("a", "Failed")
        world.server.put("b", "Running")
        await asyncio.sleep(1)
    assert ["added a 2", "deleted a 4", "added b 5"] == world.follower.told


@on_virtual_time
async def test_is_synced_when_there_is_nothing() -> None:
    """An empty list is a list."""
    async with playing() as world:
        assert not world.informer.has_synced
        await world.informer.wait_for_sync()
    assert world.informer.has_synced


@pytest.mark.parametrize("is_streaming", [True, False], ids=["streaming", "paging"])
@on_virtual_time
async def test_relist_after_missed_events(is_streaming: bool) -> None:
    """Deletions come first, with the last known state; unchanged objects are not reported."""
    async with playing() as world:
        server = world.server
        for name in "abc":
            server.put(name)
        await world.informer.wait_for_sync()
        await asyncio.sleep(1)
        server.faults = Faults(refused=1.0, cut=1.0, streams_initial_events=is_streaming)
        server.put("b", app="x")
        await asyncio.sleep(1)
        server.delete("a")
        server.put("d")
        server.forget()
        server.faults = Faults(streams_initial_events=is_streaming)
        await asyncio.sleep(120)
    assert ["updated b 5", "vanished a 2", "added d 7"] == world.follower.told[3:]


@on_virtual_time
async def test_relists_yield_to_other_tasks() -> None:
    """Thousands of objects are reported in small batches."""
    turns: list[None] = []

    async def count() -> None:
        while True:
            turns.append(None)
            await asyncio.sleep(0)

    async with playing() as world:
        for at in range(2000):
            world.server.put(f"p{at:04}")
        async with running(count()):
            await world.informer.wait_for_sync()
    assert 2000 == len(world.follower.there)
    assert len(turns) >= 2000 // 128 + 2000 // 64


@on_virtual_time
async def test_handlers_that_raise() -> None:
    """The exception ends the informers."""

    class Raising(Follower):
        def added(self, item: KubeObject) -> None:
            raise AssertionError(item.metadata.name)

    server = FaultyServer(Random(0))
    server.put("a")
    informers = Informers(server, Raising(), Random(0))
    informers.add(PODS)
    with pytest.raises(ExceptionGroup) as caught:
        await informers.run()
    assert ["a"] == [str(error) for error in caught.value.exceptions]


@on_virtual_time
async def test_informers_are_synced_when_all_are() -> None:
    """There is one informer per kind, even if it is requested twice."""
    server = FaultyServer(Random(0))
    server.put("a")
    informers = Informers(server, Follower(), Random(0))
    informers.add(PODS)
    informers.add(PODS, UNFINISHED_PODS)
    before = informers.has_synced
    async with running(informers.run()):
        await informers.wait_for_sync()
        assert (False, True) == (before, informers.has_synced)
    assert ["pods"] == list(informers.by_name)


FAULTS = st.builds(
    Faults,
    refused=st.sampled_from((0.0, 0.2)),
    busy=st.sampled_from((0.0, 0.2)),
    broken=st.sampled_from((0.0, 0.2)),
    failing=st.sampled_from((0.0, 0.2)),
    cut=st.sampled_from((0.0, 0.1)),
    torn=st.sampled_from((0.0, 0.1)),
    error_events=st.sampled_from((0.0, 0.1)),
    bookmarks=st.sampled_from((0.0, 0.3)),
    streams_initial_events=st.booleans(),
)


@pytest.mark.slow
@settings(max_examples=60)
@given(seed=st.integers(0, 2**32), faults=FAULTS, pause=st.sampled_from((0.0, 0.3)))
@on_virtual_time
async def test_random_histories(seed: int, faults: Faults, pause: float) -> None:
    """After any history of changes and faults, the handler has what the server has."""
    random = Random(seed)
    async with playing(seed=seed, faults=faults) as world:
        server = world.server
        server.paused_seconds = pause
        for _ in range(random.randrange(120)):
            _change(server, random)
            if random.random() < 0.5:
                await asyncio.sleep(random.choice((0.0, 0.01, 0.5, 3.0, 40.0, 700.0)))
        server.faults = Faults(streams_initial_events=faults.streams_initial_events)
        await asyncio.sleep(3600)
    expected = {
        ("default", name): pod["metadata"]["resourceVersion"]
        for name, pod in world.server.pods.items()
        if pod["status"]["phase"] == "Pending"
    }
    there = world.follower.there
    assert expected == {key: pod.metadata.resource_version for key, pod in there.items()}
    assert there == items_of(world)
    assert world.informer.has_synced


def _change(server: FaultyServer, random: Random) -> None:
    name = f"p{random.randrange(12)}"
    roll = random.random()
    if roll < 0.25 and name in server.pods:
        server.delete(name)
    elif roll < 0.3:
        server.forget()
    else:
        phase = "Succeeded" if roll > 0.9 else "Pending"
        server.put(name, phase, at=str(random.randrange(3)))
