"""Tests as coroutines in a simulated world."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from kubesched.simulator.faults import NO_FAULTS, FaultPlan, Latencies, RandomStreams
from kubesched.simulator.virtual_loop import run
from kubesched.simulator.world import World
from kubesched.testing.builders import make_node
from tests.loops import as_test

LATENCIES = Latencies(
    watch=0.001,
    pod_start=2.0,
    pod_stop=5.0,
    controller=0.1,
    node_failure_detection=40.0,
    pod_garbage_collection=60.0,
)


def tell(story: Callable[[World], Awaitable[object]], faults: FaultPlan = NO_FAULTS) -> None:
    """Run a coroutine in a world with two nodes."""

    async def main() -> None:
        world = World(RandomStreams(1), LATENCIES, faults)
        for number in (1, 2):
            world.nodes.add(make_node(f"node-{number}"))
        await story(world)

    run(main())


def in_world(story: Callable[..., Awaitable[None]]) -> Callable[..., None]:
    """Run a test in a world with two nodes, which is its first argument."""
    return as_test(story, tell)
