"""Reads bodies in Kubernetes' protobuf form, which kubectl and Kubernetes' own components send.

The tables of the schema have the numbers of the fields.

Upstream: staging/src/k8s.io/apimachinery/pkg/runtime/serializer/protobuf,
          staging/src/k8s.io/api/*/*/generated.proto (v1.36)
Rejects:  malformed bodies, and kinds without numbers in the tables.
Differs:  bodies are read and never written: answers are JSON, which every such client accepts too.
"""

from __future__ import annotations

import base64
import struct
from datetime import UTC, datetime, timedelta
from functools import cache
from typing import Any, Final

import msgspec

from kubesched.api.protobuf_wire import MAGIC, ProtobufError, fields_of
from kubesched.api.times import micro_time, second_time
from kubesched.apiserver.plain import Plain
from kubesched.apiserver.schema import (
    ListType,
    MapType,
    ObjectType,
    type_of,
    type_of_object,
)
from kubesched.apiserver.values import (
    Field,
    Scalar,
    ValueType,
)

_NUMBERS: Final = ("bool", "int32", "int64")
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
# The zero of Go's times, which stands for none.
_NO_SECONDS: Final = -62135596800


class NoMessageError(ProtobufError):
    """A kind that is not read in protobuf form.

    Attributes:
        api_version, kind: As in the body.
    """

    def __init__(self, api_version: str, kind: str) -> None:
        super().__init__(f'no kind "{kind}" is registered for version "{api_version}"')
        self.api_version = api_version
        self.kind = kind


class _Message:
    """A message whose fields are read: by number, a field, or a message that is embedded."""

    def __init__(self) -> None:
        self.fields: dict[int, Field | _Message] = {}

    def add(self, field: Field, tag: tuple[int, ...]) -> None:
        first, *rest = tag
        if not rest:
            self.fields[first] = field
            return
        inner = self.fields.setdefault(first, _Message())
        assert isinstance(inner, _Message), f"{field.name} is embedded in a field"
        inner.add(field, tuple(rest))


@cache
def _message_of(object_type: ObjectType) -> _Message:
    message = _Message()
    for field in object_type.fields.values():
        if field.tag:
            message.add(field, field.tag)
    return message


def decode(text: bytes) -> Plain:
    """Return the object of a body, with kind and version if it has them.

    Raises:
        NoMessageError: Its kind is not known in this form.
        ProtobufError: It holds no object.
    """
    if not text.startswith(MAGIC):
        raise ProtobufError("provided data does not appear to be a protobuf message")
    try:
        return _object(text[len(MAGIC) :])
    except UnicodeDecodeError:
        raise ProtobufError("proto: invalid UTF-8") from None
    except (OverflowError, struct.error) as error:
        raise ProtobufError(f"proto: {error}") from None


def _object(text: bytes) -> Plain:
    whole = _numbered(text)
    type_meta = _numbered(_bytes(whole.get(1, b"")))
    api_version, kind = _text(type_meta.get(1, b"")), _text(type_meta.get(2, b""))
    object_type = type_of_object(api_version, kind) or type_of("meta", "v1", kind)
    if object_type is None or not _message_of(object_type).fields:
        raise NoMessageError(api_version, kind)
    read = _read(_message_of(object_type), _bytes(whole.get(2, b"")))
    return {"kind": kind, "apiVersion": api_version, **read}


def _read(message: _Message, text: bytes) -> Plain:
    read: Plain = {}
    for number, value, _ in fields_of(text):
        field = message.fields.get(number)
        if isinstance(field, _Message):
            read |= _read(field, _bytes(value))
        elif field is not None:
            _read_field(field, value, read)
    return read


def _read_field(field: Field, value: int | bytes, read: Plain) -> None:
    if isinstance(field.type, MapType):
        parts = _numbered(_bytes(value))
        key = _text(parts.get(1, b""))
        element = field.type.element
        read.setdefault(field.name, {})[key] = _value(element, parts.get(2, _nothing(element)))
    elif isinstance(field.type, ListType):
        read.setdefault(field.name, []).append(_value(field.type.element, value))
    else:
        read[field.name] = _value(field.type, value)


def _nothing(value_type: ValueType) -> int | bytes:
    is_number = isinstance(value_type, Scalar) and value_type.form in _NUMBERS
    return 0 if is_number else b""


def _value(value_type: ValueType, value: int | bytes) -> Any:
    if isinstance(value_type, Scalar) and value_type.form in _NUMBERS:
        number = _signed(_int(value))
        return bool(number) if value_type.form == "bool" else number
    text = _bytes(value)
    if isinstance(value_type, Scalar):
        return _scalar(value_type.form, text)
    if isinstance(value_type, ObjectType):
        return _read(_message_of(value_type), text)
    # A list in a map is a message of its own, with the entries in its first field.
    return [_text(entry) for number, entry, _ in fields_of(text) if number == 1]


def _scalar(form: str, text: bytes) -> Any:
    if form == "float64":
        return struct.unpack("<d", text or bytes(8))[0]
    if form in ("bytes", "string"):
        return (text if form == "string" else base64.b64encode(text)).decode()
    parts = _numbered(text)
    if form == "quantity":
        return _text(parts.get(1, b"0"))
    if form == "intOrString":
        is_text = parts.get(1)
        return _text(parts.get(3, b"")) if is_text else _signed(_int(parts.get(2, 0)))
    if form == "any":
        return _json(_bytes(parts.get(1, b"")))
    return _time(parts, has_fraction=form == "microTime") if text else None


def _json(text: bytes) -> Any:
    try:
        return msgspec.json.decode(text) if text else None
    except msgspec.DecodeError as error:
        raise ProtobufError(str(error)) from None


def _time(parts: dict[int, int | bytes], *, has_fraction: bool) -> str | None:
    seconds = _signed(_int(parts.get(1, 0)))
    if seconds == _NO_SECONDS:
        return None
    nanoseconds = _signed(_int(parts.get(2, 0)))
    moment = _EPOCH + timedelta(seconds=seconds, microseconds=nanoseconds // 1000)
    return micro_time(moment) if has_fraction else second_time(moment)


def _numbered(text: bytes) -> dict[int, int | bytes]:
    return {number: value for number, value, _ in fields_of(text)}


def _signed(number: int) -> int:
    """Negative numbers come as their complement in 64 bits."""
    return number - (1 << 64) if number >> 63 else number


def _int(value: int | bytes) -> int:
    if isinstance(value, bytes):
        raise ProtobufError("proto: wrong wireType = 2")
    return value


def _bytes(value: int | bytes) -> bytes:
    if isinstance(value, int):
        raise ProtobufError("proto: wrong wireType = 0")
    return value


def _text(value: int | bytes) -> str:
    return _bytes(value).decode()
