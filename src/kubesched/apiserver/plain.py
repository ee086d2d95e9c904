"""Plain objects: dicts as in JSON, which keep unknown fields.

Upstream: staging/src/k8s.io/apimachinery/pkg/apis/meta/v1/unstructured (v1.36)
Invariants: stored objects are never changed in place; a change is made to a copy.
Differs:  nothing.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, TypeAlias

import msgspec

from kubesched.api.json_syntax import JsonSyntaxError, json_text_error

Plain: TypeAlias = dict[str, Any]

_ENCODER = msgspec.json.Encoder()
_DECODER = msgspec.json.Decoder()


def get(value: Plain, *path: str) -> Any:
    """Return the value at a path of field names, None if any part of it is missing."""
    found: Any = value
    for name in path:
        if not isinstance(found, dict):
            return None
        found = found.get(name)
    return found


def without(value: Plain, *names: str) -> Plain:
    """Return an object without some of its fields."""
    return {name: one for name, one in value.items() if name not in names}


def only(value: Plain, *names: str) -> Plain:
    """Return some fields of an object, those that it has."""
    return {name: value[name] for name in names if name in value}


def with_fields_of(value: Plain, other: Plain, *names: str) -> Plain:
    """Return an object with some fields as another object has them, or does not have them."""
    return without(value, *names) | only(other, *names)


def entries(value: Plain, path: str, *names: str) -> Iterator[tuple[str, Any]]:
    """Yield the entries of lists of an object, each with its path; `path` is the object's."""
    for name in names:
        for index, entry in enumerate(value.get(name) or ()):
            yield f"{path}.{name}[{index}]", entry


def deep_copy(value: Any) -> Any:
    """Return a copy that shares no object and no list with the original."""
    if isinstance(value, dict):
        return {name: deep_copy(child) for name, child in value.items()}
    if isinstance(value, list):
        return [deep_copy(child) for child in value]
    return value


def encode(value: Any) -> bytes:
    """Return compact JSON."""
    return _ENCODER.encode(value)


def decode(text: bytes) -> Any:
    """Return the value of a JSON text; raises JsonSyntaxError if it is not JSON."""
    try:
        return _DECODER.decode(text)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        why = json_text_error(text)
        if not why and (read := in_utf_8(text)) != text:
            return decode(read)
        raise JsonSyntaxError(why or "unexpected end of JSON input") from None


def in_utf_8(text: bytes) -> bytes:
    """Return a text with U+FFFD in place of bytes that are not UTF-8, as Go reads it."""
    return text.decode(errors="replace").encode()


def json_word(value: Any) -> str:
    """Return what Go's decoder calls a value of this type."""
    words: dict[type, str] = {dict: "object", list: "array", str: "string", bool: "bool"}
    return words.get(type(value), "number")
