"""ClaimClient and VolumeClient update ResourceClaims, PersistentVolumes and their claims.

The objects that the scheduler holds have only the fields that it reads, so they cannot be sent
back: an update gets the stored object, changes it and puts it back.

Upstream: staging/src/k8s.io/client-go/gentype/type.go, Update, UpdateStatus;
          staging/src/k8s.io/apimachinery/pkg/runtime/generated.proto, Unknown;
          staging/src/k8s.io/apimachinery/pkg/apis/meta/v1/generated.proto, ObjectMeta;
          pkg/scheduler/framework/plugins: dynamicresources, volumebinding (v1.36)
Invariants: no change of others is overwritten: the PUT names the version that the caller knows, and
            the server refuses it if there is a newer one.
Differs:  upstream sends the object that it has, without the GET; finalizers are sent in JSON first,
          and in protobuf where the server refuses that; upstream always uses protobuf.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable
from random import Random
from typing import Any, Final, TypeVar

import msgspec

from kubesched.api.codec import DecodeError, decode_object
from kubesched.api.core import EventRecord, Pod, PodExtendedResourceClaimStatus
from kubesched.api.errors import ApiError, ConflictError
from kubesched.api.media_types import PROTOBUF, STRATEGIC_MERGE_PATCH
from kubesched.api.meta import KubeObject, ObjectMeta
from kubesched.api.protobuf_wire import MAGIC, ProtobufError, bytes_of, field, fields_of
from kubesched.api.resource import FINALIZER, ResourceClaim, ResourceClaimStatus
from kubesched.api.scheme import kind_of
from kubesched.api.volume import PersistentVolume, PersistentVolumeClaim
from kubesched.client.pod_client import PodClient
from kubesched.client.requests import Request, Rest, path_of

T = TypeVar("T", bound=KubeObject)

Plain = dict[str, Any]

log = logging.getLogger(__name__)


async def _update(
    rest: Rest,
    type_: type[T],
    metadata: ObjectMeta,
    change: Callable[[Plain], None],
    subresource: str = "",
) -> T:
    """Change a stored object; return it as stored. Raises `ApiError` if a request fails.

    `metadata` has its name and the version that the caller knows; `change` changes the stored
    object in place. `subresource` is the part to write, such as `status`, "" for the object itself.
    """
    kind = kind_of(type_)
    item = _plain(await rest.send(Request(path=path_of(kind, metadata.namespace, metadata.name))))
    change(item)
    if metadata.resource_version:
        part_of(item, "metadata")["resourceVersion"] = metadata.resource_version
    path = path_of(kind, metadata.namespace, metadata.name, subresource)
    request = Request(method="PUT", path=path, body=msgspec.json.encode(item))
    return _typed(type_, await rest.send(request))


def part_of(item: Plain, name: str) -> Plain:
    """Return a part of an object, creating it if missing."""
    part = item.get(name)
    if not isinstance(part, dict):
        part = item[name] = {}
    return part


def set_or_remove(part: Plain, name: str, value: object) -> None:
    """Set a field, or remove it if the value is empty."""
    if value:
        part[name] = value
    else:
        part.pop(name, None)


def _plain(body: bytes) -> Plain:
    try:
        return msgspec.json.decode(body, type=dict[str, Any])
    except msgspec.DecodeError as error:
        raise _unreadable(error) from None


def _typed(type_: type[T], body: bytes) -> T:
    try:
        try:
            return msgspec.json.decode(body, type=type_)
        except msgspec.ValidationError:
            item: object = decode_object(body)
    except (msgspec.DecodeError, DecodeError) as error:
        raise _unreadable(error) from None
    if not isinstance(item, type_):
        raise _unreadable(f"it is a {type(item).__name__}")
    return item


def _unreadable(problem: object) -> ApiError:
    return ApiError(500, "InternalError", f"unable to decode the server's answer: {problem}")


# Field numbers: the object in its envelope, metadata in the object, and two of metadata.
_RAW: Final = 2
_METADATA: Final = 1
_RESOURCE_VERSION: Final = 6
_FINALIZERS: Final = 14


def with_finalizers(body: bytes, finalizers: Iterable[str], resource_version: str) -> bytes:
    """Return the protobuf body with other finalizers, and every other byte unchanged.

    `resource_version` is the version that the caller knows; "" keeps the object's. Raises
    ProtobufError if it is not such a body.
    """
    if not body.startswith(MAGIC):
        raise ProtobufError("it is not an object in protobuf form")

    def changed_metadata(metadata: bytes) -> bytes:
        replaced = {_FINALIZERS: [name.encode() for name in finalizers]}
        if resource_version:
            replaced[_RESOURCE_VERSION] = [resource_version.encode()]
        kept = b"".join(one.whole for one in fields_of(metadata) if one.number not in replaced)
        added = (field(number, text) for number, texts in replaced.items() for text in texts)
        return kept + b"".join(added)

    def changed_object(raw: bytes) -> bytes:
        return _with_field(raw, _METADATA, changed_metadata)

    return MAGIC + _with_field(body[len(MAGIC) :], _RAW, changed_object)


def _with_field(message: bytes, number: int, change: Callable[[bytes], bytes]) -> bytes:
    """Return a message with another content of a field, and every other byte unchanged."""
    changed = b""
    for one in fields_of(message):
        is_wanted = one.number == number
        changed += field(number, change(bytes_of(one.value))) if is_wanted else one.whole
    return changed


# ResourceClaims.

_CLAIMS: Final = kind_of(ResourceClaim)
_DELETE_OPTIONS: Final = b'{"kind":"DeleteOptions","apiVersion":"resource.k8s.io/v1"}'
_DELETE_TRIES: Final = 5
_RETRY_SECONDS: Final = 0.01
_JITTER: Final = 0.1


class ClaimClient:
    """Reads and writes claims; the `ClaimWriter` of DynamicResources.

    All coroutines raise `ApiError` if the request fails.
    """

    def __init__(self, rest: Rest, pods: PodClient, random: Random) -> None:
        """Set up; `random` spreads retries."""
        self._rest = rest
        self._pods = pods
        self._random = random
        self._tasks: set[asyncio.Task[None]] = set()

    def now(self) -> str:
        """Return the time of day, RFC 3339."""
        return self._pods.now()

    def announce_wait(self, pod: Pod, node_name: str) -> None:
        """Record the event `BindingConditionsPending`."""
        self._pods.record_event(
            EventRecord(
                pod,
                "Normal",
                "BindingConditionsPending",
                "Scheduling",
                f"waiting for binding conditions for device on node {node_name}",
                reporting_controller=pod.spec.scheduler_name,
            )
        )

    async def patch_extended_resource_claim_status(
        self, pod: Pod, status: PodExtendedResourceClaimStatus
    ) -> None:
        """Set the claim that provides the pod's extended resources."""
        await self._pods.patch_extended_resource_claim_status(pod, status)

    async def get(self, namespace: str, name: str) -> ResourceClaim:
        """Return a claim as stored."""
        path = path_of(_CLAIMS, namespace, name)
        return _typed(ResourceClaim, await self._rest.send(Request(path=path)))

    async def create(self, claim: ResourceClaim) -> ResourceClaim:
        """Create a claim, whose name the server may generate; return it as stored."""
        kind = {"kind": _CLAIMS.kind, "apiVersion": _CLAIMS.api_version}
        plain: Plain = kind | msgspec.to_builtins(claim)
        for name in ("uid", "resourceVersion"):
            part_of(plain, "metadata").pop(name, None)
        plain.pop("status", None)
        path, body = path_of(_CLAIMS, claim.metadata.namespace), msgspec.json.encode(plain)
        request = Request(method="POST", path=path, body=body)
        return _typed(ResourceClaim, await self._rest.send(request))

    async def update(self, claim: ResourceClaim) -> ResourceClaim:
        """Write `metadata.finalizers`; return the claim as stored."""
        return await self._set_finalizers(claim, list(claim.metadata.finalizers))

    async def _set_finalizers(self, claim: ResourceClaim, finalizers: list[str]) -> ResourceClaim:
        def change(item: Plain) -> None:
            set_or_remove(part_of(item, "metadata"), "finalizers", finalizers)

        try:
            return await _update(self._rest, ResourceClaim, claim.metadata, change)
        except ApiError as error:
            if error.reason != "Invalid":
                raise
            refusal = error
        # The likely cause: a driver's parameters, which JSON does not show byte by byte.
        try:
            return await self._set_finalizers_in_protobuf(claim.metadata, finalizers)
        except ConflictError:
            raise
        except ApiError:
            raise refusal from None

    async def _set_finalizers_in_protobuf(
        self, metadata: ObjectMeta, finalizers: list[str]
    ) -> ResourceClaim:
        """Replace the finalizers in protobuf form; return the claim as stored.

        The server stores free-form JSON, such as a driver's parameters, byte by byte. In JSON
        responses it is reformatted, and a write with other bytes is refused.
        """
        path = path_of(_CLAIMS, metadata.namespace, metadata.name)
        body = await self._rest.send(Request(path=path, accept=PROTOBUF))
        try:
            changed = with_finalizers(body, finalizers, metadata.resource_version)
        except ProtobufError as error:
            raise _unreadable(error) from None
        request = Request(method="PUT", path=path, body=changed, content_type=PROTOBUF)
        return _typed(ResourceClaim, await self._rest.send(request))

    async def update_status(self, claim: ResourceClaim) -> ResourceClaim:
        """Write the status; return the claim as stored."""

        def change(item: Plain) -> None:
            _set_status(part_of(item, "status"), claim.status)

        return await _update(self._rest, ResourceClaim, claim.metadata, change, "status")

    async def release(self, claim: ResourceClaim, pod: Pod) -> None:
        """Remove a pod from `status.reservedFor`, even if the claim has changed."""
        patch = {
            "metadata": {"uid": claim.metadata.uid},
            "status": {"reservedFor": [{"$patch": "delete", "uid": pod.metadata.uid}]},
        }
        path = path_of(_CLAIMS, claim.metadata.namespace, claim.metadata.name, "status")
        body = msgspec.json.encode(patch)
        await self._rest.send(
            Request(method="PATCH", path=path, body=body, content_type=STRATEGIC_MERGE_PATCH)
        )

    async def delete(self, claim: ResourceClaim) -> None:
        """Remove the scheduler's finalizer from a claim and delete it; retry on conflicts."""
        namespace, name = claim.metadata.namespace, claim.metadata.name
        for tries_left in reversed(range(_DELETE_TRIES)):
            try:
                others = [one for one in claim.metadata.finalizers if one != FINALIZER]
                await self._set_finalizers(claim, others)
                break
            except ConflictError:
                if not tries_left:
                    raise
            await asyncio.sleep(_RETRY_SECONDS * (1 + _JITTER * self._random.random()))
            claim = await self.get(namespace, name)
        path = path_of(_CLAIMS, namespace, name)
        await self._rest.send(Request(method="DELETE", path=path, body=_DELETE_OPTIONS))

    # In the background.

    def deallocate_soon(self, claim: ResourceClaim) -> None:
        """Write the status in the background."""
        self._in_background(self.update_status(claim), "deallocate", claim)

    def delete_soon(self, claim: ResourceClaim) -> None:
        """Delete the claim in the background."""
        self._in_background(self.delete(claim), "delete", claim)

    def release_soon(self, claim: ResourceClaim, pod: Pod) -> None:
        """Remove the pod from the claim in the background."""
        self._in_background(self.release(claim, pod), "release", claim)

    async def drain(self) -> None:
        """Wait for background writes, including those that are added meanwhile."""
        while self._tasks:
            await asyncio.wait(self._tasks)

    def _in_background(self, work: Awaitable[object], verb: str, claim: ResourceClaim) -> None:
        async def write() -> None:
            try:
                await work
            except ApiError as error:
                log.error("Failed to %s claim %s: %s", verb, claim.metadata.key, error)

        task = asyncio.create_task(write())
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)


def _set_status(stored: Plain, status: ResourceClaimStatus) -> None:
    """Write a status into the stored one, which may have fields that we do not decode."""
    _set_allocation(stored, status)
    set_or_remove(stored, "reservedFor", msgspec.to_builtins(status.reserved_for))
    if not status.devices:
        stored.pop("devices", None)


def _set_allocation(stored: Plain, status: ResourceClaimStatus) -> None:
    if status.allocation is None:
        stored.pop("allocation", None)
        return
    allocation = msgspec.to_builtins(status.allocation)
    # An existing allocation is the same one; only its timestamp may be missing.
    there = stored.setdefault("allocation", allocation)
    if status.allocation.allocation_timestamp is not None:
        there.setdefault("allocationTimestamp", status.allocation.allocation_timestamp)


# PersistentVolumes and their claims.


class VolumeClient:
    """Writes volumes and their claims; the `VolumeWriter` of VolumeBinding.

    All coroutines raise `ApiError` if the request fails.
    """

    def __init__(self, rest: Rest, has_pod: Callable[[str, str], bool]) -> None:
        """Set up; `has_pod` tells from namespace and name whether a pod was observed."""
        self._rest = rest
        self._has_pod = has_pod

    def has_pod(self, namespace: str, name: str) -> bool:
        """Whether the pod exists in the informer cache."""
        return self._has_pod(namespace, name)

    async def update_persistent_volume(self, volume: PersistentVolume) -> PersistentVolume:
        """Write `spec.claimRef` and the annotations; return the volume as stored."""

        def change(item: Plain) -> None:
            _annotate(item, volume.metadata)
            reference = msgspec.to_builtins(volume.spec.claim_ref)
            set_or_remove(part_of(item, "spec"), "claimRef", reference)

        return await _update(self._rest, PersistentVolume, volume.metadata, change)

    async def update_persistent_volume_claim(
        self, claim: PersistentVolumeClaim
    ) -> PersistentVolumeClaim:
        """Write the annotations; return the claim as stored."""

        def change(item: Plain) -> None:
            _annotate(item, claim.metadata)

        return await _update(self._rest, PersistentVolumeClaim, claim.metadata, change)


def _annotate(item: Plain, metadata: ObjectMeta) -> None:
    set_or_remove(part_of(item, "metadata"), "annotations", dict(metadata.annotations))
