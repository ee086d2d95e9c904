"""The wire format of protobuf: a sequence of numbered fields.

Upstream: google.golang.org/protobuf/encoding/protowire
Rejects:  truncated messages, numbers beyond 64 bits, and groups.
Differs:  numbers are decoded as unsigned; callers convert signed fields.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, NamedTuple

MAGIC: Final = b"k8s\0"
"""The first bytes of protobuf bodies of Kubernetes."""

_VARINT: Final = 0
_BYTES: Final = 2
_SIZES: Final = {1: 8, 5: 4}
_BITS_MAX: Final = 64


class ProtobufError(ValueError):
    """A message is malformed."""


class WireField(NamedTuple):
    """A field of a message.

    Attributes:
        number: The field number.
        value: A number, or bytes.
        whole: The encoded field, including its tag.
    """

    number: int
    value: int | bytes
    whole: bytes


def bytes_of(value: int | bytes) -> bytes:
    """Return the content of a message, text or bytes; raises ProtobufError for a number."""
    if isinstance(value, int):
        raise ProtobufError("proto: wrong wireType = 0")
    return value


def fields_of(message: bytes) -> Iterator[WireField]:
    """Yield the fields of a message; raises ProtobufError if it is malformed."""
    at = 0
    while at < len(message):
        began = at
        tag, at = _varint_at(message, at)
        form = tag & 7
        value: int | bytes
        if form == _VARINT:
            value, at = _varint_at(message, at)
        else:
            size = _SIZES.get(form)
            if size is None:
                if form != _BYTES:
                    raise ProtobufError(f"proto: illegal wireType {form}")
                size, at = _varint_at(message, at)
            if at + size > len(message):
                raise ProtobufError("unexpected EOF")
            value = message[at : at + size]
            at += size
        yield WireField(tag >> 3, value, message[began:at])


def _varint_at(message: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        if at >= len(message):
            raise ProtobufError("unexpected EOF")
        if shift >= _BITS_MAX:
            raise ProtobufError("proto: integer overflow")
        byte = message[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, at
        shift += 7


def field(number: int, content: bytes) -> bytes:
    """Return an encoded field with a message, text or bytes."""
    return _varint(number << 3 | _BYTES) + _varint(len(content)) + content


def _varint(number: int) -> bytes:
    encoded = bytearray()
    while number > 0x7F:
        encoded.append(number & 0x7F | 0x80)
        number >>= 7
    encoded.append(number)
    return bytes(encoded)
