"""Checkers find violated invariants."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from kubesched.config.feature_gates import FeatureGates
from kubesched.plugins.registry import in_tree_setup
from kubesched.scheduler.assembly import assemble
from kubesched.scheduler.loop import Scheduler
from kubesched.simulator.faults import RandomStreams
from kubesched.simulator.pod_ledger import Checkers, InvariantError, PodLedger
from kubesched.simulator.virtual_loop import run
from kubesched.simulator.world import World
from kubesched.testing.builders import make_node, make_pod
from tests.loops import as_test


def watched(story: Callable[..., Awaitable[None]]) -> Callable[..., None]:
    """Run a test in a world with a node, a scheduler and its checkers: its arguments."""

    async def main(play: Callable[..., Awaitable[object]]) -> None:
        world = World(RandomStreams(9))
        gates = FeatureGates()
        scheduler, handlers = assemble(
            in_tree_setup(gates), world.api, random=world.random_streams.stream("scheduler")
        )
        ledger = PodLedger(world.server, lambda _: True)
        checkers = Checkers(world, scheduler, ledger)
        world.connect(handlers)
        world.nodes.add(make_node("node-1", allocatable={"cpu": "4"}))
        await asyncio.sleep(1)
        await play(world, scheduler, checkers)

    return as_test(story, lambda play: run(main(play)), given=3)


@watched
async def test_a_consistent_world_passes_all_checks(
    world: World, scheduler: Scheduler, checkers: Checkers
) -> None:
    """With a pod in the queue and a bound one."""
    world.server.create(make_pod("a"))
    checkers.check(0.0)
    world.server.create(make_pod("b", requests={"cpu": "4"}))
    world.server.bind("default", "b", "", "node-1")
    await asyncio.sleep(1)
    checkers.step()
    checkers.check(1.0)
    assert checkers.checks == 2


@watched
async def test_an_overcommitted_node_is_found(
    world: World, scheduler: Scheduler, checkers: Checkers
) -> None:
    """The message has node, pod and seed."""
    for name in ("a", "b"):
        world.server.create(make_pod(name, requests={"cpu": "3"}))
        world.server.bind("default", name, "", "node-1")
    words = r"seed 9: at 1\.000 s node node-1 has 6000 of 4000 cpu requested when pod default/b"
    with pytest.raises(InvariantError, match=words):
        checkers.step()


@watched
async def test_overcommitment_after_a_lost_answer_is_accepted(
    world: World, scheduler: Scheduler, checkers: Checkers
) -> None:
    """The scheduler cannot know of this binding."""
    world.api.on_unanswered("node-1")
    for name in ("a", "b"):
        world.server.create(make_pod(name, requests={"cpu": "3"}))
        world.server.bind("default", name, "", "node-1")
    checkers.step()


@watched
async def test_pods_created_with_a_node_are_not_checked(
    world: World, scheduler: Scheduler, checkers: Checkers
) -> None:
    """The scheduler did not place them."""
    world.server.create(make_pod("a", requests={"cpu": "9"}, node_name="node-1"))
    checkers.check(1.0)


@watched
async def test_a_pod_that_changes_its_node_is_found(
    world: World, scheduler: Scheduler, checkers: Checkers
) -> None:
    """The message names the pod."""
    world.server.create(make_pod("a"))
    bound = world.server.bind("default", "a", "", "node-1")
    world.server.update(make_pod("a", uid=bound.metadata.uid, node_name="node-2"))
    with pytest.raises(InvariantError, match="bound to node-1 and then to node-2"):
        checkers.step()


@watched
async def test_a_forgotten_pod_is_found(
    world: World, scheduler: Scheduler, checkers: Checkers
) -> None:
    """The scheduler observed it, and it is neither queued nor bound."""
    world.server.create(make_pod("a"))
    await asyncio.sleep(1)
    queued = scheduler.queue.pop(1.0)
    assert queued is not None
    checkers.check(2.0)
    scheduler.queue.done(queued.pod_info.uid, 2.0)
    with pytest.raises(InvariantError, match=r"pod default/a, .* 1\.000 s, is nowhere"):
        checkers.check(2.0)


@watched
async def test_the_checks_of_parts_run(
    world: World, scheduler: Scheduler, checkers: Checkers
) -> None:
    """A wrong count in the cache's columns is found."""
    world.server.create(make_pod("a", node_name="node-1"))
    await asyncio.sleep(1)
    scheduler.cache.nodes.pod_counts.flags.writeable = True
    scheduler.cache.nodes.pod_counts[0] += 1
    with pytest.raises(AssertionError):
        checkers.check(2.0)
