"""The loop: timers of the queue, bindings in a dry run, at the end, and to a slow API server."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from functools import partial
from math import inf
from typing import Any, ClassVar, Final

import pytest

from kubesched.api.core import Pod
from kubesched.framework.cycle_state import CycleState
from kubesched.framework.plugin import (
    BindPlugin,
    PermitPlugin,
    Plugin,
    PostBindPlugin,
    PreBindPlugin,
)
from kubesched.framework.registry import Registry
from kubesched.framework.status import SKIP, SUCCESS, Code, Status, failure
from kubesched.plugins.registry import in_tree_registry
from kubesched.queue.scheduling_queue import SchedulingQueue
from kubesched.scheduler.loop import Flushing, Scheduler
from kubesched.simulator.virtual_loop import run
from kubesched.snapshot.pod_info import PodInfo
from kubesched.testing.builders import make_node, make_pod
from tests.loops import on_virtual_time
from tests.scheduler.running import Running, running, with_scheduler


def with_plugin(plugin: type[Plugin], disabled: Sequence[str] = ()) -> dict[str, Any]:
    """Return the options of `running` for the default profile with one more plugin."""
    registry = Registry(*in_tree_registry().values(), plugin)
    names = {"enabled": [{"name": plugin.name}], "disabled": [{"name": name} for name in disabled]}
    return {"registry": registry, "profile": {"plugins": {"multiPoint": names}}}


# Timers of the queue: only for the times at which a flush moves a pod.


class Queue(SchedulingQueue):
    """Has the times of flushes, and records when they happen."""

    def __init__(self) -> None:
        super().__init__(lambda queued: (queued.timestamp,), {})
        self.backoff_ends: list[float] = []
        self.late: list[float] = []
        self.flushes: list[tuple[str, float]] = []

    def next_backoff_flush(self, now: float) -> float | None:
        """Return the earliest end."""
        return min(self.backoff_ends, default=None)

    def flush_backoff(self, now: float) -> bool:
        """Drop the pods whose backoff has ended."""
        self.flushes.append(("backoff", now))
        self.backoff_ends = [end for end in self.backoff_ends if end > now]
        return True

    def late_after(self) -> float | None:
        """Return when the first pod has waited too long."""
        return min(self.late, default=None)

    def flush_unschedulable(self, now: float) -> bool:
        """Drop the pods that have waited too long."""
        self.flushes.append(("unschedulable", now))
        self.late = [late for late in self.late if late >= now]
        return True


def _flushes(story: Callable[[Queue], None], until: float, start: float = 0.0) -> Queue:
    async def main() -> Queue:
        queue = Queue()
        flushing = Flushing(queue, lambda: None)
        flushing.start()
        story(queue)
        await asyncio.sleep(until)
        flushing.stop()
        queue.on_backoff()
        queue.on_unschedulable(0.0)
        await asyncio.sleep(1000)
        return queue

    return run(main(), start)


def test_an_empty_queue_has_no_timer() -> None:
    """Nothing is flushed."""
    assert [] == _flushes(lambda _: None, 1000).flushes


def test_the_timer_is_for_the_earliest_backoff() -> None:
    """An earlier end moves it; a later one needs the next timer."""

    def story(queue: Queue) -> None:
        for end in (5.0, 3.0, 9.0):
            queue.backoff_ends.append(end)
            queue.on_backoff()

    assert [("backoff", 3.0), ("backoff", 5.0), ("backoff", 9.0)] == _flushes(story, 20).flushes


@pytest.mark.parametrize(
    ("start", "late", "expected"),
    [
        pytest.param(0.0, 299.0, 300.0, id="at-the-next-round"),
        pytest.param(0.0, 300.0, 330.0, id="exactly-is-not-over"),
        pytest.param(7.0, 299.0, 307.0, id="rounds-begin-with-the-run"),
        pytest.param(400.0, 299.0, 430.0, id="never-in-the-past"),
    ],
)
def test_unschedulable_pods_are_flushed_every_thirty_seconds(
    start: float, late: float, expected: float
) -> None:
    """In the first round after the first pod has waited too long."""

    def story(queue: Queue) -> None:
        for moment in (late + 1000, late):
            queue.late.append(moment)
            queue.on_unschedulable(moment)

    flushes = _flushes(story, 400, start).flushes
    assert ("unschedulable", expected) == flushes[0]


def test_no_timer_after_the_end() -> None:
    """The end drops planned flushes."""

    def story(queue: Queue) -> None:
        queue.backoff_ends.append(50.0)
        queue.on_backoff()
        queue.late.append(50.0)
        queue.on_unschedulable(50.0)

    assert [] == _flushes(story, 10).flushes


# A scheduler that binds through its API client alone, as in a dry run.


class Writes(PreBindPlugin, BindPlugin, PostBindPlugin):
    """Would write before, instead of and after the Binding."""

    name: ClassVar = "Writes"
    asked: ClassVar[list[str]] = []

    def pre_bind_pre_flight(self, cycle: CycleState, pod: PodInfo, node_name: str) -> Status:
        """Return success: there is something to write."""
        return SUCCESS

    async def pre_bind(self, cycle: CycleState, pod: PodInfo, node_name: str) -> Status:
        """Return a failure."""
        self.asked.append("pre_bind")
        return failure("there is nothing to write to")

    async def bind(self, cycle: CycleState, pod: PodInfo, node_name: str) -> Status:
        """Bind by other means."""
        self.asked.append("bind")
        return SUCCESS

    def post_bind(self, cycle: CycleState, pod: PodInfo, node_name: str) -> None:
        """Record the bound pod."""
        self.asked.append("post_bind")


@on_virtual_time
async def test_plugins_that_may_write_do_not_run() -> None:
    """The API client binds; no plugin runs from PreBind on."""
    Writes.asked.clear()
    async with running(**with_plugin(Writes, disabled=["DefaultBinder"])) as cluster:
        cluster.scheduler.bind_through_api_only()
        cluster.api.create(make_node("node"), make_pod("pod"))
        await asyncio.sleep(0.1)
        assert {"pod": "node"} == cluster.nodes
    assert [] == Writes.asked


# The end of a process does not wait for plugins and other systems.


PRE_BIND_SECONDS = {"claim-nobody-binds": 600.0, "claim-soon-bound": 0.2}


class Waits(PermitPlugin, PreBindPlugin):
    """Lets some pods wait, by name."""

    name: ClassVar = "Waits"

    def permit(self, cycle: CycleState, pod: PodInfo, node_name: str) -> tuple[Status, float]:
        """Let one pod wait for ten minutes."""
        status = Status(Code.WAIT, ("wait",)) if pod.name == "gang-member" else SUCCESS
        return status, 600.0

    def pre_bind_pre_flight(self, cycle: CycleState, pod: PodInfo, node_name: str) -> Status:
        """Return Skip for all but some pods."""
        return SUCCESS if pod.name in PRE_BIND_SECONDS else SKIP

    async def pre_bind(self, cycle: CycleState, pod: PodInfo, node_name: str) -> Status:
        """Wait."""
        await asyncio.sleep(PRE_BIND_SECONDS[pod.name])
        return SUCCESS


@on_virtual_time
async def test_the_end_cancels_waits_but_not_writes() -> None:
    """Pods that are ready soon are bound; bindings in progress are awaited."""
    async with running(**with_plugin(Waits)) as cluster:
        bind = cluster.api.bind

        async def bind_slowly(pod: Pod, node_name: str) -> None:
            await asyncio.sleep(5)
            await bind(pod, node_name)

        cluster.api.bind = bind_slowly  # type: ignore[method-assign]
        cluster.api.create(make_node("node"))
        cluster.api.create(*map(make_pod, ("gang-member", "plain", *PRE_BIND_SECONDS)))
        await asyncio.sleep(0.1)
        assert 4 == len(cluster.scheduler.bindings)
        began = asyncio.get_running_loop().time()
        await cluster.scheduler.end_preparations(0.5)
        assert 0.5 == round(asyncio.get_running_loop().time() - began, 6)
        await cluster.scheduler.drain()
        assert {"plain", "claim-soon-bound"} == cluster.nodes.keys()
        assert {"Scheduled"} == {event.partition(" ")[0] for event in cluster.api.events}
        assert [] == cluster.waiting
        assert ("", "") == cluster.condition("claim-nobody-binds")


@with_scheduler()
async def test_the_end_is_immediate_without_bindings(cluster: Running) -> None:
    """No time passes."""
    began = asyncio.get_running_loop().time()
    await cluster.scheduler.end_preparations(0.5)
    assert 0.0 == asyncio.get_running_loop().time() - began


@with_scheduler()
async def test_a_terminating_pod_needs_no_room_on_its_nominated_node(cluster: Running) -> None:
    """Finalizers may keep it for long."""
    cluster.api.create(make_node("node", allocatable={"cpu": "1"}))
    going = {"deletionTimestamp": "2026-01-01T00:00:00Z"}
    cluster.api.create(
        make_pod("a", requests={"cpu": "1"}, nominated_node_name="node", metadata=going),
        make_pod("b", requests={"cpu": "1"}),
    )
    await cluster.settle()
    assert {"b": "node"} == cluster.nodes


# No further pod is decided while the API server has many writes to answer.


AT_ONCE: Final = 4
PODS: Final = 100


class Hesitates(PermitPlugin):
    """Lets pods wait if their name contains `waits`."""

    name: ClassVar = "Hesitates"

    def permit(self, cycle: CycleState, pod: PodInfo, node_name: str) -> tuple[Status, float]:
        """Let some pods wait for ten minutes."""
        return (Status(Code.WAIT, ("wait",)) if "waits" in pod.name else SUCCESS), 600.0


class SlowServer:
    """Answers Bindings and status patches after a second, or never.

    Attributes:
        unanswered: The number of writes without an answer.
        most: The largest number there was.
        answers: Whether it answers at all.
    """

    def __init__(self, cluster: Running) -> None:
        self.unanswered = self.most = 0
        self.answers = True
        api: Any = cluster.api
        api.bind = partial(self._answer, api.bind)
        api.patch_pod_status = partial(self._answer, api.patch_pod_status)

    async def _answer(self, write: Callable[..., Awaitable[None]], *args: Any) -> None:
        self.unanswered += 1
        self.most = max(self.most, self.unanswered)
        try:
            await (asyncio.sleep(1) if self.answers else asyncio.Event().wait())
            await write(*args)
        finally:
            self.unanswered -= 1


@asynccontextmanager
async def slow(at_once: float = AT_ONCE) -> AsyncIterator[tuple[Running, SlowServer]]:
    """Run a scheduler on four nodes, with a slow server and the plugin."""
    async with running(**with_plugin(Hesitates), writes_at_once=at_once) as cluster:
        server = SlowServer(cluster)
        cluster.api.create(*(make_node(f"node-{number}") for number in range(4)))
        yield cluster, server


def pods(prefix: str, cpu: str = "0") -> list[Pod]:
    """Build as many pods as a test needs."""
    return [make_pod(f"{prefix}-{number}", requests={"cpu": cpu}) for number in range(PODS)]


@on_virtual_time
async def test_the_limit_changes_no_decision() -> None:
    """All pods are bound as without a limit, a few at a time."""
    bindings, most = [], []
    for at_once in (AT_ONCE, inf):
        async with slow(at_once) as (cluster, server):
            cluster.api.create(*pods("pod"))
            await cluster.settle(PODS)
            bindings.append(sorted(cluster.api.bindings))
            most.append(server.most)
    assert bindings[0] == bindings[1]
    assert PODS == len(bindings[0]) == most[1]
    assert AT_ONCE <= most[0] <= AT_ONCE + Scheduler.pods_per_slice


@on_virtual_time
async def test_rejected_pods_are_not_decided_faster_than_written() -> None:
    """All get their condition, a few at a time."""
    async with slow() as (cluster, server):
        cluster.api.create(*pods("huge", cpu="1000"))
        await cluster.settle(PODS)
        conditions = {cluster.condition(name)[0] for name in cluster.api.pods}
        assert {"Unschedulable"} == conditions
        assert AT_ONCE <= server.most <= AT_ONCE + Scheduler.pods_per_slice


@on_virtual_time
async def test_refused_bindings_are_answered() -> None:
    """They no longer count as open."""
    async with slow() as (cluster, _server):
        cluster.api.refused = {f"refused-{number}" for number in range(PODS)}
        cluster.api.create(*pods("refused"), *pods("pod"))
        await cluster.settle(PODS)
        cluster.api.refused.clear()
        bound = len(cluster.api.bindings)
        await cluster.settle(10 * PODS)
        assert (PODS, 2 * PODS) == (bound, len(cluster.api.bindings))


@on_virtual_time
async def test_pods_that_wait_on_permit_do_not_count() -> None:
    """Other pods are bound meanwhile, and they are bound once allowed."""
    async with slow() as (cluster, _server):
        cluster.api.create(*pods("waits"), *pods("pod"))
        await cluster.settle(PODS)
        bound, waiting = len(cluster.api.bindings), list(cluster.scheduler.waiting_pods)
        assert PODS == len(waiting)
        for pod in waiting:
            pod.allow("Hesitates")
        await cluster.settle(PODS)
        assert (PODS, 2 * PODS) == (bound, len(cluster.api.bindings))


@on_virtual_time
async def test_a_loop_ends_with_unanswered_bindings() -> None:
    """Whether the process is stopped or has lost its lease."""
    async with slow() as (cluster, server):
        server.answers = False
        cluster.api.create(*pods("pod"))
        await asyncio.sleep(1)
        under_way = len(cluster.scheduler.bindings)
        assert AT_ONCE <= under_way == server.unanswered < PODS
        lost = asyncio.ensure_future(cluster.scheduler.run())
        await asyncio.sleep(1)
        lost.cancel()
        await asyncio.wait([lost])
        assert lost.cancelled()
        # The end of the block stops the other run, and waits for it.
        cluster.scheduler.stop()
        for task in cluster.scheduler.bindings.values():
            task.cancel()
        await asyncio.sleep(1)
        assert (0, 0) == (len(cluster.scheduler.bindings), server.unanswered)
        assert [] == cluster.api.bindings


# A replica whose lease may have expired decides nothing.


@on_virtual_time
async def test_pods_stay_in_the_queue_while_nothing_may_be_decided() -> None:
    """They are neither tried nor counted, and are bound once it may decide again."""
    async with running() as cluster:
        cluster.scheduler.may_decide = lambda: False
        cluster.api.create(make_node("node"), make_pod("pod"))
        await cluster.settle(5)
        assert ({}, ("", "")) == (cluster.nodes, cluster.condition("pod"))
        assert [] == cluster.api.events
        cluster.scheduler.may_decide = lambda: True
        await cluster.settle(1)
        assert {"pod": "node"} == cluster.nodes
