"""WholeObjects changes some fields of stored objects and leaves all others as they are.

The objects that the scheduler holds have only the fields that it reads, so they cannot be sent
back: an update gets the stored object, changes it and puts it back.

Upstream: staging/src/k8s.io/client-go/gentype/type.go, Update, UpdateStatus;
          staging/src/k8s.io/apimachinery/pkg/runtime/generated.proto, Unknown;
          staging/src/k8s.io/apimachinery/pkg/apis/meta/v1/generated.proto, ObjectMeta (v1.36)
Invariants: no change of others is overwritten: the PUT names the version that the caller knows,
            and the server refuses it if there is a newer one.
Differs:  upstream sends the object that it has, without the GET; only finalizers are ever written
          in protobuf.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final, TypeVar

import msgspec

from kubesched.api.decode import DecodeError, decode_object
from kubesched.api.errors import ApiError
from kubesched.api.meta import KubeStruct, ObjectMeta
from kubesched.api.protobuf_wire import MAGIC, ProtobufError, WireField, field, fields_of
from kubesched.api.scheme import kind_of
from kubesched.client.requests import Request, Rest, path_of

T = TypeVar("T", bound=KubeStruct)

Plain = dict[str, Any]


class WholeObjects:
    """Reads, creates, changes and deletes objects. All methods raise `ApiError` on failure."""

    def __init__(self, rest: Rest) -> None:
        self._rest = rest

    async def get(self, type_: type[T], namespace: str, name: str) -> T:
        """Return an object as stored."""
        path = path_of(kind_of(type_), namespace, name)
        return _typed(type_, await self._rest.send(Request(path=path)))

    async def create(self, type_: type[T], namespace: str, item: Plain) -> T:
        """Create an object; return it as stored."""
        kind = kind_of(type_)
        body = msgspec.json.encode({"kind": kind.kind, "apiVersion": kind.api_version} | item)
        path = path_of(kind, namespace)
        return _typed(type_, await self._rest.send(Request(method="POST", path=path, body=body)))

    async def update(
        self,
        type_: type[T],
        metadata: ObjectMeta,
        change: Callable[[Plain], None],
        subresource: str = "",
    ) -> T:
        """Change an object; return it as stored.

        Args:
            type_: Its class.
            metadata: Has its name, and the version that the caller knows.
            change: Changes the stored object in place.
            subresource: The part to write, such as `status`; "" for the object itself.
        """
        kind = kind_of(type_)
        path = path_of(kind, metadata.namespace, metadata.name)
        item = _plain(await self._rest.send(Request(path=path)))
        change(item)
        if metadata.resource_version:
            part_of(item, "metadata")["resourceVersion"] = metadata.resource_version
        path = path_of(kind, metadata.namespace, metadata.name, subresource)
        request = Request(method="PUT", path=path, body=msgspec.json.encode(item))
        return _typed(type_, await self._rest.send(request))

    async def set_finalizers(
        self, type_: type[T], metadata: ObjectMeta, finalizers: Sequence[str]
    ) -> T:
        """Set an object's finalizers in protobuf form; return it as stored.

        The server stores free-form JSON, such as a driver's parameters, byte by byte. In JSON
        responses it is reformatted, and a write with other bytes is refused.

        Args:
            type_: Its class.
            metadata: Has its name, and the version that the caller knows.
            finalizers: The complete new list.
        """
        path = path_of(kind_of(type_), metadata.namespace, metadata.name)
        body = await self._rest.send(Request(path=path, accept=PROTOBUF))
        try:
            changed = with_finalizers(body, finalizers, metadata.resource_version)
        except ProtobufError as error:
            raise _unreadable(error) from None
        request = Request(method="PUT", path=path, body=changed, content_type=PROTOBUF)
        return _typed(type_, await self._rest.send(request))

    async def delete(self, type_: type[KubeStruct], namespace: str, name: str) -> None:
        """Delete an object."""
        kind = kind_of(type_)
        options = {"kind": "DeleteOptions", "apiVersion": kind.api_version}
        path = path_of(kind, namespace, name)
        body = msgspec.json.encode(options)
        await self._rest.send(Request(method="DELETE", path=path, body=body))


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


PROTOBUF: Final = "application/vnd.kubernetes.protobuf"

# Field numbers: the object in its envelope, metadata in the object, and two of metadata.
_RAW: Final = 2
_METADATA: Final = 1
_RESOURCE_VERSION: Final = 6
_FINALIZERS: Final = 14


def with_finalizers(body: bytes, finalizers: Iterable[str], resource_version: str) -> bytes:
    """Return the body with other finalizers, and every other byte unchanged.

    Args:
        body: A protobuf body of an API server.
        finalizers: The complete new list.
        resource_version: The version that the caller knows; "" keeps the object's.

    Raises:
        ProtobufError: It is not such a body.
    """
    if not body.startswith(MAGIC):
        raise ProtobufError("it is no object in protobuf form")

    def changed_metadata(metadata: bytes) -> bytes:
        replaced = {_FINALIZERS: [name.encode() for name in finalizers]}
        if resource_version:
            replaced[_RESOURCE_VERSION] = [resource_version.encode()]
        kept = b"".join(one.whole for one in fields_of(metadata) if one.number not in replaced)
        added = (field(number, text) for number, texts in replaced.items() for text in texts)
        return kept + b"".join(added)

    def changed_object(raw: bytes) -> bytes:
        return b"".join(
            field(_METADATA, changed_metadata(_content(one)))
            if one.number == _METADATA
            else one.whole
            for one in fields_of(raw)
        )

    envelope = fields_of(body[len(MAGIC) :])
    return MAGIC + b"".join(
        field(_RAW, changed_object(_content(one))) if one.number == _RAW else one.whole
        for one in envelope
    )


def _content(one: WireField) -> bytes:
    if isinstance(one.value, int):
        raise ProtobufError("proto: wrong wireType = 0")
    return one.value
