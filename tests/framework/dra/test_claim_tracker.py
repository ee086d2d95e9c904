"""The incrementally updated state of allocated devices equals a full count."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from kubesched.api.meta import ObjectMeta
from kubesched.api.resource import (
    AllocationResult,
    DeviceAllocationResult,
    DeviceRequestAllocationResult,
    ResourceClaim,
    ResourceClaimStatus,
)
from kubesched.framework.dra.claim_tracker import AllocatedState, ClaimTracker
from kubesched.snapshot.objects import ObjectStore
from tests.plugins.dynamic_resources.objects import DRIVER, allocated_state, allocation_of

devices = st.sampled_from(["d0", "d1", "d2"])
results = st.builds(
    lambda device, admin, shared, amount: DeviceRequestAllocationResult(
        driver="x.com",
        pool="p",
        device=device,
        admin_access=admin,
        share_id="s" if shared else None,
        consumed_capacity={"memory": amount} if shared and amount else {},
    ),
    devices,
    st.sampled_from([None, None, True]),
    st.booleans(),
    st.integers(0, 3),
)
allocations = st.one_of(
    st.none(),
    st.lists(results, max_size=3).map(
        lambda found: AllocationResult(devices=DeviceAllocationResult(results=tuple(found)))
    ),
)
steps = st.lists(
    st.tuples(
        st.sampled_from(["c0", "c1", "c2"]),
        st.sampled_from(["put", "delete", "assume", "pend", "give up", "written", "restore"]),
        allocations,
        st.sampled_from(["p", "q"]),
    ),
    max_size=12,
)


def claim(name: str, version: int, allocation: AllocationResult | None) -> ResourceClaim:
    """Return a claim as it is stored at some time."""
    return ResourceClaim(
        metadata=ObjectMeta(
            name=name, namespace="default", uid=name, resource_version=str(version)
        ),
        status=ResourceClaimStatus(allocation=allocation),
    )


def numbers(state: AllocatedState) -> tuple[object, ...]:
    """Return the state as plain values, without capacities of 0."""
    capacity = {
        device: amounts for device, amounts in state.capacity.items() if any(amounts.values())
    }
    return state.devices, state.shared, capacity


@pytest.mark.slow
@settings(max_examples=300)
@given(steps)
def test_kept_state_equals_counted_state(
    story: list[tuple[str, str, AllocationResult | None, str]],
) -> None:
    """After any sequence of writes, informer events and pending allocations, shared or not."""
    store, tracker = ObjectStore(), ClaimTracker()
    believed: dict[str, ResourceClaim] = {}
    stored: dict[str, ResourceClaim] = {}
    pending: dict[str, tuple[ResourceClaim, set[str]]] = {}
    for version, (name, what, allocation, user) in enumerate(story, start=1):
        news = claim(name, version, allocation)
        before = believed.get(name)
        if what == "put":
            store.put(news)
            stored[name] = believed[name] = news
        elif what == "delete" and name in stored:
            store.delete(stored.pop(name))
            believed.pop(name, None)
        elif what == "assume" and name in stored:
            tracker.assume(news)
            believed[name] = news
        elif what == "restore":
            tracker.restore("default", name)
            if name in stored:
                believed[name] = stored[name]
        elif what == "pend" and allocation is not None:
            first, users = pending.setdefault(name, (news, set()))
            assert first is tracker.add_pending(name, news, user)
            users.add(user)
        elif what in ("give up", "written"):
            _, users = pending.get(name, (news, set()))
            users -= {user} if what == "give up" else set(users)
            is_gone = name in pending and not users
            assert is_gone == tracker.remove_pending(name, user if what == "give up" else None)
            pending = {key: (one, left) for key, (one, left) in pending.items() if left}
        now = believed.get(name)
        if now is not None and now is not before and now.status.allocation is not None:
            pending.pop(name, None)
        claims = [*believed.values(), *(one for one, _ in pending.values())]
        expected = allocated_state(*filter(None, (one.status.allocation for one in claims)))
        assert numbers(expected) == numbers(tracker.allocated_state(store))
        assert believed.get(name) == tracker.get(store, "default", name)


def test_an_allocation_of_another_scheduler_replaces_the_pending_one() -> None:
    """The devices reserved here are free again without being released."""
    store, tracker = ObjectStore(), ClaimTracker()
    store.put(claim("c0", 1, None))
    tracker.add_pending("c0", claim("c0", 1, allocation_of("d0")), "pod")
    assert {(DRIVER, "p1", "d0")} == tracker.allocated_state(store).devices.keys()
    store.put(claim("c0", 2, allocation_of("d1")))
    assert {(DRIVER, "p1", "d1")} == tracker.allocated_state(store).devices.keys()
    assert tracker.pending_allocation("c0") is None


def test_created_claim_is_believed_until_it_is_seen() -> None:
    """A created claim exists before the informer has it, and not after its deletion."""
    store, tracker = ObjectStore(), ClaimTracker()
    created = claim("c0", 5, AllocationResult())
    tracker.assume(created, is_created=True)
    assert created is tracker.get(store, "default", "c0")
    store.put(created)
    assert created is tracker.get(store, "default", "c0")
    store.delete(created)
    assert tracker.get(store, "default", "c0") is None


@pytest.mark.parametrize("others", [0, 2000])
def test_created_claim_that_nobody_read_before_its_deletion_is_released(others: int) -> None:
    """It is released even if so many claims changed that their names were dropped."""
    objects, tracker = ObjectStore(), ClaimTracker()
    tracker.assume(claim("c", 4, None), is_created=True)
    tracker.assume(claim("c", 5, allocation_of("d0")))
    assert tracker.allocated_state(objects).is_allocated((DRIVER, "p1", "d0"))
    objects.put(claim("c", 5, allocation_of("d0")))
    objects.delete(claim("c", 6, allocation_of("d0")))
    for number in range(others):
        objects.put(claim(f"other-{number}", 7 + number, None))
    assert not tracker.allocated_state(objects).is_allocated((DRIVER, "p1", "d0"))


def test_created_claim_is_believed_while_older_news_arrives() -> None:
    """So many claims may change before it arrives that their names are dropped."""
    objects, tracker = ObjectStore(), ClaimTracker()
    tracker.allocated_state(objects)
    created = claim("c", 5000, None)
    tracker.assume(created, is_created=True)
    for number in range(2000):
        objects.put(claim(f"other-{number}", 7 + number, None))
    tracker.allocated_state(objects)
    assert tracker.get(objects, "default", "c") is created


def test_written_claim_is_believed_until_newer_news() -> None:
    """An older informer event does not replace a written claim."""
    store, tracker = ObjectStore(), ClaimTracker()
    store.put(claim("c0", 1, None))
    written = claim("c0", 2, AllocationResult())
    tracker.assume(written)
    assert written is tracker.get(store, "default", "c0")
    newer = replace(written, metadata=replace(written.metadata, resource_version="3"))
    store.put(newer)
    assert newer is tracker.get(store, "default", "c0")
