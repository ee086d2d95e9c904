"""Bodies of requests, from bytes to objects of the kind that the path asks for.

Upstream: staging/src/k8s.io/apiserver/pkg/endpoints/handlers (create.go, update.go, rest.go),
          staging/src/k8s.io/apimachinery/pkg/runtime/serializer (v1.36)
Rejects:  what is neither JSON nor YAML, objects of other kinds, values that do not fit.
Differs:  kinds whose messages are not known are refused in protobuf form, as custom resources are.
"""

from __future__ import annotations

from typing import Any, Final

import msgspec
import yaml

from kubesched.api.json_syntax import text_fault
from kubesched.api.protobuf_wire import ProtobufError
from kubesched.api.yaml_syntax import YamlError, load_documents
from kubesched.apiserver import protobuf
from kubesched.apiserver.plain import Plain
from kubesched.apiserver.protobuf import NoMessageError
from kubesched.apiserver.request import JSON, Request
from kubesched.apiserver.resources import RESOURCES
from kubesched.apiserver.status import bad_request, unsupported_media_type

# The library that upstream's parser was made from words faults as upstream does.
_LIBYAML: Final = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
YAML: Final = "application/yaml"
PROTOBUF: Final = "application/vnd.kubernetes.protobuf"
_SUMMARY_MAX: Final = 30
_GO_WORDS: Final = {list: "array", str: "string", bool: "bool"}
_TYPE_META: Final = (
    "Go value of type struct { "
    'APIVersion string "json:\\"apiVersion,omitempty\\""; Kind string "json:\\"kind,omitempty\\"" }'
)


class BodyError(Exception):
    """A body is no object; the message is upstream's."""


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
        return _protobuf(text)
    if media_type not in {"", JSON, YAML}:
        raise unsupported_media_type()
    value = _yaml(text) if media_type == YAML else _json(text)
    if value is None:
        value = {}
    if not isinstance(value, dict):
        word = _GO_WORDS.get(type(value), "number")
        raise BodyError(
            f"couldn't get version/kind; json parse error: json: cannot unmarshal {word} "
            f"into {_TYPE_META}"
        )
    return value


def _protobuf(text: bytes) -> Plain:
    try:
        return protobuf.decode(text)
    except NoMessageError as error:
        if RESOURCES.find_kind(error.api_version, error.kind) is not None:
            raise unsupported_media_type(JSON, YAML) from None
        raise BodyError(str(error)) from None
    except ProtobufError as error:
        raise BodyError(str(error)) from None


def _json(text: bytes) -> Any:
    try:
        return msgspec.json.decode(text)
    except (msgspec.DecodeError, RecursionError):
        fault = text_fault(text) or "unexpected end of JSON input"
        raise BodyError(f"couldn't get version/kind; json parse error: {fault}") from None


def _yaml(text: bytes) -> Any:
    try:
        for _, document in load_documents(text.decode()):
            return document
    except (YamlError, UnicodeDecodeError):
        raise BodyError(_yaml_fault(text)) from None
    return None


def _yaml_fault(text: bytes) -> str:
    try:
        yaml.load(text, _LIBYAML)  # noqa: S506  # builds plain values only
    except yaml.MarkedYAMLError as error:
        where = _yaml_line(error)
        return f"yaml: line {where}: {error.problem}" if where else f"yaml: {error.problem}"
    except yaml.YAMLError as error:
        return f"yaml: {error}"
    return "yaml: unmarshal errors"


def _yaml_line(error: yaml.MarkedYAMLError) -> int:
    """Return the line as Go's parser counts it, which begins with 0 and shows none for it."""
    if error.problem_mark is not None and error.problem_mark.line:
        return error.problem_mark.line + isinstance(error, yaml.scanner.ScannerError)
    return error.context_mark.line if error.context_mark is not None else 0


def summary(text: bytes) -> str:
    """Return the beginning of a body as errors show it."""
    if not text:
        return "<empty>"
    more = " ..." if len(text) > _SUMMARY_MAX else ""
    begin = text[:_SUMMARY_MAX]
    return (begin.decode(errors="replace") if text[:1] == b"{" else begin.hex()) + more


def read_object(request: Request, kind: str) -> Plain:
    """Return the object that a request carries.

    Raises:
        StatusError: It carries none.
    """
    try:
        return parsed(request.body, request.content_type)
    except BodyError as error:
        message = f"the object provided is unrecognized (must be of type {kind}): {error}"
        raise bad_request(f"{message} ({summary(request.body)})") from None


def internal_package(group: str) -> str:
    """Return the package that a group's internal types live in."""
    return group.partition(".")[0] if group else "core"
