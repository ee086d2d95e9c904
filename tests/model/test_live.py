# ruff: noqa: N806 - S is a state, as in docs/model.md
"""A case in which upstream does not guarantee progress."""

from __future__ import annotations

from kubesched.simulator.faults import NO_FAULTS, Latencies
from kubesched.testing.builders import make_node, make_pod
from tests.loops import on_virtual_time

from .live import LiveCluster, enabled
from .ratings import RATINGS
from .state import key


@on_virtual_time
async def test_a_preemptor_is_held_back_if_all_victims_leave_while_it_preempts() -> None:
    """As upstream, not even the flush opens its gate; an activation does."""
    live = LiveCluster(RATINGS, 0, Latencies(request=0.5), NO_FAULTS)
    server = live.world.server
    live.world.nodes.add(make_node("n", allocatable={"cpu": 2}))
    for name in ("v1", "v2"):
        server.create(make_pod(name, uid="", requests={"cpu": 1}))
    await live.advance(10)
    server.create(make_pod("p", uid="", requests={"cpu": 2}, priority=5))
    await live.advance(0.05)
    assert 1 == live.witness.steps["Preemption"]
    for name in ("v1", "v2"):
        server.delete_pod("default", name, grace_seconds=0)
    S = await live.come_to_rest(5)
    assert ["default/p"] == [key(p) for p in enabled(S)]
    assert ["default/p"] == [info.key for info in live.held_back()]
    live.scheduler.activate(live.held_back())
    S = await live.come_to_rest(5)
    assert [] == list(enabled(S))
    assert [] == live.held_back()
    live.check_at_rest(S)
