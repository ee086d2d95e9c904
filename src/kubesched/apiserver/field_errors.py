"""FieldError is one error in an object, at one field; several make a refusal.

Upstream: staging/src/k8s.io/apimachinery/pkg/util/validation/field/errors.go,
          staging/src/k8s.io/apimachinery/pkg/api/errors (v1.36)
Differs:  objects in messages are shown as they are sent, without the fields of Go's structs.
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
TOO_LONG: Final = "TooLong"
TOO_MANY: Final = "TooMany"

_WORDS: Final = {
    DUPLICATE: "Duplicate value",
    FORBIDDEN: "Forbidden",
    INTERNAL: "Internal error",
    INVALID: "Invalid value",
    NOT_FOUND: "Not found",
    NOT_SUPPORTED: "Unsupported value",
    REQUIRED: "Required value",
    TOO_LONG: "Too long",
    TOO_MANY: "Too many",
}
_WITHOUT_VALUE: Final = frozenset((REQUIRED, FORBIDDEN, TOO_LONG, INTERNAL))
_HTML: Final = str.maketrans({"<": "\\u003c", ">": "\\u003e", "&": "\\u0026"})


class FieldError(NamedTuple):
    """One error.

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


class FieldErrors(list[FieldError]):
    """The errors of an object, in the order in which they were found."""

    def invalid(self, field: str, value: Any, detail: str) -> None:
        """Add that a value breaks a rule."""
        self.append(FieldError(INVALID, field, value, detail))

    def each(self, field: str, value: Any, details: Iterable[str]) -> None:
        """Add every rule that a value breaks."""
        self.extend(FieldError(INVALID, field, value, detail) for detail in details)

    def required(self, field: str, detail: str = "") -> None:
        """Add that a value is missing."""
        self.append(FieldError(REQUIRED, field, "", detail))

    def forbidden(self, field: str, detail: str) -> None:
        """Add that a value may not be given here."""
        self.append(FieldError(FORBIDDEN, field, "", detail))

    def failed(self, field: str, detail: str) -> None:
        """Add that a value could not be looked at."""
        self.append(FieldError(INTERNAL, field, "", detail))

    def duplicate(self, field: str, value: Any, detail: str = "") -> None:
        """Add that a value stands there twice."""
        self.append(FieldError(DUPLICATE, field, value, detail))

    def not_found(self, field: str, value: Any, detail: str = "") -> None:
        """Add that a value names something that is not there."""
        self.append(FieldError(NOT_FOUND, field, value, detail))

    def not_supported(self, field: str, value: Any, supported: Iterable[str]) -> None:
        """Add that a value is none of a few words."""
        words = ", ".join(map(go_quoted, supported))
        detail = f"supported values: {words}" if words else ""
        self.append(FieldError(NOT_SUPPORTED, field, value, detail))

    def too_long(self, field: str, length_max: int) -> None:
        """Add that a text is too long."""
        self.append(FieldError(TOO_LONG, field, "", f"may not be more than {length_max} bytes"))

    def too_many(self, field: str, count: int, count_max: int) -> None:
        """Add that a list has too many entries."""
        noun = "item" if count_max == 1 else "items"
        detail = f"must have at most {count_max} {noun}"
        self.append(FieldError(TOO_MANY, field, count, detail))

    def drop_below(self, path: str) -> None:
        """Forget what was found below a path, where something above it makes it pointless."""
        below = (f"{path}.", f"{path}[")
        self[:] = [error for error in self if not error.field.startswith(below)]

    def changed(self, field: str, new: Any, old: Any) -> None:
        """Add that a value has changed and may not, if it has."""
        is_nothing = not new and not old and not isinstance(new, bool | int)
        if new != old and not is_nothing:
            self.invalid(field, new, "field is immutable")


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


def aggregate(messages: Iterable[str]) -> str:
    """Return one message for several, each once."""
    distinct = list(dict.fromkeys(messages))
    return distinct[0] if len(distinct) == 1 else f"[{', '.join(distinct)}]"


def invalid_status(resource: Resource, name: str, errors: Sequence[FieldError]) -> StatusError:
    """Return the refusal of an object with these errors."""
    return invalid_kind(resource.group, resource.kind, name, errors)


def invalid_kind(group: str, kind: str, name: str, errors: Sequence[FieldError]) -> StatusError:
    """Return the refusal of an object of a kind with these errors."""
    causes = [cause(error.reason, error.field, error.message) for error in errors]
    qualified = f"{kind}.{group}" if group else kind
    message = f'{qualified} "{name}" is invalid: {aggregate(map(str, errors))}'
    return StatusError(422, "Invalid", message, details_of(group, kind, name, causes))
