"""The schema: the fields of all built-in kinds, with their types, defaults, rules and merge keys.

The tables are in `fields/`, one file per version of a group:

    ResourceList = map[string]RoundedQuantity   a name for a type
    ConfigMap object                          a kind: it has `kind`, `apiVersion` and `metadata`
    Pod kind                                  the same, with a PodSpec and a PodStatus besides
    PodSpec                                   an object type, and its fields below
      1 volumes []Volume ?                    left out where it is empty
      3 restartPolicy string ? = "Always"     filled in where it is empty
      4 count int64 ? = 1 if(mode,Exact)      filled in if another field has one of these values
      10 nodeName string ? | is(subdomain)    checked by rules
      creationTimestamp Time ~                left out where it is zero
      metadata meta_v1/ObjectMeta             a type of another file
      5 ports []Port ? : map(a,b) merge(a)    how patches and applies treat it
      ...OtherSpec                            the fields of another type; lines below replace some
      1 ...OtherSpec                          the same, in field 1 of the message in protobuf
    ObjectReference atomic                    server-side apply owns it as a whole
    JSONSchemaPropsOrBool union               in JSON, the value of one of its fields

The number in front is the field's tag in protobuf; `1.2` is field 2 of the message in field 1. A
`*` marks a value that may be absent; without it an absent value is written as its zero, unless it
is left out. Notes for patches follow a colon:

    map(a,b)    these keys identify the entries of the list in server-side apply
    set         server-side apply owns each entry of the list
    atomic      server-side apply owns the map as a whole
    merge(a)    strategic merge patches merge the list by this key; `merge` alone: as a set
    replace     strategic merge patches replace the object
    dropped     a value that is sent is ignored: the field is old, of a feature that is off, or an
                answer of the server

Rules follow a bar; `validation.rules` interprets them.

Upstream: staging/src/k8s.io/api/*/*/{types.go,generated.proto}, api/openapi-spec/v3,
          staging/src/k8s.io/apimachinery/pkg/apis/meta/v1 (v1.36)
Differs:  of two fields of the same name in one body only the last is read; they are not merged.
          Messages name repeated fields of an object before unknown ones, upstream in the order of
          the text. Schemas in CustomResourceDefinitions are kept as they are sent. So are volumes
          that Kubernetes no longer mounts, such as glusterfs, and what autoscalers have measured:
          in protobuf bodies the volumes are refused, and the measurements left out.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache, cached_property
from importlib.resources import files
from typing import Any, Final, NamedTuple

import msgspec

from kubesched.apiserver.plain import Plain
from kubesched.apiserver.values import SCALARS, Field, Place, Reading, Rule, SchemaError, ValueType

_FIELD: Final = re.compile(
    r"  (?:(?P<tag>[\d.]+) )?(?P<name>\S+) (?P<pointer>\*?)(?P<type>\S+)(?: (?P<flag>[?~]))?"
    r"(?: = (?P<default>\S+))?(?: if\((?P<condition>\S+)\))?"
    r"(?: : (?P<notes>[^|]+?))?(?: \| (?P<rules>.+))?"
)
_OBJECT: Final = ("  kind string ?", "  apiVersion string ?", "  1 metadata meta_v1/ObjectMeta")
_SPEC_AND_STATUS: Final = ("  2 spec {}Spec ?", "  3 status {}Status ?")
_CALL: Final = re.compile(r"(\w+)(?:\(([^)]*)\))?")
_IMMUTABLE: Final = Rule("immutable")
# Upstream reports no more fields of a body that are unknown or repeated.
_PROBLEMS_MAX: Final = 100
_NOTES: Final = frozenset(("map", "set", "atomic", "merge", "replace", "dropped"))


@dataclass(frozen=True, eq=False)
class ListType(ValueType):
    """A list; an empty one is None.

    Attributes:
        keys: The fields that identify entries in server-side apply; () for none.
        is_set: Whether server-side apply owns each entry.
    """

    element: ValueType
    keys: tuple[str, ...] = ()
    is_set: bool = False

    def read(self, value: Any, place: Place | None, reading: Reading) -> Any:
        """Return the list with its entries read; null is an empty entry."""
        if not isinstance(value, list):
            reading.note_type_error(value, "array", place)
            return None
        element = self.element
        return [
            element.zero() if one is None else element.read(one, Place(place, index), reading)
            for index, one in enumerate(value)
        ] or None

    def is_equal(self, one: Any, other: Any) -> bool:
        """Return whether the entries are equal, one by one; an empty list equals none."""
        ones, others = one or (), other or ()
        return len(ones) == len(others) and all(map(self.element.is_equal, ones, others))

    def is_whole(self, *values: Any) -> bool:
        """Return whether the list has one owner, rather than its entries."""
        return not (self.keys or self.is_set)


@dataclass(frozen=True, eq=False)
class MapType(ValueType):
    """A map from text; an empty one is None. Server-side apply owns an atomic one as a whole."""

    element: ValueType
    is_atomic: bool = False

    def read(self, value: Any, place: Place | None, reading: Reading) -> Any:
        """Return the map with its values read; null is an empty value."""
        if not isinstance(value, dict):
            reading.note_type_error(value, "object", place)
            return None
        reading.note_repeated(value, place, value)
        element = self.element
        return {
            key: element.zero()
            if value[key] is None
            else element.read(value[key], Place(place, key), reading)
            for key in sorted(value)
        } or None

    def is_equal(self, one: Any, other: Any) -> bool:
        """Return whether the values are equal, key by key; an empty map equals none."""
        ones, others = one or {}, other or {}
        return ones.keys() == others.keys() and all(
            self.element.is_equal(value, others[key]) for key, value in ones.items()
        )

    def child(self, name: str) -> ValueType | None:
        """Return the type of its values."""
        return self.element

    def is_whole(self, *values: Any) -> bool:
        """Return whether the map has one owner, rather than its values."""
        return self.is_atomic


class ObjectType(ValueType):
    """A type of objects.

    Attributes:
        name: File and `short_name`, such as `core_v1/PodSpec`.
        is_atomic: Whether server-side apply owns it as a whole.
        is_union: Whether its JSON is the value of its only field; only protobuf bodies have any.
        others: The type of all other fields; None if they are not known.
    """

    is_struct = True

    def __init__(
        self, file: str, name: str, source: _Source, others: Untyped | None = None
    ) -> None:
        self.name = f"{file}/{name}"
        self.short_name = name
        self.is_atomic = source.flag == "atomic"
        self.is_union = source.flag == "union"
        self.others = others
        self._file = file
        self._lines = source.lines

    @cached_property
    def fields(self) -> Mapping[str, Field]:
        """Its fields by name, in Go's order; read late, since types may be recursive."""
        return {
            field.name: field
            for line in self._lines
            for field in _fields(line, self._file, self.short_name)
        }

    @cached_property
    def defaulted(self) -> list[Field]:
        """Its fields that have a default."""
        return [field for field in self.fields.values() if field.default is not None]

    @cached_property
    def _always(self) -> list[Field]:
        return [field for field in self.fields.values() if field.is_always_written]

    def zero(self) -> Plain:
        """Return the form in which an absent object is written."""
        return {
            field.name: None if field.is_pointer else field.type.zero() for field in self._always
        }

    def read(self, value: Any, place: Place | None, reading: Reading) -> Plain:
        """Return the object as the server writes it, without fields that are not known."""
        if not isinstance(value, dict):
            reading.note_type_error(value, "object", place)
            return self.zero()
        reading.note_repeated(value, place, self.fields)
        if self.others:
            value = self.others.read(value, place, reading)
        read: Plain = {}
        for name, one in value.items():
            field = self.fields.get(name)
            if field is None and self.others:
                read[name] = one
            elif field is None:
                reading.note_unknown(place, name)
            elif one is not None:
                result = field.type.read(one, Place(place, field), reading)
                if field.is_dropped or result is None or (not result and field.is_left_out):
                    continue
                read[name] = result
        for field in self._always:
            if field.name not in read:
                read[field.name] = None if field.is_pointer else field.type.zero()
        return read

    def is_equal(self, one: Any, other: Any) -> bool:
        """Return whether the fields are equal, one by one; an absent object equals no other."""
        if one == other or one is None or other is None:
            return bool(one == other)
        return all(
            field.type.is_equal(one.get(name), other.get(name))
            for name, field in self.fields.items()
        )

    def child(self, name: str) -> ValueType | None:
        """Return the type of a field, None if there is no such field."""
        if name in self.fields:
            return self.fields[name].type
        return None if self.others is None else self.others.child(name)

    def is_whole(self, *values: Any) -> bool:
        """Return whether the object has one owner, rather than its fields."""
        return self.is_atomic


class Untyped(ValueType):
    """A value of a custom resource; it is stored as it is sent, with its schema's defaults.

    Attributes:
        properties: The schemas of its fields, as in a CustomResourceDefinition.
    """

    is_struct = True

    def __init__(self, schema: Plain) -> None:
        self.properties: Plain = schema.get("properties") or {}
        self._schema = schema

    def read(self, value: Any, place: Place | None, reading: Reading) -> Any:
        """Return the value with defaults, and without null where its schema allows none."""
        if isinstance(value, list):
            items = Untyped(self._schema.get("items") or {})
            return [items.read(one, place, reading) for one in value]
        if not isinstance(value, dict):
            return value
        kept = {
            name: one for name, one in value.items() if one is not None or self._may_be_null(name)
        }
        defaults = {
            name: schema["default"]
            for name, schema in self.properties.items()
            if "default" in schema and name not in kept
        }
        return {
            name: Untyped(self._below(name)).read(one, place, reading)
            for name, one in (kept | defaults).items()
        }

    def child(self, name: str) -> ValueType | None:
        """Return the type by which server-side apply divides a field."""
        schema = self._below(name)
        form = schema.get("x-kubernetes-list-type")
        if form in ("map", "set"):
            keys = tuple(schema.get("x-kubernetes-list-map-keys") or ())
            return ListType(Untyped(schema.get("items") or {}), keys, is_set=form == "set")
        return Untyped(schema)

    def is_whole(self, *values: Any) -> bool:
        """Return whether it is atomic or not an object; the fields of others have owners."""
        is_atomic = self._schema.get("x-kubernetes-map-type") == "atomic"
        return is_atomic or not all(isinstance(value, dict) for value in values)

    def _may_be_null(self, name: str) -> bool:
        schema = self._below(name)
        return not schema or bool(schema.get("nullable"))

    def _below(self, name: str) -> Plain:
        schema = self.properties.get(name) or self._schema.get("additionalProperties")
        return schema if isinstance(schema, dict) else {}


def custom_type(kind: str, schema: Plain) -> ObjectType:
    """Return the type of a kind without a table: metadata, and any other fields."""
    return ObjectType("custom_v1", kind, _Source("", "", [*_OBJECT]), Untyped(schema))


def decoded(object_type: ObjectType, value: Any) -> tuple[Plain, list[str]]:
    """Return a body as the server writes it, and its unknown and repeated fields, as messages.

    Raises SchemaError if a value does not fit.
    """
    reading = Reading()
    read = object_type.read(value, None, reading)
    if reading.type_error:
        raise SchemaError(reading.type_error)
    return read, reading.problems[:_PROBLEMS_MAX]


def unknown_field_paths(api_version: str, kind: str, obj: Plain) -> list[str]:
    """Return the paths of an object's fields that its kind does not have.

    There are none for an object of an unknown kind, or one that does not fit its type.
    """
    object_type, reading = type_of(api_version, kind), Reading()
    try:
        if object_type is not None:
            object_type.read(obj, None, reading)
    except SchemaError:
        return []
    return [] if reading.type_error else reading.unknown


# The tables.


def type_of(api_version: str, kind: str) -> ObjectType | None:
    """Return the type of a kind, None if its fields are not known."""
    group, _, version = api_version.rpartition("/")
    file = f"{group.partition('.')[0] or 'core'}_{version}"
    return known_type(file, kind) if kind in _sources(file) else None


def known_type(file: str, name: str) -> ObjectType:
    """Return a type of objects that a table has."""
    found = _named(file, name)
    assert isinstance(found, ObjectType), f"{file}/{name} is a type of objects"
    return found


def objects_in(value: Any, value_type: ValueType) -> Iterable[Plain]:
    """Return the objects in a list or a map of them, or a single object."""
    if isinstance(value_type, MapType):
        return value.values()  # type: ignore[no-any-return]  # JSON's values have no types
    return value if isinstance(value_type, ListType) else (value,)


class _Source(NamedTuple):
    """The definition of a type in a table: the type that it names, or the lines of its fields.

    The flag of an object is `object`, `kind`, `atomic`, `union` or "".
    """

    meaning: str
    flag: str
    lines: list[str]


@cache
def _sources(file: str) -> Mapping[str, _Source]:
    """Return the definitions of a file, by name; none if there is no such file."""
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
            lines = list(_OBJECT) if flag in ("object", "kind") else []
            lines += [one.format(name) for one in _SPEC_AND_STATUS if flag == "kind"]
            types[name] = _Source(meaning, flag, lines)
    return types


@cache
def _named(file: str, name: str) -> ValueType:
    source = _sources(file)[name]
    return _type(source.meaning, file) if source.meaning else ObjectType(file, name, source)


def _type(text: str, file: str, notes: Mapping[str, str] = {}) -> ValueType:
    """Return a type; the notes of a field determine which parts of its values have owners."""
    if text.startswith("[]"):
        keys = tuple(notes["map"].split(",")) if "map" in notes else ()
        return ListType(_type(text[2:], file), keys, is_set="set" in notes)
    if text.startswith("map[string]"):
        return MapType(_type(text.removeprefix("map[string]"), file), is_atomic="atomic" in notes)
    if text in SCALARS:
        return SCALARS[text]
    other, _, name = text.rpartition("/")
    return _named(other or file, name)


def _fields(line: str, file: str, owner: str) -> Iterator[Field]:
    """Yield the field of a line, or those of the type whose fields it takes."""
    tag, is_taken, name = line.partition("...")
    if not is_taken:
        yield _field(line, file, owner)
        return
    other, above = _type(name, file), _tag(tag.strip())
    assert isinstance(other, ObjectType), line
    for field in other.fields.values():
        yield msgspec.structs.replace(field, owner=owner, tag=(*above, *field.tag))


def _tag(text: str) -> tuple[int, ...]:
    return tuple(map(int, text.split("."))) if text else ()


def _field(line: str, file: str, owner: str) -> Field:
    match = _FIELD.fullmatch(line)
    assert match is not None, f"{file}: {line}"
    flag, default = match["flag"], match["default"]
    notes: dict[str, str] = dict(_CALL.findall(match["notes"] or ""))
    assert notes.keys() <= _NOTES, line
    is_pointer, value_type = bool(match["pointer"]), _type(match["type"], file, notes)
    element = value_type.element if isinstance(value_type, ListType | MapType) else value_type
    is_bare_struct = value_type.is_struct and not is_pointer
    rules = [
        Rule(name, tuple(arguments.split(",")) if arguments else ())
        for name, arguments in _CALL.findall(match["rules"] or "")
    ]
    return Field(
        name=match["name"],
        owner=owner,
        type=value_type,
        inner=element if isinstance(element, ObjectType) else None,
        is_pointer=is_pointer,
        is_left_out=bool(flag) and not is_pointer and not value_type.is_struct,
        is_always_written=not flag or (is_bare_struct and flag == "?"),
        default=None if default is None else msgspec.json.decode(default),
        default_if=tuple(match["condition"].split(",")) if match["condition"] else (),
        tag=_tag(match["tag"] or ""),
        merge_key=notes.get("merge"),
        is_replaced="replace" in notes,
        rules=tuple(one for one in rules if one != _IMMUTABLE),
        is_immutable=_IMMUTABLE in rules,
        is_dropped="dropped" in notes,
    )
