"""Bodies of requests: from bytes to objects of the path's kind, with their defaults.

Upstream: staging/src/k8s.io/apiserver/pkg/endpoints/handlers (create.go, update.go, rest.go),
          staging/src/k8s.io/apimachinery/pkg/runtime/serializer, sigs.k8s.io/json (v1.36)
Rejects:  what is neither JSON, YAML nor protobuf, objects of other kinds or versions, values that
          do not fit, and unknown and repeated fields if the client is strict.
Differs:  kinds without numbers in the tables are refused in protobuf form, as custom resources
          are. Repeated keys at the top of a YAML body are not reported.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator
from typing import Any, Final

import msgspec

from kubesched.api.json_syntax import json_text_error
from kubesched.api.protobuf_wire import ProtobufError
from kubesched.api.yaml_syntax import Repeating, YamlError, load_documents, members
from kubesched.apiserver import defaults, protobuf, schema
from kubesched.apiserver.operation import Operation
from kubesched.apiserver.plain import Plain, encode, json_word
from kubesched.apiserver.protobuf import NoMessageError
from kubesched.apiserver.request import JSON, ApiRequest
from kubesched.apiserver.resources import RESOURCES, Resource, Resources
from kubesched.apiserver.schema import ObjectType
from kubesched.apiserver.status import StatusError, bad_request, unsupported_media_type
from kubesched.apiserver.values import Place, SchemaError

YAML: Final = "application/yaml"
PROTOBUF: Final = "application/vnd.kubernetes.protobuf"
_SUMMARY_MAX: Final = 30
_TYPE_META: Final = (
    "Go value of type struct { "
    'APIVersion string "json:\\"apiVersion,omitempty\\""; Kind string "json:\\"kind,omitempty\\"" }'
)
_SCHEME: Final = "pkg/api/legacyscheme/scheme.go:30"
_PATCH_FIELDS: Final = frozenset(("op", "path", "from", "value"))


class BodyError(Exception):
    """A body is no object; the message is upstream's."""


# From bytes to an object of some kind.


def read_object(request: ApiRequest, kind: str) -> Plain:
    """Return the object that a request carries.

    Raises:
        StatusError: It carries none.
    """
    try:
        return parsed(request.body, request.content_type)
    except BodyError as error:
        message = f"the object provided is unrecognized (must be of type {kind}): {error}"
        raise bad_request(f"{message} ({_summary(request.body)})") from None


def parsed(text: bytes, media_type: str) -> Plain:
    """Return the object of a body.

    Args:
        text: The body.
        media_type: Of the body; "" for JSON.

    Raises:
        BodyError: It is none.
        StatusError: It is in a form that is not read.
    """
    if media_type == PROTOBUF:
        return _from_protobuf(text)
    if media_type not in {"", JSON, YAML}:
        raise unsupported_media_type()
    value = _from_yaml(text) if media_type == YAML else _from_json(text)
    if value is None:
        value = {}
    if not isinstance(value, dict):
        raise BodyError(
            "couldn't get version/kind; json parse error: json: cannot unmarshal "
            f"{json_word(value)} "
            f"into {_TYPE_META}"
        )
    return value


def _from_protobuf(text: bytes) -> Plain:
    try:
        return protobuf.decode(text)
    except NoMessageError as error:
        if RESOURCES.find_kind(error.api_version, error.kind) is not None:
            raise unsupported_media_type(JSON, YAML) from None
        raise BodyError(str(error)) from None
    except ProtobufError as error:
        raise BodyError(str(error)) from None


def _from_json(text: bytes) -> Any:
    try:
        return msgspec.json.decode(text)
    except (msgspec.DecodeError, RecursionError):
        why = json_text_error(text) or "unexpected end of JSON input"
        raise BodyError(f"couldn't get version/kind; json parse error: {why}") from None


def _from_yaml(text: bytes) -> Any:
    try:
        return next((document for _, document in load_documents(text.decode())), None)
    except YamlError as error:
        # Go counts from 0, and shows no 0.
        line = f"line {error.line - 1 or 1}: " if error.line else ""
        raise BodyError(f"yaml: {line}{error}") from None
    except UnicodeDecodeError as error:
        raise BodyError(f"yaml: {error}") from None


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

    Args:
        operation: The request; problems with fields are added to its warnings.
        resources: What is served.
        resource: What the object should be.

    Raises:
        StatusError: It is something else.
    """
    sent = read_object(operation.request, resource.kind)
    value = typed(sent, resources, resource)
    object_type = resource.type
    try:
        read, unknown = schema.decoded(object_type, value)
    except SchemaError as error:
        raise unfit(resource, str(error)) from None
    if operation.validation != "Ignore" and (unknown or is_longer(operation, sent)):
        # Only texts can repeat fields.
        is_text = operation.request.content_type != PROTOBUF
        found = field_problems(object_type, value, operation.request.body if is_text else None)
        if found and operation.validation == "Strict":
            raise unfit(resource, f"strict decoding error: {', '.join(found)}")
        operation.warnings.extend(found)
    defaults.fill_in(object_type, read)
    return read


def unfit(resource: Resource, why: str) -> StatusError:
    """Return the error for an object that cannot be one of its kind."""
    kind = resource.kind
    return bad_request(
        f'{kind} in version "{resource.version}" cannot be handled as a {kind}: {why}'
    )


def typed(value: Plain, resources: Resources, resource: Resource) -> Plain:
    """Return an object with kind and version, which may be left out.

    Raises:
        StatusError: They are other ones than the path's.
    """
    kind = value.get("kind") or resource.kind
    version = value.get("apiVersion") or resource.api_version
    if (kind, version) != (resource.kind, resource.api_version):
        raise _other_kind(kind, version, resources, resource)
    return {**value, "kind": resource.kind, "apiVersion": resource.api_version}


def _other_kind(kind: Any, version: Any, resources: Resources, resource: Resource) -> StatusError:
    if not isinstance(kind, str) or not isinstance(version, str):
        return bad_request("couldn't get version/kind; json parse error")
    found = resources.find_kind(version, kind)
    if found is None or found.kind != resource.kind:
        why = f'no kind "{kind}" is registered for version "{version}" in scheme "{_SCHEME}"'
        short = version.rpartition("/")[2]
        if found is not None:
            package = resource.group.partition(".")[0] or "core"
            why = f"converting ({short}.{kind}) to ({package}.{resource.kind}): unknown conversion"
        return bad_request(
            f'{kind} in version "{short}" cannot be handled as a {resource.kind}: {why}'
        )
    return bad_request(
        f"the API version in the data ({version}) does not match the expected API version "
        f"({resource.api_version})"
    )


# Unknown and repeated fields.


def is_longer(operation: Operation, sent: object) -> bool:
    """Return whether a body is longer than what was read of it, as if a field is repeated.

    False is certain; True is not, since bodies with spaces are longer, too.
    """
    return len(operation.request.body.rstrip()) != len(encode(sent))


def patch_problems(
    object_type: ObjectType, obj: Plain, patch: bytes, *, is_merged: bool
) -> list[str]:
    """Return the unknown and repeated fields of a patch.

    Args:
        object_type: Of what is patched.
        obj: The object with the patch applied, before unknown fields are dropped.
        patch: The text of the patch.
        is_merged: Whether the patch is a strategic merge, whose unknown fields come in order of
            their texts and not of the object's fields.
    """
    operations = json.loads(patch, object_pairs_hook=members)
    found = list(_repeated(operations, None))
    if isinstance(operations, list):
        unknown = (
            f'unknown field "[{index}].{name}"'
            for index, operation in enumerate(operations)
            if isinstance(operation, dict)
            for name in operation
            if name not in _PATCH_FIELDS
        )
        found = [f"json patch {text}" for text in (*found, *unknown)]
    unknown_fields = schema.problems_of(object_type, obj if is_merged else _in_order(obj))
    return list(dict.fromkeys([*found, *(sorted(unknown_fields) if is_merged else unknown_fields)]))


def field_problems(object_type: ObjectType, obj: Plain, text: bytes | None) -> list[str]:
    """Return the unknown and repeated fields of a body.

    Args:
        object_type: Of the body.
        obj: The decoded body.
        text: The body; None if repeated fields are not looked for.
    """
    with contextlib.suppress(ValueError):
        # Other texts than JSON are taken as they were read.
        obj = obj if text is None else json.loads(text, object_pairs_hook=members)
    return schema.problems_of(object_type, obj)


def _repeated(value: Any, place: Place | None) -> Iterator[str]:
    """Yield the repeated fields of any value."""
    if isinstance(value, Repeating):
        yield from (f'duplicate field "{Place(place, name)}"' for name in value.repeated)
    if isinstance(value, dict | list):
        for step, one in value.items() if isinstance(value, dict) else enumerate(value):
            yield from _repeated(one, Place(place, step))


def _in_order(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _in_order(value[name]) for name in sorted(value)}
    if isinstance(value, list):
        return [_in_order(one) for one in value]
    return value
