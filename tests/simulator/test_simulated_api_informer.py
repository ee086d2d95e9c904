"""Followers of an informer end with the server's objects, whatever fails in between."""

from __future__ import annotations

import asyncio
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kubesched.api.meta import KubeObject
from kubesched.cluster.store import Store
from kubesched.simulator.object_server import ObjectServer
from kubesched.simulator.simulated_api import SimulatedInformer
from kubesched.testing.builders import make_pod
from tests.client.follower import Follower
from tests.loops import on_virtual_time


def _start(server: ObjectServer, follower: Follower, latency: float = 1.0) -> SimulatedInformer:
    informer = SimulatedInformer(server.store, "pods", follower, lambda: latency)
    informer.start()
    return informer


@on_virtual_time
async def test_an_informer_reports_the_list_and_changes() -> None:
    """The list at once, changes after the latency."""
    follower = Follower()
    server = ObjectServer(asyncio.get_running_loop().time)
    server.create(make_pod("a"))
    informer = _start(server, follower)
    was_current = [informer.is_current]
    await asyncio.sleep(10)
    server.create(make_pod("b"))
    was_current.append(informer.is_current)
    assert [True, False] == was_current
    await asyncio.sleep(0.5)
    server.bind("default", "a", "", "node-1")
    await asyncio.sleep(5)
    server.delete_pod("default", "b")
    await asyncio.sleep(5)
    assert follower.calls == [
        (0.0, "added", "a"),
        (11.0, "added", "b"),
        (11.0, "updated", "a"),
        (16.5, "updated", "b"),
        (16.5, "deleted", "b"),
    ]


@on_virtual_time
async def test_a_finished_pod_is_reported_as_deleted() -> None:
    """Its deletion is not reported again."""
    follower = Follower()
    server = ObjectServer(asyncio.get_running_loop().time)
    _start(server, follower)
    server.set_phase(server.create(make_pod("a")), "Succeeded")
    pod = server.create(make_pod("b"))
    await asyncio.sleep(5)
    server.set_phase(pod, "Failed")
    await asyncio.sleep(5)
    server.delete_pod("default", "b")
    await asyncio.sleep(5)
    assert follower.calls == [
        (1.0, "added", "a"),
        (1.0, "deleted", "a"),
        (1.0, "added", "b"),
        (6.0, "deleted", "b"),
    ]


@pytest.mark.parametrize(
    ("expired", "expected"),
    [
        pytest.param(
            False,
            [(0.0, "added", "a"), (0.0, "added", "b"), (11.0, "updated", "a"),
             (11.0, "deleted", "a"), (11.0, "updated", "b"), (11.0, "added", "c")],
            id="goes-on",
        ),
        pytest.param(
            True,
            [(0.0, "added", "a"), (0.0, "added", "b"), (10.0, "vanished", "a"),
             (10.0, "updated", "b"), (10.0, "added", "c")],
            id="lists-again",
        ),
    ],
)  # fmt: skip
@on_virtual_time
async def test_changes_during_an_outage_are_reported(
    expired: bool, expected: list[tuple[float, str, str]]
) -> None:
    """By the watch or by another list."""
    follower = Follower()
    server = ObjectServer(asyncio.get_running_loop().time)
    server.create(make_pod("a"))
    server.create(make_pod("b"))
    informer = _start(server, follower)
    informer.lose(10.0, expired=expired)
    informer.lose(10.0, expired=expired)
    assert not informer.is_current
    server.delete_pod("default", "a")
    server.bind("default", "b", "", "node-1")
    server.create(make_pod("c"))
    await asyncio.sleep(20)
    assert informer.relists == int(expired)
    assert expected == follower.calls


@on_virtual_time
async def test_a_watch_that_is_too_old_lists_again() -> None:
    """If changes are compacted before they are read, none is lost."""
    follower = Follower()
    store: Store[KubeObject] = Store(lambda value, _: value, changes_kept=1)
    server = ObjectServer(lambda: 0.0)
    server.store = store
    informer = _start(server, follower)
    for number in range(10):
        server.create(make_pod(f"p{number}"))
    await asyncio.sleep(5)
    assert informer.relists == 1
    assert sorted(follower.there) == [("default", f"p{number}") for number in range(10)]


@settings(deadline=None, max_examples=60)
@given(st.integers(0, 2**32), st.integers(1, 30))
@on_virtual_time
async def test_a_follower_ends_with_the_servers_objects(seed: int, kept: int) -> None:
    """After any history of writes, outages and compactions."""
    random = Random(seed)
    server = ObjectServer(asyncio.get_running_loop().time)
    server.store = Store(server.store._stamp, kept)
    follower = Follower()
    informer = SimulatedInformer(server.store, "pods", follower, lambda: random.random() * 3)
    informer.start()
    for _ in range(60):
        name = random.choice("abcd")
        pod = server.pod("default", name)
        if pod is None:
            server.create(make_pod(name, uid=""))
        elif random.random() < 0.4:
            server.delete(pod)
        else:
            server.set_phase(pod, random.choice(["Running", "Pending"]))
        if random.random() < 0.1:
            informer.lose(random.random() * 5, expired=random.random() < 0.5)
        await asyncio.sleep(random.random())
    await asyncio.sleep(10)
    expected = {("default", item.metadata.name): item for item in server.store.list("pods")}
    assert expected == follower.there
    assert informer.is_current
