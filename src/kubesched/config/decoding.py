"""Strict decoding of plain values into frozen structs; collects every field error.

Durations are in Go's notation ("1m30s"), and stored in seconds.

Upstream: apimachinery's strict JSON decoding, as kube-scheduler's codecs use it; metav1.Duration
          (v1.36)
Rejects:  unknown fields, values of the wrong type or out of the type's range.
Differs:  errors about unknown fields suggest the nearest known one; a missing required field is
          reported by the decoder.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Mapping
from functools import cache
from typing import (
    Annotated,
    Any,
    Final,
    NamedTuple,
    TypeVar,
    cast,
    get_args,
    get_origin,
    get_type_hints,
)

import msgspec
from msgspec import Meta

from kubesched.api.field_errors import FieldError, child, invalid, render, required
from kubesched.api.go_text import go_quote, parse_go_duration

# Durations.

DURATION_FORMAT = "go-duration"
"""The format of durations in JSON Schemas."""

DurationSeconds = Annotated[float, Meta(extra_json_schema={"format": DURATION_FORMAT})]
"""Seconds, written as a Go duration in configuration files."""


def parse_duration(text: str) -> float:
    """Return a Go duration in seconds; raises ValueError with Go's message."""
    return parse_go_duration(text) / 10**9


# Structs.

T = TypeVar("T")

_TYPES: Final = {"str": "text", "int": "integer", "float": "number", "bool": "true or false"}
_TYPE: Final = re.compile(r"`(\w+)([^`]*)`")


def _type_word(found: re.Match[str]) -> str:
    return _TYPES.get(found[1], found[1]) + found[2]


class _Field(NamedTuple):
    name: str
    type: Any
    required: bool


@cache
def _fields_of(cls: type[msgspec.Struct]) -> Mapping[str, _Field]:
    """Return a struct's fields by their encoded names; to find their types takes long."""
    hints = get_type_hints(cls, include_extras=True)
    return {
        field.encode_name: _Field(field.name, hints[field.name], field.required)
        for field in msgspec.structs.fields(cls)
    }


# The result for a value that cannot be decoded; its parent uses the default instead.
_FAULTY = object()


def decode_struct(cls: type[T], raw: object, path: str, errors: list[FieldError]) -> T:
    """Decode a mapping into a struct and append its field errors to `errors`.

    Fields with errors have their defaults in the result, so that the caller can continue to check
    it. JSON null means absent, as in Go.
    """
    value = _decode_struct(cls, raw, path, errors)
    return cast("T", _zero(cls) if value is _FAULTY else value)


def _decode(annotation: Any, raw: object, path: str, errors: list[FieldError]) -> Any:
    """Decode a value by its type; `raw` is not None."""
    if annotation == DurationSeconds:
        return _decode_duration(raw, path, errors)
    origin, arguments = get_origin(annotation), get_args(annotation)
    if len(arguments) == 2 and type(None) in arguments:
        inner = next(argument for argument in arguments if argument is not type(None))
        return _decode(inner, raw, path, errors)
    if origin in {tuple, list}:
        return _decode_sequence(origin, arguments[0], raw, path, errors)
    if origin is dict and arguments[1] is not Any:
        return _decode_mapping(arguments[1], raw, path, errors)
    if _is_struct(annotation):
        return _decode_struct(annotation, raw, path, errors)
    return _decode_leaf(annotation, raw, path, errors)


def _decode_struct(cls: Any, raw: object, path: str, errors: list[FieldError]) -> object:
    if not isinstance(raw, Mapping):
        errors.append(invalid(path, _printable(raw), f"must be a mapping, not {_kind_of(raw)}"))
        return _FAULTY
    fields = _fields_of(cls)
    values: dict[str, Any] = {}
    for name, value in raw.items():
        place = child(path, str(name))
        if name not in fields:
            errors.append(FieldError(place, _unknown_field(str(name), place, fields)))
        elif value is not None:
            field = fields[name]
            decoded = _decode(field.type, value, place, errors)
            if decoded is not _FAULTY:
                values[field.name] = decoded
    for name, field in fields.items():
        if field.required and raw.get(name) is None:
            errors.append(required(child(path, name)))
        if field.required and field.name not in values:
            values[field.name] = _zero(field.type)
    return cls(**values)


def _unknown_field(name: str, place: str, fields: Mapping[str, object]) -> str:
    folded = {known.lower(): known for known in fields}
    near = difflib.get_close_matches(name.lower(), folded, n=1)
    hint = f", did you mean {go_quote(folded[near[0]])}?" if near else ""
    return f"unknown field {go_quote(place)}{hint}"


def _decode_sequence(
    origin: Callable[[list[Any]], Any], item: Any, raw: object, path: str, errors: list[FieldError]
) -> object:
    if not isinstance(raw, list | tuple):
        errors.append(invalid(path, _printable(raw), f"must be a list, not {_kind_of(raw)}"))
        return _FAULTY
    return origin(
        [_decode_item(item, value, child(path, i), errors) for i, value in enumerate(raw)]
    )


def _decode_mapping(item: Any, raw: object, path: str, errors: list[FieldError]) -> object:
    if not isinstance(raw, Mapping):
        errors.append(invalid(path, _printable(raw), f"must be a mapping, not {_kind_of(raw)}"))
        return _FAULTY
    return {
        str(key): _decode_item(item, value, child(path, str(key)), errors)
        for key, value in raw.items()
    }


def _decode_item(item: Any, raw: object, path: str, errors: list[FieldError]) -> object:
    """Decode an element of a list or mapping; null and errors give Go's zero value."""
    if raw is None:
        return _decode_struct(item, {}, path, errors) if _is_struct(item) else _zero(item)
    value = _decode(item, raw, path, errors)
    return _zero(item) if value is _FAULTY else value


def _decode_duration(raw: object, path: str, errors: list[FieldError]) -> object:
    if not isinstance(raw, str):
        errors.append(invalid(path, raw, 'must be a duration such as "15s"'))
        return _FAULTY
    try:
        return parse_duration(raw)
    except ValueError as error:
        errors.append(invalid(path, raw, str(error)))
        return _FAULTY


def _decode_leaf(annotation: Any, raw: object, path: str, errors: list[FieldError]) -> object:
    try:
        return msgspec.convert(raw, annotation)
    except msgspec.ValidationError as error:
        words = _TYPE.sub(_type_word, str(error).partition(" - at ")[0])
        remedy = "; write it in quotes" if words.startswith("Expected text, got") else ""
        errors.append(invalid(path, _printable(raw), words[:1].lower() + words[1:] + remedy))
        return _FAULTY


def _zero(annotation: Any) -> object:
    """Return Go's zero value of a type: empty, 0, False, or None."""
    while get_origin(annotation) is Annotated:
        annotation = get_args(annotation)[0]
    if _is_struct(annotation):
        fields = _fields_of(annotation).values()
        return annotation(**{f.name: _zero(f.type) for f in fields if f.required})
    origin = get_origin(annotation) or annotation
    return origin() if origin in {str, int, float, bool, bytes, dict, list, tuple} else None


def _is_struct(annotation: object) -> bool:
    return isinstance(annotation, type) and issubclass(annotation, msgspec.Struct)


def _kind_of(raw: object) -> str:
    if isinstance(raw, bool):
        return "a boolean"
    if isinstance(raw, str):
        return "text"
    if isinstance(raw, int | float):
        return "a number"
    return "a list" if isinstance(raw, list | tuple) else "a mapping"


def _printable(raw: object) -> object:
    """Return the value for a message; its first 200 characters if it is longer."""
    text = render(raw)
    return raw if len(text) <= 200 else f"{text[:200]}…"
