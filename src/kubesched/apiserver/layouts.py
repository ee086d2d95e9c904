"""Layouts say how server-side apply divides a value into fields that have owners.

Upstream: vendor/sigs.k8s.io/structured-merge-diff/v6/schema, typed/helpers.go (v1.36)
Differs:  values without a schema are owned as a whole.
"""

from __future__ import annotations

from enum import Enum
from functools import lru_cache
from typing import Any

import msgspec

from kubesched.apiserver.field_sets import Path, key_element, value_element
from kubesched.apiserver.plain import Plain
from kubesched.apiserver.schema import (
    NO_MERGING,
    ListType,
    MapType,
    Merging,
    ObjectType,
    Untyped,
    ValueType,
)

__all__ = ["Division", "EntryError", "Layout", "entry_element", "layout_of", "with_named"]


class Division(Enum):
    """What has an owner of its own."""

    WHOLE = "the value"
    OPEN = "each field if it is an object, else the value"
    FIELDS = "each field of the object"
    ENTRIES = "each entry of the map"
    KEYED = "each object of the list, told apart by keys"
    SET = "each scalar of the list"


class EntryError(ValueError):
    """An entry of a list cannot be told apart from the others."""


class Layout(msgspec.Struct, frozen=True, eq=False):
    """How a value is divided.

    Attributes:
        division: What has an owner.
        type: Of the value.
        element: The layout of entries, of maps and lists of all kinds.
        keys: What tells list entries apart.
    """

    division: Division
    type: ValueType
    element: Layout | None = None
    keys: tuple[str, ...] = ()

    def child(self, name: str) -> Layout | None:
        """Return the layout of a field or of a map's entry, None if there is no such field."""
        if isinstance(self.type, ObjectType):
            return _field_layout(self.type, name)
        return self if self.division is Division.OPEN else self.element

    def is_whole(self, *values: Any) -> bool:
        """Whether one has all of such values."""
        is_open = self.division is Division.OPEN
        return self.division is Division.WHOLE or (
            is_open and not all(isinstance(value, dict) for value in values)
        )

    @property
    def is_list(self) -> bool:
        """Whether its entries, not its fields, have owners."""
        return self.division in (Division.KEYED, Division.SET)


@lru_cache(maxsize=8192)
def _field_layout(object_type: ObjectType, name: str) -> Layout | None:
    field = object_type.fields.get(name)
    return _layout(field.type, field.merging) if field else None


@lru_cache(maxsize=512)
def layout_of(object_type: ObjectType) -> Layout:
    """Return the layout of objects of a type."""
    return _layout(object_type)


def _layout(value_type: ValueType, merging: Merging = NO_MERGING) -> Layout:
    if isinstance(value_type, ListType):
        division = Division.SET if merging.is_set else Division.WHOLE
        if merging.list_keys:
            division = Division.KEYED
        element = _layout(value_type.element)
        return Layout(division, value_type, element, merging.list_keys)
    if isinstance(value_type, MapType):
        division = Division.WHOLE if merging.is_atomic else Division.ENTRIES
        return Layout(division, value_type, _layout(value_type.element))
    if isinstance(value_type, Untyped):
        return Layout(Division.OPEN, value_type)
    if not isinstance(value_type, ObjectType):
        return Layout(Division.WHOLE, value_type)
    is_atomic = merging.is_atomic
    if is_atomic is None:
        is_atomic = value_type.is_atomic
    return Layout(Division.WHOLE if is_atomic else Division.FIELDS, value_type)


def entry_element(layout: Layout, entry: Any) -> str:
    """Return the path element of a list entry.

    Raises:
        EntryError: It has none.
    """
    if layout.division is Division.SET:
        if isinstance(entry, dict):
            raise EntryError("associative list without keys has an element that's a map type")
        if isinstance(entry, list):
            raise EntryError("not supported: associative list with lists as elements")
        if entry is None:
            raise EntryError("associative list without keys has an element that's an explicit null")
        return value_element(entry)
    if entry is None:
        raise EntryError("associative list with keys may not have a null element")
    if not isinstance(entry, dict):
        raise EntryError("associative list with keys may not have non-map elements")
    keys = _keys_of(layout, entry)
    if not keys:
        names = " ".join(f'"{name}"' for name in layout.keys)
        raise EntryError(
            f"associative list with keys has an element that omits all key fields [{names}] "
            "(and doesn't have default values for any key fields)"
        )
    return key_element(keys)


def _keys_of(layout: Layout, entry: Plain) -> Plain:
    assert layout.element is not None, "lists have elements"
    entry_type = layout.element.type
    keys: Plain = {}
    for name in layout.keys:
        if name in entry:
            keys[name] = entry[name]
        elif isinstance(entry_type, ObjectType) and entry_type.fields[name].default is not None:
            keys[name] = entry_type.fields[name].default
    return keys


def with_named(fields: frozenset[Path], layout: Layout) -> frozenset[Path]:
    """Add the fields of objects that have something below them in the set."""
    named: dict[Path, None] = dict.fromkeys(fields)
    for path in fields:
        at: Layout | None = layout
        for length, element in enumerate(path[:-1], start=1):
            if at is None:
                break
            if (
                at.division in (Division.FIELDS, Division.OPEN)
                and at.child(element[2:]) is not None
            ):
                named[path[:length]] = None
            at = at.element if at.is_list else at.child(element[2:])
    return frozenset(named)
