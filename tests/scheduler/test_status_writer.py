"""Statuses that are written faster than the watch returns them."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from msgspec.structs import replace

from kubesched.api.conditions import ConditionPatch
from kubesched.api.core import Pod, PodCondition
from kubesched.api.errors import ApiError
from kubesched.api.meta import Condition, ObjectMeta
from kubesched.api.scheduling import PodGroup, PodGroupStatus
from kubesched.client.pod_client import pod_status_patch
from kubesched.scheduler.api_client import UnansweredWrites
from kubesched.scheduler.status_writer import StatusWriter
from kubesched.testing.builders import make_node, make_pod
from tests.loops import on_virtual_time

from .running import FakeApi, running

NOW = "2026-01-01T00:00:00Z"


class _Patches(FakeApi):
    """Computes patches as a client does, and refuses some.

    Attributes:
        sent: The messages that were sent, and "nothing".
        refused: Messages that are refused.
    """

    def __init__(self) -> None:
        super().__init__()
        self.sent: list[str] = []
        self.refused: set[str] = set()

    async def patch_pod_group_status(self, group: PodGroup, condition: ConditionPatch) -> None:
        """Send the condition."""
        await asyncio.sleep(1)
        self.sent.append(condition.reason)

    async def patch_pod_status(
        self,
        pod: Pod,
        condition: ConditionPatch | None = None,
        nominated_node_name: str | None = None,
    ) -> None:
        """Compute the patch against the given pod."""
        await asyncio.sleep(1)
        patch: dict[str, Any] = pod_status_patch(pod, condition, nominated_node_name, NOW)
        said = [one.get("message", "") for one in patch.get("conditions", ())]
        said += [f"on {patch['nominatedNodeName']}"] if "nominatedNodeName" in patch else []
        self.sent.append(" ".join(said) or "nothing")
        if condition is not None and condition.message in self.refused:
            raise ApiError(403, "Forbidden", "no")


def _pod(message: str, version: str = "10") -> Pod:
    pod = make_pod("a")
    condition = PodCondition(
        type="PodScheduled", status="False", reason="Unschedulable", message=message
    )
    status = replace(pod.status, conditions=(condition,))
    metadata = replace(pod.metadata, resource_version=version)
    return replace(pod, metadata=metadata, status=status)


def _wanted(message: str) -> ConditionPatch:
    return ConditionPatch("PodScheduled", "False", "Unschedulable", message)


CPU = _pod("cpu")


@pytest.mark.parametrize(
    ("writes", "refused", "expected"),
    [
        pytest.param([(CPU, "taint"), (CPU, "cpu")], (), ["taint", "cpu"], id="there and back"),
        pytest.param([(CPU, "taint"), (CPU, "taint")], (), ["taint"], id="twice"),
        pytest.param(
            [(CPU, "taint"), (_pod("taint", "11"), "cpu"), (_pod("cpu", "12"), "cpu")],
            (),
            ["taint", "cpu"],
            id="observed in between",
        ),
        pytest.param(
            [(CPU, "taint"), (CPU, "cpu"), (_pod("taint", "11"), "taint")],
            (),
            ["taint", "cpu", "taint"],
            id="only the first observed",
        ),
        pytest.param([(CPU, "taint"), (CPU, "cpu")], ("taint",), ["taint"], id="refused"),
    ],
)
@on_virtual_time
async def test_a_patch_is_the_difference_to_the_last_write(
    writes: list[tuple[Pod, str]], refused: tuple[str, ...], expected: list[str]
) -> None:
    """The server ends with the last status, though no write has been observed yet."""
    api = _Patches()
    api.refused.update(refused)
    writer = StatusWriter(api, UnansweredWrites())
    for pod, message in writes:
        writer.write(pod, _wanted(message))
    await writer.drain()
    assert expected == api.sent


@on_virtual_time
async def test_a_written_nomination_is_cleared() -> None:
    """The next status without a nomination clears it."""
    api = _Patches()
    writer = StatusWriter(api, UnansweredWrites())
    writer.write(CPU, _wanted("taint"), "alpha")
    writer.write(CPU, nominated_node_name="")
    writer.write(CPU, _wanted("taint"))
    await writer.drain()
    assert ["taint on alpha", "on None"] == api.sent


@on_virtual_time
async def test_a_group_that_was_scheduled_once_keeps_the_condition() -> None:
    """Also while the watch has not returned it: a later pod of the group may fit nowhere."""
    group = PodGroup(metadata=ObjectMeta(name="gang", uid="g", resource_version="10"))
    api = _Patches()
    writer = StatusWriter(api, UnansweredWrites())
    for status, reason in (("False", "Unschedulable"), ("True", "Scheduled")) * 2:
        writer.write_pod_group(group, ConditionPatch("PodGroupScheduled", status, reason, ""))
    await writer.drain()
    assert ["Unschedulable", "Scheduled"] == api.sent


@on_virtual_time
async def test_a_group_that_is_rejected_as_before_after_another_reason() -> None:
    """The last reason counts, also if the watch has returned the first one alone."""
    first, second = (
        ConditionPatch("PodGroupScheduled", "False", reason, "") for reason in ("first", "second")
    )
    known = Condition(type="PodGroupScheduled", status="False", reason="first")
    group = PodGroup(
        metadata=ObjectMeta(name="gang", uid="g", resource_version="10"),
        status=PodGroupStatus(conditions=(known,)),
    )
    api = _Patches()
    writer = StatusWriter(api, UnansweredWrites())
    for condition in (first, second, first):
        writer.write_pod_group(group, condition)
    await writer.drain()
    assert ["second", "first"] == api.sent


@on_virtual_time
async def test_a_binding_waits_for_status_writes() -> None:
    """A status that arrives after it would outlive it."""
    order: list[str] = []
    async with running() as world:
        patch, bind = world.api.patch_pod_status, world.api.bind

        async def slow_patch(
            pod: Pod,
            condition: ConditionPatch | None = None,
            nominated_node_name: str | None = None,
        ) -> None:
            await asyncio.sleep(20)
            order.append("status")
            await patch(pod, condition, nominated_node_name)

        async def seen_bind(pod: Pod, node_name: str) -> None:
            order.append("binding")
            await bind(pod, node_name)

        world.api.patch_pod_status = slow_patch  # type: ignore[method-assign] # for this test
        world.api.bind = seen_bind  # type: ignore[method-assign] # for this test
        world.api.create(make_node("small", allocatable={"cpu": "1"}))
        world.api.create(make_pod("a", requests={"cpu": "2"}))
        await world.settle()
        world.api.create(make_node("large", allocatable={"cpu": "4"}))
        await world.settle(60)
        assert {"a": "large"} == world.nodes
    assert ["status", "binding"] == order
