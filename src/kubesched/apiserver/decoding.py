"""Bodies of requests: from bytes to objects of the path's kind, with their defaults.

kubectl and Kubernetes' own components send protobuf; the tables of the schema have the numbers of
the fields.

Upstream: staging/src/k8s.io/apiserver/pkg/endpoints/handlers (create.go, update.go, rest.go),
          staging/src/k8s.io/apimachinery/pkg/runtime/serializer, sigs.k8s.io/json,
          staging/src/k8s.io/api/*/*/generated.proto (v1.36)
Rejects:  what is neither JSON, YAML nor protobuf, objects of other kinds or versions, values that
          do not fit, and unknown and repeated fields if the client is strict.
Differs:  kinds without numbers in the tables are refused in protobuf form; scheduling reads none of
          them. Protobuf is read and never written: answers are JSON, which every such client
          accepts too.
"""

from __future__ import annotations

import base64
import json
import struct
from collections.abc import Iterator, Mapping
from datetime import timedelta
from functools import cache
from typing import Any, Final, TypeAlias

import msgspec

from kubesched.api.integers import wrap
from kubesched.api.json_syntax import JsonSyntaxError
from kubesched.api.media_types import JSON, PROTOBUF, YAML
from kubesched.api.protobuf_wire import MAGIC, ProtobufError, bytes_of, fields_of
from kubesched.api.times import EPOCH, micro_time, second_time
from kubesched.api.yaml_syntax import Repeating, YamlError, load_documents, members
from kubesched.apiserver import defaults
from kubesched.apiserver.plain import Plain, decode, encode, in_utf_8, json_word
from kubesched.apiserver.request import ApiRequest, Operation
from kubesched.apiserver.resources import RESOURCES, Resource, Resources
from kubesched.apiserver.schema import ListType, MapType, ObjectType, known_type, type_of
from kubesched.apiserver.status import StatusError, bad_request, unsupported_media_type
from kubesched.apiserver.values import JSON_SCHEMA, Field, Place, Scalar, SchemaError, ValueType

# Protobuf.

_NUMBERS: Final = ("bool", "int32", "int64")
_Tags: TypeAlias = tuple[int, ...]


@cache
def _fields_of(object_type: ObjectType) -> Mapping[_Tags, Field]:
    """Return the fields of a type by the numbers that lead to them; embedded ones have several."""
    return {field.tag: field for field in object_type.fields.values() if field.tag}


def decode_protobuf(text: bytes) -> Plain:
    """Return the object of a body, with kind and version if it has them.

    Raises ProtobufError if it holds no object, StatusError if its kind is not read in this form.
    """
    if not text.startswith(MAGIC):
        raise ProtobufError("provided data does not appear to be a protobuf message")
    try:
        return _object(text[len(MAGIC) :])
    except UnicodeDecodeError:
        raise ProtobufError("proto: invalid UTF-8") from None
    except (OverflowError, struct.error, msgspec.DecodeError) as error:
        raise ProtobufError(f"proto: {error}") from None


def _object(text: bytes) -> Plain:
    whole = _numbered(text)
    type_meta = _numbered(bytes_of(whole.get(1, b"")))
    api_version, kind = _text(type_meta.get(1, b"")), _text(type_meta.get(2, b""))
    object_type = type_of(api_version, kind) or type_of("meta/v1", kind)
    if object_type is None or not _fields_of(object_type):
        if RESOURCES.find_kind(api_version, kind) is not None:
            raise unsupported_media_type(JSON, YAML)
        raise ProtobufError(f'no kind "{kind}" is registered for version "{api_version}"')
    read = _read(_fields_of(object_type), bytes_of(whole.get(2, b"")))
    return {"kind": kind, "apiVersion": api_version, **read}


def _read(fields: Mapping[_Tags, Field], text: bytes, above: _Tags = ()) -> Plain:
    """Return the fields of a message, or of one that is embedded in those `above`."""
    read: Plain = {}
    for number, value, _ in fields_of(text):
        tag = (*above, number)
        if tag in fields:
            _read_field(fields[tag], value, read)
        elif any(tag == one[: len(tag)] for one in fields):
            read |= _read(fields, bytes_of(value), tag)
    return read


def _read_field(field: Field, value: int | bytes, read: Plain) -> None:
    if isinstance(field.type, MapType):
        parts = _numbered(bytes_of(value))
        found = _value(field.type.element, parts.get(2, b""))
        read.setdefault(field.name, {})[_text(parts.get(1, b""))] = found
    elif isinstance(field.type, ListType):
        read.setdefault(field.name, []).append(_value(field.type.element, value))
    else:
        found = _value(field.type, value)
        if found or not field.is_left_out:
            read[field.name] = found


def _value(value_type: ValueType, value: int | bytes) -> Any:
    if isinstance(value_type, Scalar) and value_type.form in _NUMBERS:
        number = wrap(_int(value))
        return bool(number) if value_type.form == "bool" else number
    text = bytes_of(value)
    if value_type is JSON_SCHEMA:
        value_type = known_type("apiextensions_v1", "JSONSchemaProps")
    if isinstance(value_type, Scalar):
        return _scalar(value_type.form, text)
    if isinstance(value_type, ObjectType):
        read = _read(_fields_of(value_type), text)
        # Go writes the fields of a union in order; the last one is the one that counts.
        return [None, *read.values()][-1] if value_type.is_union else read
    # A list in a map is a message of its own, with the entries in its first field.
    return [_text(entry) for number, entry, _ in fields_of(text) if number == 1]


def _scalar(form: str, text: bytes) -> Any:
    if form == "float64":
        number: float = struct.unpack("<d", text or bytes(8))[0]
        return int(number) if number.is_integer() else number
    if form in ("bytes", "string"):
        return (text if form == "string" else base64.b64encode(text)).decode()
    parts = _numbered(text)
    if form == "quantity":
        return _text(parts.get(1, b"0"))
    if form == "intOrString":
        is_text = parts.get(1)
        return _text(parts.get(3, b"")) if is_text else wrap(_int(parts.get(2, 0)))
    if form == "any":
        return msgspec.json.decode(bytes_of(parts.get(1, b"null")))
    return _time(parts, form) if text else None


def _time(parts: dict[int, int | bytes], form: str) -> str:
    seconds, nanoseconds = (wrap(_int(parts.get(number, 0))) for number in (1, 2))
    moment = EPOCH + timedelta(seconds=seconds, microseconds=nanoseconds // 1000)
    return micro_time(moment) if form == "microTime" else second_time(moment)


def _numbered(text: bytes) -> dict[int, int | bytes]:
    return {number: value for number, value, _ in fields_of(text)}


def _int(value: int | bytes) -> int:
    if isinstance(value, bytes):
        raise ProtobufError("proto: wrong wireType = 2")
    return value


def _text(value: int | bytes) -> str:
    return bytes_of(value).decode()


# JSON and YAML.

_SUMMARY_MAX: Final = 30
_UNPARSABLE: Final = "couldn't get version/kind; json parse error"
_TYPE_META: Final = (
    "Go value of type struct { "
    'APIVersion string "json:\\"apiVersion,omitempty\\""; Kind string "json:\\"kind,omitempty\\"" }'
)
# Versions with the same fields, by kind.
_OLD_VERSIONS: Final = {"Eviction": "policy/v1beta1"}
_SCHEME: Final = "pkg/api/legacyscheme/scheme.go:30"


class BodyError(Exception):
    """A body is not an object; the message is upstream's."""


# From bytes to an object of some kind.


def read_object(request: ApiRequest, kind: str) -> Plain:
    """Return the object that a request carries; raises StatusError if it carries none."""
    try:
        return parsed(request.body, request.content_type)
    except BodyError as error:
        message = f"the object provided is unrecognized (must be of type {kind}): {error}"
        raise bad_request(f"{message} ({_summary(request.body)})") from None


def parsed(text: bytes, media_type: str) -> Plain:
    """Return the object of a body; without a media type it is JSON.

    Raises BodyError if it is not an object, StatusError if it is in a form that is not read.
    """
    try:
        if media_type == PROTOBUF:
            return decode_protobuf(text)
        if media_type == YAML:
            value = next((document for _, document in load_documents(text.decode())), None)
        elif media_type in {"", JSON}:
            value = decode(text)
        else:
            raise unsupported_media_type()
    except ProtobufError as error:
        raise BodyError(str(error)) from None
    except JsonSyntaxError as error:
        raise BodyError(f"{_UNPARSABLE}: {error}") from None
    except YamlError as error:
        # Go counts from 0, and shows no 0.
        line = f"line {error.line - 1 or 1}: " if error.line else ""
        raise BodyError(f"yaml: {line}{error}") from None
    except UnicodeDecodeError as error:
        raise BodyError(f"yaml: {error}") from None
    if not isinstance(value, dict | None):
        word = json_word(value)
        raise BodyError(f"{_UNPARSABLE}: json: cannot unmarshal {word} into {_TYPE_META}")
    return value or {}


def _summary(text: bytes) -> str:
    """Return the beginning of a body: objects as text, everything else in hexadecimal."""
    if not text:
        return "<empty>"
    more = " ..." if len(text) > _SUMMARY_MAX else ""
    begin = text[:_SUMMARY_MAX]
    return (begin.decode(errors="replace") if text[:1] == b"{" else begin.hex()) + more


# From an object to one of the kind that the path names.


def decoded(operation: Operation, resources: Resources, resource: Resource) -> Plain:
    """Return the object that a request carries, with its defaults.

    `resource` is what the object should be; raises StatusError if it is not. Unknown and repeated
    fields become warnings of the operation.
    """
    request = operation.request
    value = read_object(request, resource.kind)
    if request.content_type in ("", JSON) and is_longer(operation, value):
        value = _reread(request.body) or {}
    _set_kind(value, resources, resource)
    try:
        read, problems = defaults.completed(resource.type, value)
    except SchemaError as error:
        raise defaults.unfit(resource, str(error)) from None
    if problems and operation.validation == "Strict":
        raise defaults.unfit(resource, f"strict decoding error: {', '.join(problems)}")
    if operation.validation != "Ignore":
        request.warnings.extend(problems)
    return read


def _set_kind(value: Plain, resources: Resources, resource: Resource) -> None:
    """Fill in kind and version; raises StatusError if they differ from those of the path."""
    kind, version = value.get("kind"), value.get("apiVersion")
    if resource.definition is not None and not (kind and version):
        raise bad_request("custom resources need a kind and an apiVersion")
    kind = resource.kind if kind in (None, "") else kind
    version = resource.api_version if version in (None, "") else version
    if kind != resource.kind or version not in (resource.api_version, _OLD_VERSIONS.get(kind)):
        raise _other_kind(kind, version, resources, resource)
    value |= {"kind": resource.kind, "apiVersion": resource.api_version}


def _other_kind(kind: Any, version: Any, resources: Resources, resource: Resource) -> StatusError:
    if not isinstance(kind, str) or not isinstance(version, str):
        return bad_request(_UNPARSABLE)
    short = version.rpartition("/")[2]
    found = resources.find_kind(version, kind)
    if found is not None and found.kind == resource.kind:
        return bad_request(
            f"the API version in the data ({version}) does not match the expected API version "
            f"({resource.api_version})"
        )
    if found is None:
        why = f'no kind "{kind}" is registered for version "{version}" in scheme "{_SCHEME}"'
    else:
        package = resource.group.partition(".")[0] or "core"
        why = f"converting ({short}.{kind}) to ({package}.{resource.kind}): unknown conversion"
    return bad_request(f'{kind} in version "{short}" cannot be handled as a {resource.kind}: {why}')


# Repeated fields.


def is_longer(operation: Operation, sent: object) -> bool:
    """Return whether a body may repeat fields that a client wants to know of.

    It may if it is longer than what was read of it; bodies with spaces are longer too.
    """
    if operation.validation == "Ignore":
        return False
    return len(operation.request.body.rstrip()) != len(encode(sent))


def _reread(text: bytes) -> Any:
    """Return the value of a JSON text, in which objects know the names that they repeat."""
    return json.loads(in_utf_8(text), object_pairs_hook=members)


def patch_problems(patch: bytes) -> list[str]:
    """Return the repeated fields of a patch, and the unknown ones of its operations."""
    operations = _reread(patch)
    found = _repeated(operations, None)
    if not isinstance(operations, list):
        return list(found)
    unknown = (
        f'unknown field "[{index}].{name}"'
        for index, operation in enumerate(operations)
        if isinstance(operation, dict)
        for name in operation
        if name not in ("op", "path", "from", "value")
    )
    return [f"json patch {text}" for text in (*found, *unknown)]


def _repeated(value: Any, place: Place | None) -> Iterator[str]:
    if isinstance(value, Repeating):
        yield from (f'duplicate field "{Place(place, name)}"' for name in value.repeated)
    if isinstance(value, dict | list):
        for step, one in value.items() if isinstance(value, dict) else enumerate(value):
            yield from _repeated(one, Place(place, step))
