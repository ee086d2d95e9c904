"""Object types tell the fields of every kind that is served: how they are read, written and merged.

They stand in `fields/`, one file per version of a group:

    RestartPolicy = string              a name for a type
    PodSpec                             an object, and its fields below
      volumes []Volume ?                left out where it is empty
      hostname string = "none"          filled in where it is empty
      creationTimestamp Time ~          left out where it is zero
      httpGet *HTTPGetAction ? in Probe the field of an object embedded in this one
      metadata meta_v1/ObjectMeta       a type of another file
      ports []Port ? : map(a,b) merge(a) how patches treat it
    ObjectReference atomic              server-side apply owns it as a whole

A `*` marks a value that may be absent; without it an absent value is written as its zero, unless
it is left out. What patches need to know stands behind a colon:

    map(a,b)    server-side apply tells the entries of the list apart by these keys
    set         server-side apply owns each entry of the list
    atomic      server-side apply owns the map or object as a whole
    granular    it does not, although the type says so
    merge(a)    strategic merge patches merge the list by this key; `merge` alone: as a set
    replace     strategic merge patches replace the object

Upstream: staging/src/k8s.io/api/*/*/types.go, api/openapi-spec/v3,
          staging/src/k8s.io/apimachinery/pkg/apis/meta/v1 (v1.36)
Differs:  of two fields of the same name in one body only the last is read; they are not merged. Of
          schemas of custom resources, what `items`, `additionalItems`, `additionalProperties` and
          `dependencies` hold is kept as it is sent.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache, cached_property
from importlib.resources import files
from typing import Any, Final, NamedTuple

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
    r"(?: in (?P<embedded>\S+))?(?: = (?P<default>\S+))?(?: : (?P<notes>.+))?"
)
_NOTES: Final = frozenset(("map", "set", "atomic", "granular", "merge", "replace"))
_NOTE: Final = re.compile(r"(\w+)(?:\(([^)]*)\))?")
_MAP: Final = re.compile(r"map\[([^\]]+)\](.*)")


class Merging(msgspec.Struct, frozen=True):
    """How patches treat a field.

    Attributes:
        list_keys: What tells entries of the list apart for server-side apply; () if nothing.
        is_set: Whether server-side apply owns each entry of the list.
        is_atomic: Whether server-side apply owns the whole value; None if the value's type says.
        is_merged: Whether strategic merge patches merge the list.
        merge_key: What tells entries of a merged list apart; "" for lists of scalars.
        is_replaced: Whether strategic merge patches replace the object.
    """

    list_keys: tuple[str, ...] = ()
    is_set: bool = False
    is_atomic: bool | None = None
    is_merged: bool = False
    merge_key: str = ""
    is_replaced: bool = False


NO_MERGING: Final = Merging()


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
            nothing does. It also stands for an absent key of a list entry.
        merging: How patches treat it.
    """

    name: str
    owner: str
    go_path: str
    type: ValueType
    is_pointer: bool
    is_left_out: bool
    is_always_written: bool
    default: Any = None
    merging: Merging = NO_MERGING


class ObjectType:
    """A type of objects.

    Attributes:
        name: File and name, such as `core_v1/PodSpec`.
        short_name: Without the file, such as `PodSpec`.
        go_name: Package and name, such as `v1.PodSpec`.
        is_atomic: Whether server-side apply owns it as a whole.
    """

    is_struct = True

    def __init__(self, file: str, name: str, source: _Source) -> None:
        self.name = f"{file}/{name}"
        self.short_name = name
        self.go_name = _go_name(file, name)
        self.is_atomic = source.is_atomic
        self._file = file
        self._lines = source.lines

    @cached_property
    def fields(self) -> Mapping[str, Field]:
        """Its fields by name, in Go's order; read late, since types may hold themselves."""
        fields = (_field(line, self._file, self.short_name) for line in self._lines)
        return {field.name: field for field in fields}

    @cached_property
    def _always(self) -> list[Field]:
        return [field for field in self.fields.values() if field.is_always_written]

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
    if kind not in _sources(file):
        return None
    found = _named(file, kind)
    assert isinstance(found, ObjectType), "kinds are objects"
    return found


def type_of_object(api_version: str, kind: str) -> ObjectType | None:
    """Return the type of a kind, None if its fields are not known.

    Args:
        api_version: Group and version, as objects have them.
        kind: As objects have it.
    """
    group, _, version = api_version.rpartition("/")
    return type_of(group, version, kind)


class _Source(NamedTuple):
    """What the table says of one type.

    Attributes:
        meaning: The type that it is a name for; "" for objects.
        is_atomic: Whether server-side apply owns it as a whole.
        lines: One for each field.
    """

    meaning: str
    is_atomic: bool
    lines: list[str]


@cache
def _sources(file: str) -> Mapping[str, _Source]:
    """Return what a file says of its types, by name; nothing if there is no such file."""
    source = files(__package__).joinpath("fields", f"{file}.txt")
    if not source.is_file():
        return {}
    types: dict[str, _Source] = {}
    lines: list[str] = []
    for line in source.read_text(encoding="utf-8").splitlines():
        if line.startswith("  "):
            lines.append(line)
        elif line:
            before, _, meaning = line.partition(" = ")
            name, _, flag = before.partition(" ")
            lines = []
            types[name] = _Source(meaning, flag == "atomic", lines)
    return types


@cache
def _named(file: str, name: str) -> ValueType:
    source = _sources(file)[name]
    if source.meaning:
        return _type(source.meaning, file, _go_name(file, name))
    return ObjectType(file, name, source)


def _go_name(file: str, name: str) -> str:
    return f"{file.rpartition('_')[2]}.{name}"


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
        merging=_merging(match["notes"]) if match["notes"] else NO_MERGING,
    )


def _merging(text: str) -> Merging:
    notes: dict[str, str] = dict(_NOTE.findall(text))
    assert notes.keys() <= _NOTES, text
    return Merging(
        list_keys=tuple(notes["map"].split(",")) if "map" in notes else (),
        is_set="set" in notes,
        is_atomic="atomic" in notes if notes.keys() & {"atomic", "granular"} else None,
        is_merged="merge" in notes,
        merge_key=notes.get("merge", ""),
        is_replaced="replace" in notes,
    )
