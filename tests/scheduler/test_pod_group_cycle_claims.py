"""A gang whose pods share one ResourceClaim, in the running scheduler."""

from __future__ import annotations

from typing import Any

import pytest

from kubesched.api.resource import ResourceClaim
from kubesched.scheduler.assembly import Writers
from kubesched.scheduler.eventhandlers import EventHandlers
from kubesched.snapshot.objects import ObjectStore
from kubesched.testing.builders import make_node
from tests.loops import on_virtual_time
from tests.plugins.dynamic_resources.cluster import FakeWriter, local
from tests.plugins.dynamic_resources.objects import claim, device_class, request
from tests.scheduler.running import GANGS, make_group, make_member, running


class EchoingWriter(FakeWriter):
    """Writes claims, and passes them to the scheduler as a watch would."""

    def __init__(self) -> None:
        super().__init__(ObjectStore())
        self.handlers: EventHandlers | None = None

    def _put(self, claim: ResourceClaim) -> ResourceClaim:
        before = self.store.get(ResourceClaim, claim.metadata.name, claim.metadata.namespace)
        stored = super()._put(claim)
        assert self.handlers is not None
        assert before is not None
        self.handlers.updated(before, stored)
        return stored


@pytest.mark.parametrize(("count", "min_count"), [(2, 2), (20, 20), (5, 2), (20, None)])
@on_virtual_time
async def test_a_gang_that_shares_a_claim(count: int, min_count: int | None) -> None:
    """All pods are bound in the first attempt, on the node with the device."""
    spec: dict[str, Any] = {"resourceClaims": [{"name": "gpu", "resourceClaimName": "c1"}]}
    members = [make_member(f"p{at}", spec=spec) for at in range(count)]
    writer = EchoingWriter()
    async with running(gates=GANGS, writers=Writers(claims=writer)) as cluster:
        writer.handlers = handlers = cluster.api.handlers
        assert handlers is not None
        asked = claim(request())
        writer.store.put(asked)
        for item in (asked, device_class(), local("s1", "here")):
            handlers.added(item)
        cluster.api.create(
            *(make_node(name, allocatable={"cpu": "99"}) for name in ("here", "other"))
        )
        cluster.api.create(make_group(min_count=min_count), *members)
        await cluster.settle()
        assert {pod.metadata.name: "here" for pod in members} == cluster.nodes
        assert count == cluster.scheduler.queue.scheduling_cycle
    stored = writer.store.get(ResourceClaim, "c1", "default")
    assert stored is not None
    assert count == len(stored.status.reserved_for)
    assert 0 == writer.conflicted
