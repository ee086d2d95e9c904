"""Records of decisions with the production loop on virtual time, their page, and the queue."""

from __future__ import annotations

import gc
import json
import weakref
from collections.abc import Awaitable, Callable

import pytest

from kubesched.app.decision_ring import DecisionQuery, DecisionRing, decision_page, queue_state
from kubesched.app.http_exchange import HttpRequest, HttpResponse
from kubesched.explain.decision_records import (
    DecisionRecord,
    DecisionRecords,
    EvictedPod,
    QueuePart,
    QueueState,
    RecordedOutcome,
)
from kubesched.explain.report import RetryEvents
from kubesched.framework.status import Code, Status, failure, unschedulable
from kubesched.scheduler.binding import Assumed
from kubesched.scheduler.observer import Observer
from kubesched.simulator.virtual_loop import run
from kubesched.testing.builders import make_node, make_pod
from tests.loops import on_virtual_time
from tests.scheduler.running import GANGS, Running, make_group, make_member, running
from tests.scheduler.scripted import scripted

NOW_NS = 1_700_000_000_123_456_000
NOW = "2023-11-14T22:13:20.123456Z"
EVERY = DecisionQuery()


def played(
    script: Callable[[Running], Awaitable[None]], capacity: int = 100, **options: object
) -> DecisionRing:
    """Run a scheduler with a ring and a script beside it."""
    ring = DecisionRing(capacity, lambda: NOW_NS)

    async def main() -> None:
        async with running(observers=(ring,), **options) as here:  # type: ignore[arg-type]
            await script(here)

    run(main())
    return ring


def outcomes(ring: DecisionRing, query: DecisionQuery = EVERY) -> list[str]:
    """Return `pod outcome node`, the oldest first."""
    return [
        f"{record.pod} {record.outcome} {record.node}".rstrip()
        for record in reversed(ring.newest(query))
    ]


async def _one_of_each(here: Running) -> None:
    here.api.create(make_node("n1", allocatable={"cpu": "2"}))
    here.api.create(make_pod("small", uid="u1", requests={"cpu": "1"}))
    here.api.create(make_pod("large", uid="u2", requests={"cpu": "4"}))
    await here.settle()


def test_a_placement_and_a_rejection() -> None:
    """Each has what its decision had, and the time of day."""
    ring = played(_one_of_each)
    rejected, placed = ring.newest(EVERY)
    assert placed == DecisionRecord(
        time=NOW,
        pod="default/small",
        uid="u1",
        profile="default-scheduler",
        outcome=RecordedOutcome.PLACED,
        node="n1",
        evaluated_nodes=1,
        feasible_nodes=1,
    )
    assert rejected == DecisionRecord(
        time=NOW,
        pod="default/large",
        uid="u2",
        profile="default-scheduler",
        outcome=RecordedOutcome.REJECTED,
        evaluated_nodes=1,
        message="0/1 nodes are available: 1 Insufficient cpu. no new claims to deallocate, "
        "preemption: 0/1 nodes are available: 1 Preemption is not helpful for scheduling.",
        rejecting_plugins=("NodeResourcesFit",),
    )


async def preemption(here: Running) -> None:
    """Let a pod evict another one."""
    here.api.create(make_node("n1", allocatable={"cpu": "2"}))
    here.api.create(make_pod("cheap", uid="u1", priority=1, requests={"cpu": "2"}))
    await here.settle()
    here.api.create(make_pod("dear", uid="u2", priority=9, requests={"cpu": "2"}))
    await here.settle(20)


def test_a_preemption_names_victims_and_criterion() -> None:
    """A victim finds by which pod it was evicted."""
    ring = played(preemption)
    evicting, placed = ring.newest(DecisionQuery(pod="default/cheap"))
    assert ("default/dear", "n1") == (evicting.pod, evicting.nominated_node)
    assert (EvictedPod("default/cheap", "u1", 1),) == evicting.victims
    assert "only candidate" == evicting.criterion
    assert evicting.evicts("default/cheap")
    assert not placed.evicts("default/cheap")
    assert "default/dear Placed n1" == outcomes(ring)[-1]


async def _refused_binding(here: Running) -> None:
    here.api.refused.add("small")
    here.api.create(make_node("n1"), make_pod("small"))
    await here.settle(0.1)


def test_a_failed_binding_follows_the_placement() -> None:
    """Both records are kept."""
    ring = played(_refused_binding)
    assert ["default/small Placed n1", "default/small BindingFailed n1"] == outcomes(ring)
    assert 'running Bind plugin "DefaultBinder": refused' == ring.newest(EVERY)[0].message


@pytest.mark.parametrize(
    ("answer", "outcome"),
    [
        pytest.param(unschedulable("not now"), "Rejected", id="rejected"),
        pytest.param(failure("broken"), "Failed", id="failed"),
    ],
)
def test_permit_refuses_at_once(answer: Status, outcome: str) -> None:
    """Each attempt has one record, with the node that was refused."""

    async def script(here: Running) -> None:
        here.api.create(make_node("n1"), make_pod("small"))
        await here.settle(0.1)

    _, options = scripted(permit={"small": answer})
    ring = played(script, **options)
    found = outcomes(ring)
    assert {f"default/small {outcome} n1"} == set(found)
    assert len(found) == ring.recorded


def test_members_of_a_group_that_does_not_fit_are_not_placed() -> None:
    """The one that is tried first fits, but not the whole gang."""

    async def script(here: Running) -> None:
        here.api.create(make_node("n1", allocatable={"cpu": "1"}), make_group(min_count=2))
        here.api.create(make_member("a"), make_member("b"))
        await here.settle(0.1)

    ring = played(script, gates=GANGS)
    records = ring.newest(EVERY)
    assert {"default/a", "default/b"} == {record.pod for record in records}
    assert [RecordedOutcome.REJECTED] * 2 == [record.outcome for record in records]


def test_no_nodes() -> None:
    """The record has no evaluated nodes."""

    async def script(here: Running) -> None:
        here.api.create(make_pod("small"))
        await here.settle(0.1)

    (record,) = played(script).newest(EVERY)
    assert (RecordedOutcome.REJECTED, 0) == (record.outcome, record.evaluated_nodes)
    assert "no nodes available to schedule pods" == record.message


async def _twenty(here: Running) -> None:
    here.api.create(make_node("n1", allocatable={"cpu": "1"}), make_node("n2"))
    here.api.create(*(make_pod(f"p{number:02}") for number in range(20)))
    await here.settle()


def test_the_oldest_records_are_dropped() -> None:
    """All are counted."""
    ring = played(_twenty, capacity=3)
    assert ["p17", "p18", "p19"] == [line.split("/")[1][:3] for line in outcomes(ring)]
    assert 20 == ring.recorded


def test_filters_of_queries() -> None:
    """Records are selected by pod, node and number, the newest first."""
    ring = played(_twenty)
    assert 1 == len(ring.newest(DecisionQuery(pod="default/p07")))
    assert () == ring.newest(DecisionQuery(pod="other/p07"))
    assert {"n2"} == {record.node for record in ring.newest(DecisionQuery(node="n2"))}
    assert ["default/p19"] == [record.pod for record in ring.newest(DecisionQuery(limit=1))]


def test_pods_and_cycles_are_released() -> None:
    """The ring keeps nothing alive that refers to the profile, as cycles do."""

    class Watching(Observer):
        """Refers weakly to what the ring gets."""

        def __init__(self) -> None:
            self.seen: list[weakref.ref[object]] = []

        def bound(self, assumed: Assumed, now: float) -> None:
            """Look at a binding."""
            self.seen.append(weakref.ref(assumed.profile))

    watching = Watching()
    ring = DecisionRing(100, lambda: NOW_NS)

    async def main() -> None:
        async with running(observers=(ring, watching)) as here:
            await _one_of_each(here)

    run(main())
    gc.collect()
    assert [None] == [ref() for ref in watching.seen]
    assert 2 == ring.recorded


# Queries of /debug/decisions, and their responses.


def ask(query: str) -> tuple[HttpResponse, list[DecisionQuery]]:
    """Return the response to a query, and the query as it was parsed, if it was."""
    parsed: list[DecisionQuery] = []

    def read(given: DecisionQuery) -> DecisionRecords:
        parsed.append(given)
        return DecisionRecords(leads=True, capacity=5, recorded=7)

    path = "/debug/decisions"
    return decision_page(HttpRequest(path=path, target=f"{path}{query}"), read), parsed


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        pytest.param("", DecisionQuery(), id="all"),
        pytest.param("?limit=3", DecisionQuery(limit=3), id="limit"),
        pytest.param("?node=n1", DecisionQuery(node="n1"), id="node"),
        pytest.param("?pod=a/b", DecisionQuery(pod="a/b"), id="pod"),
        pytest.param("?pod=a%2Fb&limit=", DecisionQuery(pod="a/b"), id="escaped"),
    ],
)
def test_queries(query: str, expected: DecisionQuery) -> None:
    """The document has its kind and the records' numbers."""
    response, parsed = ask(query)
    assert [expected] == parsed
    assert (200, "application/json") == (response.status, response.content_type)
    assert json.loads(response.body) == {
        "apiVersion": "kubesched.dev/v1",
        "kind": "DecisionRecords",
        "leads": True,
        "capacity": 5,
        "recorded": 7,
        "records": [],
        "queue": None,
    }


@pytest.mark.parametrize(
    ("query", "message"),
    [
        ("?pod=web", "pod=web: write NAMESPACE/NAME\n"),
        ("?pod=shop/", "pod=shop/: write NAMESPACE/NAME\n"),
        ("?limit=0", "limit=0: write a number from 1\n"),
        ("?limit=-1", "limit=-1: write a number from 1\n"),
        ("?limit=x", "limit=x: write a number from 1\n"),
    ],
)
def test_invalid_queries(query: str, message: str) -> None:
    """The message names the parameter and what to write."""
    response, parsed = ask(query)
    assert (400, message.encode()) == (response.status, response.body)
    assert [] == parsed


# Where a pod is in the queue.

START_NS = 1_700_000_000_000_000_000
SHOWN = "2023-11-14T22:13:"


def state_of(here: Running, name: str) -> QueueState:
    """Return the state of a pod; the time of day is that of the loop since `START_NS`."""
    now_ns = START_NS + round(here.scheduler.now() * 1e9)
    state = queue_state(here.scheduler, f"default/{name}", now_ns)
    assert state is not None
    return state


@on_virtual_time
async def test_a_pod_waits_for_an_event() -> None:
    """The state has attempts, the time of the last one, and what would requeue the pod."""
    async with running() as here:
        here.api.create(make_node("n1", allocatable={"cpu": "1"}))
        here.api.create(make_pod("large", requests={"cpu": "4"}))
        await here.settle(2.5)
        state = state_of(here, "large")
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
        assert state_of(here, "small") == QueueState(
            part=QueuePart.BACKOFF,
            attempts=1,
            since=f"{SHOWN}20.000000Z",
            backoff_ends=f"{SHOWN}22.000000Z",
        )
        await here.settle(1.7)
        assert 1 == state_of(here, "small").attempts
        await here.settle(0.1)
        assert 2 == state_of(here, "small").attempts


@on_virtual_time
async def test_a_gate_is_named() -> None:
    """A gated pod was never tried."""
    async with running() as here:
        here.api.create(make_node("n1"), make_pod("held", scheduling_gates=["example.com/no"]))
        await here.settle()
        events = ("Pod scheduling gates removed",)
        assert state_of(here, "held") == QueueState(
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
        seen = [state_of(here, "small").part]
        scheduler = here.scheduler
        queued = scheduler.queue.pop(scheduler.now())
        assert queued is not None
        seen.append(state_of(here, "small").part)
        scheduler.cache.assume_pod(queued.pod_info, "n1")
        seen.append(state_of(here, "small").part)
        scheduler.queue.done(queued.pod_info.uid, scheduler.now())
        scheduler.cache.forget_pod(queued.pod_info.on_node("n1"))
        assert [QueuePart.ACTIVE, QueuePart.IN_FLIGHT, QueuePart.BINDING] == seen
        for name in ("small", "nobody"):
            assert queue_state(scheduler, f"default/{name}", START_NS) is None
