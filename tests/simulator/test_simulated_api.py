"""Simulated requests: latencies and injected failures."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Coroutine
from typing import Any

import pytest

from kubesched.api.conditions import ConditionPatch
from kubesched.api.core import EventRecord, Pod
from kubesched.api.errors import ApiError, NotFoundError
from kubesched.scheduler.api_client import ApiClient
from kubesched.simulator.faults import FaultPlan, Latencies, RandomStreams, RequestFaults
from kubesched.simulator.object_server import ObjectServer
from kubesched.simulator.simulated_api import SimulatedApi
from kubesched.testing.builders import make_pod
from tests.loops import on_virtual_time

NO = ConditionPatch("PodScheduled", "False", "Unschedulable", "no room")
ALWAYS = 1.0


def _new(faults: FaultPlan | None = None) -> tuple[ObjectServer, SimulatedApi, Pod]:
    """Return a server with one pod, and requests of two seconds to it."""
    server = ObjectServer(asyncio.get_running_loop().time)
    latencies = Latencies(request=2.0)
    api = SimulatedApi(server, RandomStreams(1), latencies, faults or FaultPlan())
    client: ApiClient = api
    assert client is api, "it implements the protocol"
    return server, api, server.create(make_pod("a", uid=""))


def _pod(server: ObjectServer) -> Pod:
    found = server.pod("default", "a")
    assert found is not None
    return found


@on_virtual_time
async def test_a_binding_takes_about_the_latency() -> None:
    """Between half and one and a half of it."""
    server, api, pod = _new()
    await api.bind(pod, "node-1")
    assert _pod(server).spec.node_name == "node-1"
    assert (api.requests["bind"], api.failures["bind"]) == (1, 0)
    assert 1.0 <= asyncio.get_running_loop().time() <= 3.0


@on_virtual_time
async def test_status_and_deletion_are_carried_out() -> None:
    """Deleting a missing pod is a failed request."""
    server, api, pod = _new()
    await api.patch_pod_status(pod, NO, "node-1")
    assert _pod(server).status.nominated_node_name == "node-1"
    await api.delete_pod(pod)
    assert server.pod("default", "a") is None
    with pytest.raises(NotFoundError):
        await api.delete_pod(pod)
    assert (api.requests["delete"], api.failures["delete"]) == (2, 1)


@on_virtual_time
async def test_events_are_not_sent() -> None:
    """They need no request."""
    _, api, pod = _new()
    api.record_event(EventRecord(pod, "Normal", "Scheduled", "Binding", "note"))
    assert not any(api.requests.values())


@pytest.mark.parametrize(
    ("faults", "code", "is_bound"),
    [
        pytest.param(RequestFaults(conflict=ALWAYS), 409, False, id="conflict"),
        pytest.param(RequestFaults(error=ALWAYS), 500, False, id="error"),
        pytest.param(RequestFaults(unanswered=ALWAYS), 0, True, id="unanswered"),
    ],
)
@on_virtual_time
async def test_injected_failures_of_bindings(
    faults: RequestFaults, code: int, is_bound: bool
) -> None:
    """A refused request changes nothing; one without an answer is carried out."""
    server, api, pod = _new(FaultPlan(bind=faults))
    lost: list[str] = []
    api.on_unanswered = lost.append
    with pytest.raises(ApiError) as caught:
        await api.bind(pod, "node-1")
    assert caught.value.code == code
    assert api.failures["bind"] == 1
    assert is_bound == bool(_pod(server).spec.node_name)
    assert (["node-1"] if is_bound else []) == lost


@on_virtual_time
async def test_slow_requests_take_longer() -> None:
    """By the time of the plan."""
    _, api, pod = _new(FaultPlan(bind=RequestFaults(slow=ALWAYS, slow_by=60.0)))
    await api.bind(pod, "node-1")
    assert 61.0 <= asyncio.get_running_loop().time() <= 63.0


@on_virtual_time
async def test_a_pod_deleted_before_its_binding() -> None:
    """The binding is refused."""
    _, api, pod = _new(FaultPlan(deleted_while_binding=ALWAYS))
    with pytest.raises(NotFoundError):
        await api.bind(pod, "node-1")


@on_virtual_time
async def test_failures_of_one_request_do_not_change_others() -> None:
    """Each kind of request has its own random stream."""
    faults = RequestFaults(conflict=0.5)

    async def codes(binds: int) -> list[int]:
        _, api, pod = _new(FaultPlan(bind=faults, status=faults))
        for _ in range(binds):
            await _code(api.bind(pod, "node-1"))
        return [await _code(api.patch_pod_status(pod, NO)) for _ in range(10)]

    assert await codes(binds=0) == await codes(binds=10)


async def _code(request: Coroutine[Any, Any, None]) -> int:
    """Return with which code a request fails; -1 if it succeeds."""
    try:
        await request
    except ApiError as error:
        return error.code
    return -1


@on_virtual_time
async def test_shares_of_injected_failures() -> None:
    """Over many requests they are those of the plan."""
    faults = RequestFaults(conflict=0.1, error=0.2, unanswered=0.3)
    _, api, pod = _new(FaultPlan(status=faults))
    count = 4_000
    codes = Counter([await _code(api.patch_pod_status(pod, NO)) for _ in range(count)])
    assert pytest.approx(0.1, abs=0.02) == codes[409] / count
    assert pytest.approx(0.2 * 0.9, abs=0.02) == codes[500] / count
    assert pytest.approx(0.3 * 0.9 * 0.8, abs=0.02) == codes[0] / count
