"""Field errors: the path of a field, and what is wrong there, with upstream's messages.

Upstream: staging/src/k8s.io/apimachinery/pkg/util/validation/field/errors.go (v1.36)
Differs:  objects in messages are shown as JSON, without the fields of Go's structs.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

import msgspec

from kubesched.api.go_text import GO_JSON_ESCAPES, go_quote

NOT_FOUND: Final = "FieldValueNotFound"
_DUPLICATE: Final = "FieldValueDuplicate"
_FORBIDDEN: Final = "FieldValueForbidden"
_INTERNAL: Final = "InternalError"
_INVALID: Final = "FieldValueInvalid"
_NOT_SUPPORTED: Final = "FieldValueNotSupported"
_REQUIRED: Final = "FieldValueRequired"
_TOO_LONG: Final = "FieldValueTooLong"


class FieldError(msgspec.Struct, frozen=True):
    """What is wrong with a field.

    Attributes:
        path: Such as `spec.containers[0].name`; "" is the whole object or file.
        message: What is wrong.
        reason: The API's reason for the error.
        value: The invalid value, if the message shows it.
    """

    path: str
    message: str
    reason: str = _INVALID
    value: object = None

    def __str__(self) -> str:
        return f"{self.path}: {self.message}" if self.path else self.message


def invalid(path: str, value: object, detail: str) -> FieldError:
    """Return the error of a value that breaks a rule."""
    return _with_value(path, _INVALID, "Invalid value", value, detail)


def required(path: str, detail: str = "") -> FieldError:
    """Return the error of a missing value."""
    return FieldError(path, _with_detail("Required value", detail), _REQUIRED)


def forbidden(path: str, detail: str) -> FieldError:
    """Return the error of a value that must not be set here."""
    return FieldError(path, _with_detail("Forbidden", detail), _FORBIDDEN)


def duplicate(path: str, value: object, detail: str = "") -> FieldError:
    """Return the error of a value that must be unique."""
    return _with_value(path, _DUPLICATE, "Duplicate value", value, detail)


def duplicates(values: Sequence[object], path: str, field: str = "") -> Iterator[FieldError]:
    """Yield an error for each value that is not the first of its kind; "" is not a value.

    `path` is that of the list; `field` is the value's field in an element, "" for the element.
    """
    for i, value in enumerate(values):
        if value != "" and value in values[:i]:
            yield duplicate(child(path, i, field) if field else child(path, i), value)


def not_found(path: str, value: object, detail: str = "") -> FieldError:
    """Return the error of a value that refers to something that does not exist."""
    return _with_value(path, NOT_FOUND, "Not found", value, detail)


def not_supported(path: str, value: object, supported: Iterable[str]) -> FieldError:
    """Return the error of a value that is not in the list of supported ones."""
    listed = ", ".join(map(go_quote, supported))
    detail = f"supported values: {listed}" if listed else ""
    return _with_value(path, _NOT_SUPPORTED, "Unsupported value", value, detail)


def too_long(path: str, length_max: int) -> FieldError:
    """Return the error of a text of more than `length_max` bytes."""
    return FieldError(path, f"Too long: may not be more than {length_max} bytes", _TOO_LONG)


def internal_error(path: str, detail: str) -> FieldError:
    """Return the error of a value that could not be checked."""
    return FieldError(path, _with_detail("Internal error", detail), _INTERNAL)


def aggregate(messages: Iterable[str]) -> str:
    """Join messages without duplicates, as upstream does."""
    distinct = list(dict.fromkeys(messages))
    return distinct[0] if len(distinct) == 1 else f"[{', '.join(distinct)}]"


def is_below(path: str, places: Iterable[str]) -> bool:
    """Whether a path is one of `places` or below it."""
    return any(path == place or path.startswith((f"{place}.", f"{place}[")) for place in places)


def camel_case(name: str) -> str:
    """Return the name of a field in JSON, such as `hostPort` for `host_port`."""
    first, *words = name.split("_")
    return first + "".join(map(str.title, words))


def child(path: str, *names: str | int) -> str:
    """Return the path of a field (a name) or of an element (an index) below `path`."""
    for name in names:
        step = f"[{name}]" if isinstance(name, int) else f".{name}"
        path = path + step if path else step.removeprefix(".")
    return path


def render(value: object) -> str:
    """Return a value as upstream prints it in a field error: quoted text or compact JSON."""
    if isinstance(value, str):
        return go_quote(value)
    text = json.dumps(value, separators=(",", ":"), ensure_ascii=False, default=str)
    return text.translate(GO_JSON_ESCAPES)


def _with_value(path: str, reason: str, words: str, value: object, detail: str) -> FieldError:
    message = _with_detail(f"{words}: {render(value)}", detail)
    return FieldError(path, message, reason, value)


def _with_detail(text: str, detail: str) -> str:
    return f"{text}: {detail}" if detail else text


class ConfigError(Exception):
    """A configuration is invalid; `errors` has all its field errors, in the order of detection."""

    def __init__(self, errors: Iterable[FieldError]) -> None:
        self.errors: tuple[FieldError, ...] = tuple(errors)
        super().__init__("\n".join(str(field_error) for field_error in self.errors))
