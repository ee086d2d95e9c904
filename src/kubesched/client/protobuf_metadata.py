"""Changes the metadata of an object in protobuf form, and leaves every other byte as it is.

Upstream: staging/src/k8s.io/apimachinery/pkg/runtime/generated.proto, Unknown;
          staging/src/k8s.io/apimachinery/pkg/apis/meta/v1/generated.proto, ObjectMeta (v1.36)
Rejects:  what is no such body.
Differs:  nothing else is read or written in this form: JSON is, wherever it does.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final, NamedTuple

PROTOBUF: Final = "application/vnd.kubernetes.protobuf"

_MAGIC: Final = b"k8s\0"
# Numbers of fields: the object in its envelope, metadata in the object, and of metadata.
_RAW: Final = 2
_METADATA: Final = 1
_RESOURCE_VERSION: Final = 6
_FINALIZERS: Final = 14
_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5
_FIXED_SIZES: Final = {_FIXED64: 8, _FIXED32: 4}
_VARINT_BYTES_MAX: Final = 10


class ProtobufError(ValueError):
    """A body is no object in protobuf form."""


class _Field(NamedTuple):
    number: int
    payload: bytes
    whole: bytes


def with_finalizers(body: bytes, finalizers: Iterable[str], resource_version: str) -> bytes:
    """Return a body whose object has these finalizers.

    Args:
        body: As an API server sent it.
        finalizers: All that the object is to have.
        resource_version: The version that the caller knows; "" leaves the object's.

    Raises:
        ProtobufError: It is no such body.
    """
    if not body.startswith(_MAGIC):
        raise ProtobufError("it is no object in protobuf form")

    def changed_metadata(metadata: bytes) -> bytes:
        replaced = {_FINALIZERS: [name.encode() for name in finalizers]}
        if resource_version:
            replaced[_RESOURCE_VERSION] = [resource_version.encode()]
        kept = b"".join(one.whole for one in _fields(metadata) if one.number not in replaced)
        added = (_field(number, text) for number, texts in replaced.items() for text in texts)
        return kept + b"".join(added)

    def changed_object(raw: bytes) -> bytes:
        return b"".join(
            _field(_METADATA, changed_metadata(one.payload))
            if one.number == _METADATA
            else one.whole
            for one in _fields(raw)
        )

    envelope = _fields(body[len(_MAGIC) :])
    return _MAGIC + b"".join(
        _field(_RAW, changed_object(one.payload)) if one.number == _RAW else one.whole
        for one in envelope
    )


def _fields(message: bytes) -> Iterator[_Field]:
    at = 0
    while at < len(message):
        began = at
        key, at = _varint(message, at)
        kind = key & 7
        if kind == _VARINT:
            _, end = _varint(message, at)
        elif kind == _BYTES:
            size, at = _varint(message, at)
            end = at + size
        elif kind in _FIXED_SIZES:
            end = at + _FIXED_SIZES[kind]
        else:
            raise ProtobufError(f"unknown wire type {kind}")
        if end > len(message):
            raise ProtobufError("unexpected end")
        yield _Field(key >> 3, message[at:end], message[began:end])
        at = end


def _varint(message: bytes, at: int) -> tuple[int, int]:
    value = 0
    for place, byte in enumerate(message[at : at + _VARINT_BYTES_MAX]):
        value |= (byte & 0x7F) << 7 * place
        if byte < 0x80:
            return value, at + place + 1
    raise ProtobufError("unexpected end")


def _field(number: int, payload: bytes) -> bytes:
    return _encoded_varint(number << 3 | _BYTES) + _encoded_varint(len(payload)) + payload


def _encoded_varint(value: int) -> bytes:
    found = bytearray()
    while value > 0x7F:
        found.append(value & 0x7F | 0x80)
        value >>= 7
    found.append(value)
    return bytes(found)
