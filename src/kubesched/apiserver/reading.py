"""Reading is what goes wrong while one body is read: fields nobody knows, values that do not fit.

A value of the wrong kind is noted and reading goes on, since a text that is no quantity or no time,
further on, is told instead.

Upstream: sigs.k8s.io/json (v1.36's)
Differs:  nothing.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple, Protocol, TypeAlias

import msgspec

_WORDS: Final = {dict: "object", list: "array", str: "string", bool: "bool"}


class DecodeError(ValueError):
    """A value does not fit its type; the message is upstream's."""


class FieldName(Protocol):
    """What a place needs to know of a field."""

    @property
    def name(self) -> str:
        """As in JSON."""

    @property
    def go_path(self) -> str:
        """The name with those of the structs it is embedded by."""

    @property
    def owner(self) -> str:
        """The name of the struct it belongs to."""


Step: TypeAlias = "FieldName | int | str"


class Place(NamedTuple):
    """Where a value stands: a field, a position in a list, or a key of a map, in another place."""

    outer: Place | None
    step: Step


class Reading(msgspec.Struct):
    """What was found while a body was read.

    Attributes:
        go_type: The type of the whole body, for messages.
        unknown: Paths of fields that the types do not have, in the order of the body.
        misfit: The first value of the wrong kind, in upstream's words; "" if there is none.
    """

    go_type: str
    unknown: list[str] = []
    misfit: str = ""

    def note_misfit(self, value: Any, go_type: str, place: Place | None) -> None:
        """Remember a value of the wrong kind, if it is the first."""
        self.misfit = self.misfit or misfit(value, go_type, place)

    def note_unknown(self, place: Place | None, name: str) -> None:
        """Remember a field that is not known, once."""
        path = shown_path(Place(place, name))
        if path not in self.unknown:
            self.unknown.append(path)


def misfit(value: Any, go_type: str, place: Place | None) -> str:
    """Return upstream's words for a value of the wrong kind."""
    word = _WORDS.get(type(value), "number")
    if word == "number" and go_type.startswith(("int", "uint")):
        word = f"number {value}"
    owner, path = _go_path(place)
    where = f"Go struct field {owner}.{path}" if owner else "Go value"
    return f"json: cannot unmarshal {word} into {where} of type {go_type}"


def _go_path(place: Place | None) -> tuple[str, str]:
    """Return the innermost struct and the fields on the way to it: Go tells no positions."""
    names: list[str] = []
    owner = ""
    while place is not None:
        if not isinstance(place.step, int | str):
            owner = owner or place.step.owner
            names.append(place.step.go_path)
        place = place.outer
    return owner, ".".join(reversed(names))


def shown_path(place: Place | None) -> str:
    """Return a path as people read it: `spec.containers[0].image`."""
    parts: list[str] = []
    while place is not None:
        step = place.step
        if isinstance(step, int):
            parts.append(f"[{step}]")
        else:
            parts.append(f".{step if isinstance(step, str) else step.name}")
        place = place.outer
    return "".join(reversed(parts)).removeprefix(".")


def is_int(value: Any, bits: int) -> bool:
    """Whether a value is an integer of so many bits; True and 1.0 are none."""
    return type(value) is int and -(1 << (bits - 1)) <= value < 1 << (bits - 1)
