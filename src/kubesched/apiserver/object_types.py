"""Object types tell the fields of every kind that is served, and how each is read and written.

They stand in `fields/`, one file per version of a group:

    RestartPolicy = string              a name for a type
    PodSpec                             an object, and its fields below
      volumes []Volume ?                left out where it is empty
      hostname string = "none"          filled in where it is empty
      creationTimestamp Time ~          left out where it is zero
      httpGet *HTTPGetAction ? in Probe the field of an object embedded in this one
      metadata meta_v1/ObjectMeta       a type of another file

A `*` marks a value that may be absent; without it an absent value is written as its zero, unless
it is left out.

Upstream: staging/src/k8s.io/api/*/*/types.go,
          staging/src/k8s.io/apimachinery/pkg/apis/meta/v1 (v1.36)
Differs:  of two fields of the same name in one body only the last is read; they are not merged.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from typing import Any, Final

import msgspec

from kubesched.apiserver.plain import Plain
from kubesched.apiserver.reading import DecodeError, Place, Reading
from kubesched.apiserver.value_types import (
    ROUNDED_QUANTITY,
    SIMPLE,
    SPECIAL,
    ListType,
    MapType,
    ValueType,
)

_FIELD: Final = re.compile(
    r"  (?P<name>\S+) (?P<pointer>\*?)(?P<type>\S+)(?: (?P<flag>[?~]))?"
    r"(?: in (?P<embedded>\S+))?(?: = (?P<default>\S+))?"
)
_MAP: Final = re.compile(r"map\[([^\]]+)\](.*)")


class Field(msgspec.Struct, frozen=True):
    """One field of an object.

    Attributes:
        name: As in JSON.
        owner: The struct it belongs to.
        go_path: The name as Go's messages have it.
        type: Of its value.
        is_pointer: Whether it may be absent, unlike an empty value.
        is_left_out: Whether it is not written when it is empty.
        is_always_written: Whether it is written even if nobody gave it.
        default: What fills it in where it is absent or, if it has to be there, empty; None if
            nothing does.
    """

    name: str
    owner: str
    go_path: str
    type: ValueType
    is_pointer: bool
    is_left_out: bool
    is_always_written: bool
    default: Any = None


class ObjectType:
    """A type of objects.

    Attributes:
        name: File and name, such as `core_v1/PodSpec`.
        go_name: Package and name, such as `v1.PodSpec`.
        fields: By name, in Go's order.
    """

    is_struct = True

    def __init__(self, name: str, fields: Mapping[str, Field]) -> None:
        self.name = name
        file, _, short = name.partition("/")
        self.go_name = f"{file.rpartition('_')[2]}.{short}"
        self.fields = fields
        self._always = [field for field in fields.values() if field.is_always_written]

    def zero(self) -> Plain:
        """Return what is written of an object that nobody gave."""
        return {
            field.name: None if field.is_pointer else field.type.zero() for field in self._always
        }

    def read(self, value: Any, place: Place | None, reading: Reading) -> Plain:
        """Return the object as the server writes it, without fields that are not known."""
        if not isinstance(value, dict):
            reading.note_misfit(value, self.go_name, place)
            return self.zero()
        read: Plain = {}
        for name, one in value.items():
            field = self.fields.get(name)
            if field is None:
                reading.note_unknown(place, name)
            elif one is not None:
                result = field.type.read(one, Place(place, field), reading)
                if result is None or (not result and field.is_left_out):
                    continue
                read[name] = result
        for field in self._always:
            if field.name not in read:
                read[field.name] = None if field.is_pointer else field.type.zero()
        return read


def decoded(object_type: ObjectType, value: Any) -> tuple[Plain, list[str]]:
    """Return a body as the server writes it, and the paths of the fields that are not known.

    Raises:
        DecodeError: A value does not fit.
    """
    reading = Reading(object_type.go_name)
    read = object_type.read(value, None, reading)
    if reading.misfit:
        raise DecodeError(reading.misfit)
    return read, reading.unknown


def type_of(group: str, version: str, kind: str) -> ObjectType | None:
    """Return the type of a kind, None if its fields are not known."""
    file = f"{group.partition('.')[0] or 'core'}_{version}"
    if kind not in _lines(file):
        return None
    found = _named(file, kind)
    assert isinstance(found, ObjectType), "kinds are objects"
    return found


@cache
def _lines(file: str) -> Mapping[str, list[str]]:
    """Return the lines of each type of a file: its fields, or the type it is a name for."""
    source = files(__package__).joinpath("fields", f"{file}.txt")
    if not source.is_file():
        return {}
    types: dict[str, list[str]] = {}
    fields: list[str] = []
    for line in source.read_text(encoding="utf-8").splitlines():
        if line.startswith("  "):
            fields.append(line)
        elif line:
            name, _, meaning = line.partition(" = ")
            fields = types[name] = [meaning] if meaning else []
    return types


@cache
def _named(file: str, name: str) -> ValueType:
    lines = _lines(file)[name]
    if lines and not lines[0].startswith(" "):
        go_name = f"{file.rpartition('_')[2]}.{name}"
        return _type(lines[0], file, go_name)
    fields = (_field(line, file, name) for line in lines)
    return ObjectType(f"{file}/{name}", {field.name: field for field in fields})


def _type(text: str, file: str, go_name: str = "") -> ValueType:
    if text.startswith("[]"):
        return ListType(_type(text[2:], file))
    if text in SIMPLE or text == "types.UID":
        return SIMPLE.get(text, SIMPLE["string"])(go_name or text)
    if text in SPECIAL:
        return SPECIAL[text]
    match = _MAP.fullmatch(text)
    if match is not None:
        if go_name.endswith(".ResourceList"):
            return MapType(ROUNDED_QUANTITY, go_name)
        return MapType(_type(match[2], file), go_name, _type(match[1], file).go_name)
    other, _, name = text.rpartition("/")
    return _named(other or file, name)


def _field(line: str, file: str, owner: str) -> Field:
    match = _FIELD.fullmatch(line)
    assert match is not None, f"{file}: {line}"
    name, embedded, default = match["name"], match["embedded"], match["default"]
    is_pointer, value_type = bool(match["pointer"]), _type(match["type"], file)
    is_bare_struct = value_type.is_struct and not is_pointer
    return Field(
        name=name,
        owner=owner,
        go_path=f"{embedded}.{name}" if embedded else name,
        type=value_type,
        is_pointer=is_pointer,
        is_left_out=bool(match["flag"]) and not is_pointer and not value_type.is_struct,
        is_always_written=not match["flag"] or (is_bare_struct and match["flag"] == "?"),
        default=None if default is None else msgspec.json.decode(default),
    )
