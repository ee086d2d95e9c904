"""FieldFault is one thing that is wrong with an object, at one field; several make a refusal.

Upstream: staging/src/k8s.io/apimachinery/pkg/util/validation/field/errors.go,
          staging/src/k8s.io/apimachinery/pkg/api/errors (v1.36)
Differs:  nothing.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import Any, Final, NamedTuple

from kubesched.apiserver.resources import Resource
from kubesched.apiserver.status import StatusError, cause, details_of

DUPLICATE: Final = "Duplicate"
FORBIDDEN: Final = "Forbidden"
INTERNAL: Final = "Internal"
INVALID: Final = "Invalid"
NOT_FOUND: Final = "NotFound"
NOT_SUPPORTED: Final = "NotSupported"
REQUIRED: Final = "Required"
TOO_FEW: Final = "TooFew"
TOO_LONG: Final = "TooLong"
TOO_MANY: Final = "TooMany"
TYPE_INVALID: Final = "TypeInvalid"

_WORDS: Final = {
    DUPLICATE: "Duplicate value",
    FORBIDDEN: "Forbidden",
    INTERNAL: "Internal error",
    INVALID: "Invalid value",
    NOT_FOUND: "Not found",
    NOT_SUPPORTED: "Unsupported value",
    REQUIRED: "Required value",
    TOO_FEW: "Too few",
    TOO_LONG: "Too long",
    TOO_MANY: "Too many",
    TYPE_INVALID: "Invalid value",
}
_WITHOUT_VALUE: Final = frozenset((REQUIRED, FORBIDDEN, TOO_LONG, INTERNAL))
_HTML: Final = str.maketrans({"<": "\\u003c", ">": "\\u003e", "&": "\\u0026"})


class FieldFault(NamedTuple):
    """What is wrong with a field.

    Attributes:
        type: One of this module's constants.
        field: The path, such as `spec.containers[0].name`.
        bad_value: What stands there, as JSON has it.
        detail: The rule that it breaks; "" if the type says all.
    """

    type: str
    field: str
    bad_value: Any = None
    detail: str = ""

    @property
    def message(self) -> str:
        """What is wrong, without the path."""
        words = _WORDS[self.type]
        if self.type not in _WITHOUT_VALUE:
            words = f"{words}: {_shown(self.bad_value)}"
        return f"{words}: {self.detail}" if self.detail else words

    @property
    def reason(self) -> str:
        """What is wrong, in one word for programs."""
        return "InternalError" if self.type == INTERNAL else f"FieldValue{self.type}"

    def __str__(self) -> str:
        return f"{self.field}: {self.message}"


def _shown(value: Any) -> str:
    if isinstance(value, str):
        return go_quoted(value)
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False).translate(_HTML)


def go_quoted(text: str) -> str:
    """Return a text in quotes, as Go's `%q` prints it."""
    return f'"{"".join(map(_go_character, text))}"'


_GO_ESCAPES: Final = {
    '"': '\\"',
    "\\": "\\\\",
    "\a": "\\a",
    "\b": "\\b",
    "\f": "\\f",
    "\n": "\\n",
    "\r": "\\r",
    "\t": "\\t",
    "\v": "\\v",
}


def _go_character(character: str) -> str:
    escaped = _GO_ESCAPES.get(character)
    if escaped is not None:
        return escaped
    if character.isprintable():
        return character
    code = ord(character)
    if code < 0x80:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def invalid(field: str, value: Any, detail: str) -> FieldFault:
    """The value breaks a rule."""
    return FieldFault(INVALID, field, value, detail)


def required(field: str, detail: str = "") -> FieldFault:
    """The value is missing."""
    return FieldFault(REQUIRED, field, "", detail)


def forbidden(field: str, detail: str) -> FieldFault:
    """The value may not be given here."""
    return FieldFault(FORBIDDEN, field, "", detail)


def failed(field: str, detail: str) -> FieldFault:
    """The value could not be looked at."""
    return FieldFault(INTERNAL, field, "", detail)


def duplicate(field: str, value: Any, detail: str = "") -> FieldFault:
    """The value stands there twice."""
    return FieldFault(DUPLICATE, field, value, detail)


def not_found(field: str, value: Any) -> FieldFault:
    """The value names something that is not there."""
    return FieldFault(NOT_FOUND, field, value)


def not_supported(field: str, value: Any, supported: Iterable[str]) -> FieldFault:
    """The value is none of a few words.

    Args:
        field: The path.
        value: What stands there.
        supported: The words, in the order they are told.
    """
    words = ", ".join(map(go_quoted, supported))
    return FieldFault(NOT_SUPPORTED, field, value, f"supported values: {words}" if words else "")


def too_long(field: str, length_max: int, unit: str = "bytes") -> FieldFault:
    """The text is too long."""
    return FieldFault(TOO_LONG, field, "", f"may not be more than {length_max} {unit}")


def too_many(field: str, count: int, count_max: int) -> FieldFault:
    """The list has too many entries."""
    noun = "item" if count_max == 1 else "items"
    return FieldFault(TOO_MANY, field, count, f"must have at most {count_max} {noun}")


def each(field: str, value: Any, details: Sequence[str]) -> list[FieldFault]:
    """Return one fault for each rule that a value breaks."""
    return [FieldFault(INVALID, field, value, detail) for detail in details]


def aggregate(messages: Iterable[str]) -> str:
    """Return one message for several, each told once."""
    distinct = list(dict.fromkeys(messages))
    return distinct[0] if len(distinct) == 1 else f"[{', '.join(distinct)}]"


def invalid_status(resource: Resource, name: str, faults: Sequence[FieldFault]) -> StatusError:
    """Return the refusal of an object with these faults."""
    return invalid_kind(resource.group, resource.kind, name, faults)


def invalid_kind(group: str, kind: str, name: str, faults: Sequence[FieldFault]) -> StatusError:
    """Return the refusal of an object of a kind with these faults."""
    causes = [cause(fault.reason, fault.field, fault.message) for fault in faults]
    qualified = f"{kind}.{group}" if group else kind
    message = f'{qualified} "{name}" is invalid: {aggregate(map(str, faults))}'
    return StatusError(422, "Invalid", message, details_of(group, kind, name, causes))
