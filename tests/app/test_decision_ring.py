"""The records that a running scheduler leaves, with the production loop on virtual time."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Awaitable, Callable

import pytest

from kubesched.app.decision_ring import DecisionQuery, DecisionRing
from kubesched.explain.decision_records import DecisionRecord, EvictedPod, RecordedOutcome
from kubesched.framework.status import Status, failure, unschedulable
from kubesched.scheduler.binding import Assumed
from kubesched.scheduler.observer import Observer
from kubesched.simulator.virtual_loop import run
from kubesched.testing.builders import make_node, make_pod
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
