"""What server-side apply does with values: list the fields, compare, merge, and remove.

A layout says how a value is divided into fields that have owners.

Upstream: vendor/sigs.k8s.io/structured-merge-diff/v6/{schema,typed} (v1.36)
Invariants: no value handed in is changed; results may share parts with them.
Differs:  values without a schema are owned as a whole. What is of a wrong type is not shown in
          messages.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from enum import Enum
from functools import lru_cache
from typing import Any, Final

import msgspec

from kubesched.apiserver.field_sets import (
    FieldSet,
    Path,
    key_element,
    path_text,
    to_fields_v1,
    value_element,
)
from kubesched.apiserver.plain import Plain
from kubesched.apiserver.schema import (
    ListType,
    MapType,
    ObjectType,
    Untyped,
)
from kubesched.apiserver.values import (
    NO_MERGING,
    Merging,
    Scalar,
    ValueType,
)


class _Absent:
    """What stands for a value that is not there; null is one that is."""


_ABSENT: Final = _Absent()


class Division(Enum):
    """What has an owner of its own."""

    WHOLE = "the value"
    OPEN = "each field if it is an object, else the value"
    FIELDS = "each field of the object"
    ENTRIES = "each entry of the map"
    KEYED = "each object of the list, distinguished by keys"
    SET = "each scalar of the list"


class EntryError(ValueError):
    """An entry of a list cannot be distinguished from the others."""


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
        if entry is None or isinstance(entry, dict | list):
            raise EntryError("associative list without keys has an element that is no scalar")
        return value_element(entry)
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


# What cannot be applied.

_FORMS: Final[Mapping[str, tuple[str, Any]]] = {
    **dict.fromkeys(("bytes", "microTime", "string", "time"), ("string", str)),
    **dict.fromkeys(("float64", "int32", "int64"), ("numeric (int or float)", int | float)),
    "bool": ("boolean", bool),
}


def type_errors(value: Any, layout: Layout, path: Path = ()) -> Iterator[str]:
    """Yield why a value is none of its type, each reason with its path."""
    if value is None or layout.division is Division.OPEN:
        return
    wanted = ""
    if isinstance(layout.type, Scalar):
        wanted = _scalar_error(value, layout.type.form)
    elif isinstance(layout.type, ListType):
        if isinstance(value, list):
            yield from _entry_errors(value, layout, path)
        else:
            wanted = "list"
    elif not isinstance(value, dict):
        wanted = "map"
    else:
        for name in sorted(value):
            below, child = (*path, f"f:{name}"), layout.child(name)
            if child is None:
                yield f"{path_text(below)}: field not declared in schema"
                return
            yield from type_errors(value[name], child, below)
    if wanted:
        yield f"{path_text(path)}: expected {wanted}"


def _scalar_error(value: Any, form: str) -> str:
    """Return what a scalar should be and is not, "" if it is."""
    if form in _FORMS:
        wanted, form_type = _FORMS[form]
        is_other = isinstance(value, bool) and form != "bool"
        return "" if isinstance(value, form_type) and not is_other else wanted
    return "any scalar" if form != "any" and isinstance(value, dict | list) else ""


def _entry_errors(entries: list[Any], layout: Layout, path: Path) -> Iterator[str]:
    assert layout.element is not None, "lists have elements"
    seen: set[str] = set()
    for index, entry in enumerate(entries):
        element = f"i:{index}"
        if layout.is_list:
            try:
                element = entry_element(layout, entry)
            except EntryError as error:
                yield f"{path_text(path)}: element {index}: {error}"
                return
            if element in seen:
                yield f"{path_text(path)}: duplicate entries for key {path_text((element,))}"
            seen.add(element)
        yield from type_errors(entry, layout.element, (*path, element))


# Fields.


def field_set(value: Any, layout: Layout) -> FieldSet:
    """Return the fields that somebody who gives this value owns."""
    paths: list[Path] = []
    _list_fields(value, layout, (), paths)
    return frozenset(paths)


def _list_fields(value: Any, layout: Layout, path: Path, paths: list[Path]) -> None:
    if layout.is_whole(value):
        paths.append(path)
    elif isinstance(value, dict):
        for name, child in value.items():
            below = (*path, f"f:{name}")
            child_layout = layout.child(name)
            if child_layout is None:
                continue
            _list_fields(child, child_layout, below, paths)
            if child in (None, {}) or layout.division is Division.ENTRIES:
                paths.append(below)
    elif isinstance(value, list):
        assert layout.element is not None, "lists have elements"
        for element, entries in _by_element(value, layout).items():
            paths.append((*path, element))
            if len(entries) == 1:
                _list_fields(entries[0], layout.element, (*path, element), paths)


def _by_element(entries: Any, layout: Layout) -> dict[str, list[Any]]:
    """Return the entries of each path element, several where they are duplicates."""
    found: dict[str, list[Any]] = {}
    for entry in entries if isinstance(entries, list) else ():
        if element := _stored_element(layout, entry):
            found.setdefault(element, []).append(entry)
    return found


def _stored_element(layout: Layout, entry: Any) -> str:
    """Return an entry's path element; "" if it has none, so that nobody owns it."""
    try:
        return entry_element(layout, entry)
    except EntryError:
        return ""


class Comparison(msgspec.Struct, frozen=True):
    """How one object differs from another.

    Attributes:
        added: Fields that only the newer one has.
        modified: Fields that both have, with other values.
        removed: Fields that only the older one has.
    """

    added: FieldSet
    modified: FieldSet
    removed: FieldSet

    @property
    def changed(self) -> FieldSet:
        """The fields that the newer one gave a value."""
        return self.added | self.modified


class _Comparing:
    """The paths found so far."""

    def __init__(self) -> None:
        self.added: list[Path] = []
        self.modified: list[Path] = []
        self.removed: list[Path] = []

    def note(self, old: Any, new: Any, path: Path) -> None:
        if old is _ABSENT:
            self.added.append(path)
        elif new is _ABSENT:
            self.removed.append(path)

    def compare(self, old: Any, new: Any, layout: Layout, path: Path) -> None:
        if old is not _ABSENT and new is not _ABSENT:
            if old == new:
                return
            if layout.is_whole(old, new) or not (old or new):
                self.modified.append(path)
                return
        if layout.is_whole(*(one for one in (old, new) if one is not _ABSENT)):
            self.note(old, new, path)
            return
        if layout.is_list:
            self._compare_entries(old, new, layout, path)
        else:
            self._compare_fields(old, new, layout, path)
        self.note(old, new, path)

    def _compare_fields(self, old: Any, new: Any, layout: Layout, path: Path) -> None:
        before: Mapping[str, Any] = old if isinstance(old, dict) else {}
        after: Mapping[str, Any] = new if isinstance(new, dict) else {}
        for name in {**before, **after}:
            child = layout.child(name)
            if child is not None:
                one, other = before.get(name, _ABSENT), after.get(name, _ABSENT)
                self.compare(one, other, child, (*path, f"f:{name}"))

    def _compare_entries(self, old: Any, new: Any, layout: Layout, path: Path) -> None:
        assert layout.element is not None, "lists have elements"
        before, after = _by_element(old, layout), _by_element(new, layout)
        for element in {**before, **after}:
            ones, others = before.get(element, []), after.get(element, [])
            below = (*path, element)
            if len(ones) > 1 and len(others) > 1:
                if ones != others:
                    self.modified.append(below)
                continue
            # Duplicates are owned together; what was or becomes single is owned in parts.
            one = ones[0] if len(ones) == 1 else _ABSENT
            other = others[0] if len(others) == 1 else _ABSENT
            if one is not _ABSENT or other is not _ABSENT:
                self.compare(one, other, layout.element, below)
            if len(ones) > 1:
                self.removed.append(below)
            if len(others) > 1:
                self.added.append(below)


def compare(old: Any, new: Any, layout: Layout) -> Comparison:
    """Return how a newer object differs from an older one."""
    comparing = _Comparing()
    comparing.compare(old, new, layout, ())
    return Comparison(
        frozenset(comparing.added), frozenset(comparing.modified), frozenset(comparing.removed)
    )


def merge(live: Any, applied: Any, layout: Layout) -> Any:
    """Return a live value with what is applied over it."""
    if layout.is_whole(live, applied) or not (live or applied):
        return applied
    if layout.is_list:
        return _merge_entries(live or [], applied or [], layout)
    merged = dict(live or {})
    for name, value in (applied or {}).items():
        child = layout.child(name)
        is_new = name not in merged or child is None
        merged[name] = value if is_new or child is None else merge(merged[name], value, child)
    return merged


def _merge_entries(live: list[Any], applied: list[Any], layout: Layout) -> list[Any]:
    """Keep the order of both lists as far as they agree; where not, that of the applied one."""
    assert layout.element is not None, "lists have elements"
    present = _by_element(live, layout)
    wanted = {entry_element(layout, entry): entry for entry in applied}
    waiting = list(wanted)
    merged: list[Any] = []

    def take(count: int) -> None:
        assert layout.element is not None, "asked before"
        for element in waiting[:count]:
            found = present.get(element, ())
            new = wanted[element]
            # Of duplicates none is the one that is meant.
            merged.append(merge(found[0], new, layout.element) if len(found) == 1 else new)
        del waiting[:count]

    for entry in live:
        element = _stored_element(layout, entry)
        if element not in wanted:
            merged.append(entry)
        elif element == next((one for one in waiting if one in present), None):
            # Everything that is applied before this entry comes before it.
            take(waiting.index(element) + 1)
    take(len(waiting))
    return merged


def remove(value: Any, unwanted: FieldSet, layout: Layout) -> Any:
    """Return a value without some of its fields; what only loses its content stays, empty."""
    return _remove(value, to_fields_v1(unwanted), layout)


def _remove(value: Any, unwanted: Plain, layout: Layout) -> Any:
    if not unwanted:
        return value
    if layout.is_whole(value):
        # Somebody owned parts of what is now owned as a whole.
        return type(value)() if isinstance(value, dict | list) else value
    if isinstance(value, dict):
        kept: Plain = {}
        for name, child in value.items():
            node, child_layout = unwanted.get(f"f:{name}"), layout.child(name)
            if node is None or child_layout is None:
                kept[name] = child
            elif node and "." not in node:
                kept[name] = _remove(child, node, child_layout)
        return kept
    if isinstance(value, list):
        return list(_left_entries(value, unwanted, layout))
    return value


def _left_entries(entries: list[Any], unwanted: Plain, layout: Layout) -> Iterator[Any]:
    assert layout.element is not None, "lists have elements"
    for entry in entries:
        node = unwanted.get(_stored_element(layout, entry))
        if node is None:
            yield entry
        elif node and "." not in node:
            yield _remove(entry, node, layout.element)
