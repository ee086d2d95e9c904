"""Where a pod is in the queue, in each place that there is."""

from __future__ import annotations

from kubesched.app.decision_ring import queue_state
from kubesched.explain.decision_records import QueuePart, QueueState
from kubesched.explain.report import RetryEvents
from kubesched.framework.status import Code, Status
from kubesched.testing.builders import make_node, make_pod
from tests.loops import on_virtual_time
from tests.scheduler.running import Running, running
from tests.scheduler.scripted import scripted

START_NS = 1_700_000_000_000_000_000
SHOWN = "2023-11-14T22:13:"


def state_of(here: Running, name: str) -> QueueState | None:
    """Return the state of a pod; the time of day is that of the loop since `START_NS`."""
    now_ns = START_NS + round(here.scheduler.now() * 1e9)
    return queue_state(here.scheduler, f"default/{name}", now_ns)


@on_virtual_time
async def test_a_pod_waits_for_an_event() -> None:
    """The state has attempts, the time of the last one, and what would requeue the pod."""
    async with running() as here:
        here.api.create(make_node("n1", allocatable={"cpu": "1"}))
        here.api.create(make_pod("large", requests={"cpu": "4"}))
        await here.settle(2.5)
        state = state_of(here, "large")
        assert state is not None
        (entry,) = state.retry_after
        assert ("NodeResourcesFit", True) == (entry.plugin, "Node added" in entry.events)
        expected = QueueState(
            part=QueuePart.UNSCHEDULABLE,
            attempts=1,
            since=f"{SHOWN}20.000000Z",
            retry_after=(entry,),
        )
        assert expected == state


@on_virtual_time
async def test_an_error_backs_off() -> None:
    """The end of the backoff is the second in which the pod is tried again."""
    async with running() as here:
        here.api.refused.add("small")
        here.api.create(make_node("n1"), make_pod("small"))
        await here.settle(0.25)
        state = state_of(here, "small")
        assert state == QueueState(
            part=QueuePart.BACKOFF,
            attempts=1,
            since=f"{SHOWN}20.000000Z",
            backoff_ends=f"{SHOWN}22.000000Z",
        )
        await here.settle(1.7)
        state = state_of(here, "small")
        assert state is not None
        assert 1 == state.attempts
        await here.settle(0.1)
        state = state_of(here, "small")
        assert state is not None
        assert 2 == state.attempts


@on_virtual_time
async def test_a_gate_is_named() -> None:
    """A gated pod was never tried."""
    async with running() as here:
        here.api.create(make_node("n1"), make_pod("held", scheduling_gates=["example.com/no"]))
        await here.settle()
        state = state_of(here, "held")
        events = ("Pod scheduling gates removed",)
        assert state == QueueState(
            part=QueuePart.GATED,
            since=f"{SHOWN}20.000000Z",
            retry_after=(RetryEvents("SchedulingGates", events),),
        )


@on_virtual_time
async def test_a_pod_waits_for_permission() -> None:
    """The plugins and the node are named."""
    _, options = scripted(permit={"small": Status(Code.WAIT)})
    async with running(**options) as here:
        here.api.create(make_node("n1"), make_pod("small"))
        await here.settle(0.5)
        assert state_of(here, "small") == QueueState(
            part=QueuePart.WAITING_ON_PERMIT,
            attempts=1,
            since=f"{SHOWN}20.000000Z",
            node="n1",
            waits_for=("Script",),
        )


@on_virtual_time
async def test_pods_that_are_tried_or_bound() -> None:
    """Active before the loop runs, in flight when popped, assumed, then nothing any more."""
    async with running() as here:
        here.api.create(make_node("n1"), make_pod("small"))
        seen = [state_of(here, "small")]
        scheduler = here.scheduler
        queued = scheduler.queue.pop(scheduler.now())
        assert queued is not None
        seen.append(state_of(here, "small"))
        scheduler.cache.assume_pod(queued.pod_info, "n1")
        seen.append(state_of(here, "small"))
        scheduler.queue.done(queued.pod_info.uid, scheduler.now())
        scheduler.cache.forget_pod(queued.pod_info.on_node("n1"))
        assert [QueuePart.ACTIVE, QueuePart.IN_FLIGHT, QueuePart.BINDING] == [
            state.part for state in seen if state is not None
        ]
        assert state_of(here, "small") is None
        assert state_of(here, "nobody") is None
