"""All kinds of requests that a running scheduler sends."""

from __future__ import annotations

import asyncio
import inspect
import json
from collections.abc import Coroutine
from datetime import UTC, datetime
from functools import cache
from random import Random
from typing import Any, Final, NamedTuple

from kubesched.api.conditions import ConditionPatch
from kubesched.api.core import EventRecord, Pod, PodExtendedResourceClaimStatus
from kubesched.api.errors import NotFoundError
from kubesched.api.meta import ObjectMeta
from kubesched.api.resource import ResourceClaim
from kubesched.api.scheduling import PodGroup
from kubesched.api.volume import ObjectReference, PersistentVolume, PersistentVolumeClaim
from kubesched.apiserver import request as served
from kubesched.app.access import Authorities, ClusterAuthentication
from kubesched.app.reviews import AccessStatus, Reviews, TokenStatus
from kubesched.app.scheduler_informers import watched_kinds
from kubesched.client.claim_client import ClaimClient, VolumeClient
from kubesched.client.event_recorder import EventRecorder
from kubesched.client.pod_client import PodClient
from kubesched.client.requests import Request, path_of
from kubesched.client.resource_locks import ElectionRecord, LeaseLock
from kubesched.config.feature_gates import FeatureGates
from kubesched.plugins.registry import in_tree_setup
from kubesched.scheduler.profile_building import build_profiles
from kubesched.simulator.virtual_loop import run
from tests.client.records import Answering

NAMESPACE = "ns"
TIME = datetime(2024, 5, 1, 10, tzinfo=UTC)
METADATA = ObjectMeta(name="x", namespace=NAMESPACE, uid="u", resource_version="1")


class NeededRight(NamedTuple):
    """The permission that a request needs; "" for what does not apply."""

    verb: str
    group: str
    resource: str
    namespace: str
    name: str


class Echo(Answering):
    """Returns what is written, or an object for what is read."""

    async def send(self, request: Request) -> bytes:
        """Keep the request and answer."""
        await super().send(request)
        metadata = {"name": "x", "namespace": NAMESPACE, "uid": "u", "resourceVersion": "1"}
        empty = json.dumps({"metadata": metadata, "spec": {}, "status": {}}).encode()
        return request.body if request.method in {"POST", "PUT"} else empty


class Forgetful(Echo):
    """Has no events that could be updated."""

    async def send(self, request: Request) -> bytes:
        """Keep the request; what is patched is not there."""
        answer = await super().send(request)
        if request.method == "PATCH":
            raise NotFoundError("it has expired")
        return answer


async def pods(rest: Echo) -> None:
    """Send all writes of pods and pod groups."""
    writer, pod = _pod_client(rest), Pod(metadata=METADATA)
    await writer.bind(pod, "n")
    await writer.delete_pod(pod)
    await writer.patch_pod_status(pod, ConditionPatch("T", "True", "R", "M"), "n")
    claim = PodExtendedResourceClaimStatus(resource_claim_name="c")
    await writer.patch_extended_resource_claim_status(pod, claim)
    condition = ConditionPatch("T", "True", "R", "M")
    await writer.patch_pod_group_status(PodGroup(metadata=METADATA), condition)


def _pod_client(rest: Echo) -> PodClient:
    return PodClient(rest, lambda: 0, lambda _event: None)


async def claims(rest: Echo) -> None:
    """Send all writes of resource claims."""
    writer = ClaimClient(rest, _pod_client(rest), Random(0))
    claim = ResourceClaim(metadata=METADATA)
    await writer.get(NAMESPACE, "x")
    await writer.create(claim)
    await writer.update(claim)
    await writer.update_status(claim)
    await writer.release(claim, Pod(metadata=METADATA))
    await writer.delete(claim)
    status = PodExtendedResourceClaimStatus(resource_claim_name="c")
    await writer.patch_extended_resource_claim_status(Pod(metadata=METADATA), status)


async def volumes(rest: Echo) -> None:
    """Send all writes of volumes and their claims."""
    writer = VolumeClient(rest, lambda _namespace, _name: True)
    await writer.update_persistent_volume(PersistentVolume(metadata=ObjectMeta(name="x")))
    await writer.update_persistent_volume_claim(PersistentVolumeClaim(metadata=METADATA))


async def events(rest: Echo) -> None:
    """Create and update events."""
    event = EventRecord(Pod(metadata=METADATA), "Normal", "R", "A", "N")
    recorder = EventRecorder(rest, lambda: 0, Random(0), "host")
    async with asyncio.TaskGroup() as group:
        running = group.create_task(recorder.run())
        for _ in range(2):
            recorder.record_event(event)
            await recorder.drain()
        running.cancel()


async def reviews(rest: Echo) -> None:
    """Send reviews of tokens and of access."""
    await ClusterAuthentication(rest, Authorities(), lambda _changed: None).refresh()
    for kind in (AccessStatus, TokenStatus):
        reviews = Reviews(rest, kind, lambda _status: 0.0, Random(0))
        await asyncio.gather(reviews.ask({}), return_exceptions=True)


async def lock(rest: Echo, namespace: str, name: str) -> None:
    """Acquire a lock, renew it and record the event."""
    lease = LeaseLock(rest, namespace, name, "me")
    record = ElectionRecord(
        holder_identity="me", lease_duration_seconds=15, acquire_time=TIME, renew_time=TIME
    )
    await lease.get()
    await lease.create(record)
    await lease.update(record)
    recorder = EventRecorder(rest, lambda: 0, Random(0), "host")
    about = ObjectReference(kind="Lease", namespace=namespace, name=name, uid="u")
    async with asyncio.TaskGroup() as group:
        running = group.create_task(recorder.run())
        recorder.record_election(about, "me became leader", "component")
        await recorder.drain()
        running.cancel()


def watched() -> list[NeededRight]:
    """Return the kinds that are listed and watched, with every gate that adds one."""
    gates = FeatureGates.parse("GenericWorkload=true")
    profiles = build_profiles(in_tree_setup(gates), Random(0))
    plugins = [plugin for profile in profiles.values() for plugin in profile.plugins.values()]
    paths = [path_of(kind) for kind in watched_kinds(plugins, gates)]
    return [
        _right_for(Request(path=path, query=query))
        for path in paths
        for query in ({}, {"watch": "true"})
    ]


@cache
def sent(lock_namespace: str, lock_name: str) -> list[NeededRight]:
    """Return all needed permissions, sorted and without duplicates."""
    found: list[NeededRight] = watched()
    for server in (Echo(), Forgetful()):
        works: list[Coroutine[Any, Any, None]] = [events(server)]
        if type(server) is Echo:
            works += [pods(server), claims(server), volumes(server), reviews(server)]
            works += [lock(server, lock_namespace, lock_name)]
        for work in works:
            run(work)
        found += [_right_for(request) for request in server.sent]
    return sorted(set(found))


def _right_for(request: Request) -> NeededRight:
    query = {name: (value,) for name, value in request.query.items()}
    target = served.target_of(served.ApiRequest(request.method, request.path, query))
    assert target is not None, request.path
    resource = "/".join(filter(None, (target.plural, target.subresource)))
    return NeededRight(target.verb, target.group, resource, target.namespace, target.name)


WRITES: Final[dict[type, tuple[str, ...]]] = {
    PodClient: (
        "bind",
        "delete_pod",
        "patch_extended_resource_claim_status",
        "patch_pod_group_status",
        "patch_pod_status",
    ),
    ClaimClient: (
        "create",
        "delete",
        "drain",
        "get",
        "patch_extended_resource_claim_status",
        "release",
        "update",
        "update_status",
    ),
    VolumeClient: ("update_persistent_volume", "update_persistent_volume_claim"),
    LeaseLock: ("create", "get", "update"),
}
"""What is asked of each writer above."""


def coroutine_methods(writer: type) -> set[str]:
    """Return the asynchronous methods of a writer."""
    return {
        name
        for name, _ in inspect.getmembers(writer, inspect.iscoroutinefunction)
        if not name.startswith("_")
    }
