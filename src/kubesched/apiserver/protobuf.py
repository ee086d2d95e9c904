"""Reads bodies in Kubernetes' protobuf form, which kubectl and Kubernetes' own components send.

The fields of all messages stand in `protobuf_messages.txt`: a line per message, and below it a line
per field with its number, name and type; `[]` is a list, `{}` a map with text for keys, `inline`
an object whose fields stand in the one around it. Types of other files come with the file's name.

Upstream: staging/src/k8s.io/apimachinery/pkg/runtime/serializer/protobuf,
          staging/src/k8s.io/api/*/*/generated.proto (v1.36)
Rejects:  what is no such body, and kinds whose messages are not known.
Differs:  bodies are read and never written: answers are JSON, which every such client takes too.
"""

from __future__ import annotations

import base64
import struct
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta
from functools import cache
from importlib.resources import files
from typing import Any, Final, NamedTuple

import msgspec

from kubesched.api.protobuf_wire import MAGIC, ProtobufError, fields_of
from kubesched.apiserver.plain import Plain

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
# The zero of Go's times, which stands for none.
_NO_SECONDS: Final = -62135596800


class NoMessageError(ProtobufError):
    """The fields of a kind are not known.

    Attributes:
        api_version, kind: As the body says.
    """

    def __init__(self, api_version: str, kind: str) -> None:
        super().__init__(f'no kind "{kind}" is registered for version "{api_version}"')
        self.api_version = api_version
        self.kind = kind


class _Field(NamedTuple):
    name: str
    type: str
    is_list: bool = False
    is_map: bool = False
    is_inline: bool = False


def decode(text: bytes) -> Plain:
    """Return the object of a body, with kind and version if it has them.

    Raises:
        NoMessageError: Its kind is not known.
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
    type_meta: dict[int, bytes] = {}
    raw = b""
    for number, value in _parts(text):
        if number == 1 and isinstance(value, bytes):
            type_meta = {at: one for at, one in _parts(value) if isinstance(one, bytes)}
        elif number == 2 and isinstance(value, bytes):
            raw = value
    api_version, kind = type_meta.get(1, b"").decode(), type_meta.get(2, b"").decode()
    message = _message_of(api_version, kind)
    return {"kind": kind, "apiVersion": api_version, **_message(message, raw)}


def _message_of(api_version: str, kind: str) -> str:
    group, _, version = api_version.rpartition("/")
    own = f"{group.partition('.')[0] or 'core'}_{version}/{kind}"
    for name in (own, f"meta_v1/{kind}"):
        if name in _messages():
            return name
    raise NoMessageError(api_version, kind)


def _parts(text: bytes) -> Iterator[tuple[int, int | bytes]]:
    """Yield the fields of a message: number, and number or bytes."""
    for number, value, _ in fields_of(text):
        yield number, value


def _message(name: str, text: bytes) -> Plain:
    fields = _messages()[name]
    read: Plain = {}
    for number, value in _parts(text):
        field = fields.get(number)
        if field is None:
            continue
        if field.is_map:
            key, one = _entry(field.type, value)
            read.setdefault(field.name, {})[key] = one
        elif field.is_list:
            read.setdefault(field.name, []).append(_value(field.type, value))
        elif field.is_inline:
            read |= _value(field.type, value)
        else:
            read[field.name] = _value(field.type, value)
    return read


def _entry(type_: str, value: int | bytes) -> tuple[str, Any]:
    parts = dict(_parts(_bytes(value)))
    return _bytes(parts.get(1, b"")).decode(), _value(type_, parts.get(2, b""))


def _bytes(value: int | bytes) -> bytes:
    if isinstance(value, int):
        raise ProtobufError("proto: wrong wireType = 0")
    return value


def _value(type_: str, value: int | bytes) -> Any:
    if type_ == "bool":
        return bool(value)
    if type_ in {"int32", "int64"}:
        # Negative numbers come as their complement in 64 bits.
        number = value if isinstance(value, int) else 0
        return number - (1 << 64) if number >> 63 else number
    text = _bytes(value)
    if type_ == "string":
        return text.decode()
    if type_ == "bytes":
        return base64.b64encode(text).decode()
    if type_ == "double":
        return struct.unpack("<d", text or bytes(8))[0]
    special = _SPECIAL.get(type_)
    return special(text) if special is not None else _message(type_, text)


def _quantity(text: bytes) -> str:
    return _bytes(dict(_parts(text)).get(1, b"0")).decode()


def _int_or_string(text: bytes) -> int | str:
    parts = dict(_parts(text))
    if parts.get(1):
        return _bytes(parts.get(3, b"")).decode()
    number: int = _value("int32", parts.get(2, 0))
    return number


def _moment(text: bytes) -> datetime | None:
    parts = dict(_parts(text))
    seconds = _value("int64", parts.get(1, 0))
    if seconds == _NO_SECONDS:
        return None
    return _EPOCH + timedelta(
        seconds=seconds, microseconds=_value("int64", parts.get(2, 0)) // 1000
    )


def _time(text: bytes) -> str | None:
    moment = _moment(text)
    # An empty message is a time that nobody gave.
    return moment.strftime("%Y-%m-%dT%H:%M:%SZ") if moment is not None and text else None


def _micro_time(text: bytes) -> str | None:
    moment = _moment(text)
    return moment.strftime("%Y-%m-%dT%H:%M:%S.%fZ") if moment is not None and text else None


def _raw(text: bytes) -> Any:
    inner = _bytes(dict(_parts(text)).get(1, b""))
    try:
        return msgspec.json.decode(inner) if inner else None
    except msgspec.DecodeError as error:
        raise ProtobufError(str(error)) from None


def _texts(text: bytes) -> list[str]:
    return [_bytes(value).decode() for number, value in _parts(text) if number == 1]


def _duration(text: bytes) -> str:
    return f"{_value('int64', dict(_parts(text)).get(1, 0)) / 1e9:g}s"


_SPECIAL: Final = {
    "authentication_v1/ExtraValue": _texts,
    "authorization_v1/ExtraValue": _texts,
    "certificates_v1/ExtraValue": _texts,
    "intstr/IntOrString": _int_or_string,
    "meta_v1/Duration": _duration,
    "meta_v1/FieldsV1": _raw,
    "meta_v1/MicroTime": _micro_time,
    "meta_v1/Time": _time,
    "resource/Quantity": _quantity,
    "runtime/RawExtension": _raw,
}


@cache
def _messages() -> Mapping[str, Mapping[int, _Field]]:
    """Return the fields of every message by number."""
    messages: dict[str, dict[int, _Field]] = {}
    fields: dict[int, _Field] = {}
    own = ""
    text = files(__package__).joinpath("protobuf_messages.txt").read_text(encoding="utf-8")
    for line in text.splitlines():
        if not line.startswith(" "):
            fields = messages[line] = {}
            own = line.partition("/")[0]
            continue
        number, name, type_, *flags = line.split()
        fields[int(number)] = _field(name, type_, own, is_inline=bool(flags))
    return messages


_SCALARS: Final = frozenset(("bool", "bytes", "double", "int32", "int64", "string"))


def _field(name: str, type_: str, own: str, *, is_inline: bool) -> _Field:
    is_list, is_map = type_.startswith("[]"), type_.startswith("{}")
    bare = type_[2:] if is_list or is_map else type_
    if bare not in _SCALARS and "/" not in bare:
        bare = f"{own}/{bare}"
    return _Field(name, bare, is_list, is_map, is_inline)
