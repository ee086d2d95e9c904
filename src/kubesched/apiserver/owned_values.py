"""Values in server-side apply: their fields are listed, compared, merged and removed.

Fields are paths, as `metadata.managedFields` keeps them: tuples of elements in their written form,
`f:name` for a field, `k:{"name":"x"}` for a list entry with keys, `v:"x"` for an entry of a set.
The type of a value determines how it is divided into fields with owners.

Upstream: vendor/sigs.k8s.io/structured-merge-diff/v6/{fieldpath,schema,typed} (v1.36)
Invariants: no argument is changed; results may share parts with them.
Differs:  values without a schema are owned as a whole. In custom resources, an entry of a map is
          not owned itself, only its fields are, and lists that are owned as a whole are not checked
          inside. Messages do not show values of a wrong type.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from typing import Any, Final, NamedTuple, TypeAlias

from kubesched.apiserver.plain import Plain, get, without
from kubesched.apiserver.schema import ListType, MapType, ObjectType, Untyped
from kubesched.apiserver.values import Scalar, ValueType

Path: TypeAlias = tuple[str, ...]
FieldSet: TypeAlias = frozenset[Path]

_MEMBER: Final = "."
_RANKS: Final = {"f": 0, "k": 1, "v": 2, "i": 3}


class FieldSetError(ValueError):
    """A serialized field set is malformed."""


def key_element(keys: Mapping[str, Any]) -> str:
    """Return the element of a list entry with these keys."""
    return f"k:{_compact({name: keys[name] for name in sorted(keys)})}"


def _compact(value: Any) -> str:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False)


@lru_cache(1024)
def to_fields_v1(fields: FieldSet) -> Plain:
    """Return a set in its written form: objects in objects, named by elements.

    Thousands of objects have equal fields, and share one written form.
    """
    written: Plain = {}
    for path in fields:
        node = written
        for element in path:
            node = node.setdefault(element, {})
        node[_MEMBER] = {}
    return _leaves_emptied(written)


def _leaves_emptied(node: Plain) -> Plain:
    """Return a sorted node without the mark of a member that has nothing below it."""
    if len(node) == 1 and _MEMBER in node:
        return {}
    return {
        element: child if element == _MEMBER else _leaves_emptied(child)
        for element, child in sorted(node.items())
    }


def from_fields_v1(written: Any) -> FieldSet:
    """Return the set of a written form; raises FieldSetError if it is malformed."""
    paths: list[Path] = []
    _collect(written, (), paths)
    return frozenset(paths)


def _collect(node: Any, path: Path, paths: list[Path]) -> None:
    if not isinstance(node, dict):
        raise FieldSetError(f"expected an object at {'/'.join(path)}")
    if path and (not node or _MEMBER in node):
        paths.append(path)
    for element, child in node.items():
        if element == _MEMBER:
            continue
        if element[:2] not in ("f:", "k:", "v:", "i:"):
            raise FieldSetError(f"{element!r} is not an element of a path")
        _collect(child, (*path, element), paths)


def sorted_paths(fields: Iterable[Path]) -> list[Path]:
    """Sort paths: at each level, paths that end there come before longer ones."""
    return sorted(fields, key=_sort_key)


def _sort_key(path: Path) -> list[tuple[bool, int, str]]:
    last = len(path) - 1
    return [(at != last, _RANKS[one[0]], one) for at, one in enumerate(path)]


def without_below(fields: FieldSet, roots: FieldSet) -> FieldSet:
    """Return the paths that neither are among the roots nor lead below one."""
    if not roots:
        return fields
    return frozenset(
        path
        for path in fields
        if not any(path[:length] in roots for length in range(1, len(path) + 1))
    )


def path_text(path: Path) -> str:
    """Return a path as messages show it, such as `.spec.containers[name="main"].image`."""
    return "".join(map(_element_text, path))


def _element_text(element: str) -> str:
    kind, _, rest = element.partition(":")
    if kind == "f":
        return f".{rest}"
    if kind == "i":
        return f"[{rest}]"
    value = json.loads(rest)
    if kind == "v":
        return f"[={_compact(value)}]"
    return f"[{','.join(f'{name}={_compact(key)}' for name, key in value.items())}]"


# Entries of lists.


class EntryError(ValueError):
    """An entry of a list cannot be distinguished from the others."""


def entry_element(list_type: ListType, entry: Any) -> str:
    """Return the path element of a list entry; raises EntryError if it has none."""
    if list_type.is_set:
        if entry is None or isinstance(entry, dict | list):
            raise EntryError("associative list without keys has an element that is not a scalar")
        return f"v:{_compact(entry)}"
    if not isinstance(entry, dict):
        raise EntryError("associative list with keys may not have non-map elements")
    keys = _keys_of(list_type, entry)
    if not keys:
        names = " ".join(f'"{name}"' for name in list_type.keys)
        raise EntryError(
            f"associative list with keys has an element that omits all key fields [{names}] "
            "(and doesn't have default values for any key fields)"
        )
    return key_element(keys)


def _keys_of(list_type: ListType, entry: Plain) -> Plain:
    keys: Plain = {}
    for name in list_type.keys:
        if name in entry:
            keys[name] = entry[name]
        elif isinstance(list_type.element, Untyped):
            if (default := get(list_type.element.properties, name, "default")) is not None:
                keys[name] = default
        elif isinstance(list_type.element, ObjectType):
            field = list_type.element.fields[name]
            if field.default is not None:
                keys[name] = field.default
            elif not (field.is_pointer or field.is_left_out):
                keys[name] = field.type.zero()
    return keys


def _stored_element(list_type: ListType, entry: Any) -> str:
    """Return an entry's path element; "" for an entry without one, which has no owner."""
    try:
        return entry_element(list_type, entry)
    except EntryError:
        return ""


def _by_element(entries: Any, list_type: ListType) -> dict[str, list[Any]]:
    """Return the entries of each path element, several where they are duplicates."""
    found: dict[str, list[Any]] = {}
    for entry in entries if isinstance(entries, list) else ():
        if element := _stored_element(list_type, entry):
            found.setdefault(element, []).append(entry)
    return found


# Type errors.

_FORMS: Final[Mapping[str, tuple[str, Any]]] = {
    **dict.fromkeys(("bytes", "microTime", "string", "time"), ("string", str)),
    **dict.fromkeys(("float64", "int32", "int64"), ("numeric (int or float)", int | float)),
    "bool": ("boolean", bool),
}


def type_errors(value: Any, value_type: ValueType, path: Path = ()) -> Iterator[str]:
    """Yield why a value does not fit its type, each reason with its path."""
    if value is None or (isinstance(value_type, Untyped) and value_type.is_whole(value)):
        return
    if isinstance(value_type, Scalar):
        wanted = _scalar_error(value, value_type.form)
    elif isinstance(value_type, ListType):
        wanted = "" if isinstance(value, list) else "list"
    else:
        wanted = "" if isinstance(value, dict) else "map"
    if wanted:
        yield f"{path_text(path)}: expected {wanted}"
    elif isinstance(value_type, ListType):
        yield from _entry_errors(value, value_type, path)
    elif not isinstance(value_type, Scalar):
        yield from _field_errors(value, value_type, path)


def _field_errors(fields: Plain, value_type: ValueType, path: Path) -> Iterator[str]:
    for name in sorted(fields):
        below, child = (*path, f"f:{name}"), value_type.child(name)
        if child is None:
            yield f"{path_text(below)}: field not declared in schema"
            return
        yield from type_errors(fields[name], child, below)


def _scalar_error(value: Any, form: str) -> str:
    """Return the type that a scalar should have, "" if it has it."""
    if form in _FORMS:
        wanted, form_type = _FORMS[form]
        is_other = isinstance(value, bool) and form != "bool"
        return "" if isinstance(value, form_type) and not is_other else wanted
    return "any scalar" if form != "any" and isinstance(value, dict | list) else ""


def _entry_errors(entries: list[Any], list_type: ListType, path: Path) -> Iterator[str]:
    seen: set[str] = set()
    for index, entry in enumerate(entries):
        element = f"i:{index}"
        if not list_type.is_whole():
            try:
                element = entry_element(list_type, entry)
            except EntryError as error:
                yield f"{path_text(path)}: element {index}: {error}"
                return
            if element in seen:
                yield f"{path_text(path)}: duplicate entries for key {path_text((element,))}"
            seen.add(element)
        yield from type_errors(entry, list_type.element, (*path, element))


# Parts of a value.

_DIVIDED: Final = object()
_EMPTY: Final[tuple[Any, ...]] = (None, {}, [])


class _Parts:
    """All parts of an object.

    Attributes:
        values: By path; `_DIVIDED` if a part has parts of its own.
        owned: The parts that a manager who sets them owns, and not only what they consist of.
    """

    def __init__(self, value: Plain, object_type: ObjectType) -> None:
        self.values: dict[Path, Any] = {}
        self.owned: list[Path] = []
        self._divide(value, object_type, ())

    def _add(self, value: Any, value_type: ValueType, path: Path, *, is_entry: bool) -> None:
        is_whole = value_type.is_whole(value)
        if is_whole or is_entry or value is None or value == {}:
            self.owned.append(path)
        if is_whole or not value:
            self.values[path] = value
        else:
            self.values[path] = _DIVIDED
            self._divide(value, value_type, path)

    def _divide(self, value: Any, value_type: ValueType, path: Path) -> None:
        if isinstance(value_type, ListType):
            for element, entries in _by_element(value, value_type).items():
                below = (*path, element)
                if len(entries) == 1:
                    self._add(entries[0], value_type.element, below, is_entry=True)
                else:
                    # Duplicates are owned together.
                    self.owned.append(below)
                    self.values[below] = entries
        elif isinstance(value, dict):
            is_map = isinstance(value_type, MapType)
            for name, child in value.items():
                if (child_type := value_type.child(name)) is not None:
                    self._add(child, child_type, (*path, f"f:{name}"), is_entry=is_map)


def field_set(value: Plain, object_type: ObjectType) -> FieldSet:
    """Return the fields that a manager who sets this object owns."""
    return frozenset(_Parts(value, object_type).owned)


class Comparison(NamedTuple):
    """The fields that a newer object gave a value, and those that only the older one has."""

    changed: FieldSet
    removed: FieldSet

    def besides(self, ignored: FieldSet) -> Comparison:
        """Return the comparison without some fields and what is below them."""
        return Comparison(*(without_below(one, ignored) for one in self))


def compare(old: Plain, new: Plain, object_type: ObjectType) -> Comparison:
    """Return how a newer object differs from an older one."""
    same = [name for name, value in new.items() if name in old and old[name] == value]
    before, after = (_Parts(without(one, *same), object_type).values for one in (old, new))
    return Comparison(
        frozenset(
            path
            for path, value in after.items()
            if path not in before or _is_changed(before[path], value)
        ),
        frozenset(before.keys() - after.keys()),
    )


def _is_changed(old: Any, new: Any) -> bool:
    """Return whether a part has another value; one that is filled or emptied has other parts."""
    if old is _DIVIDED or new is _DIVIDED:
        return old is not new and old not in _EMPTY and new not in _EMPTY
    return bool(old != new)


# Changes.


def merge(live: Any, applied: Any, value_type: ValueType) -> Any:
    """Return a live value, None if there is none, with what is applied over it."""
    if value_type.is_whole(live, applied) or not (live or applied):
        return applied
    if isinstance(value_type, ListType):
        return _merge_entries(live or [], applied or [], value_type)
    merged = dict(live or {})
    for name, value in (applied or {}).items():
        child = value_type.child(name)
        merged[name] = value if child is None else merge(merged.get(name), value, child)
    return merged


def _merge_entries(live: list[Any], applied: list[Any], list_type: ListType) -> list[Any]:
    """Merge two lists, in the order of both where they agree, else in that of the applied one."""
    present = _by_element(live, list_type)
    wanted = {entry_element(list_type, entry): entry for entry in applied}
    waiting = list(wanted)
    merged: list[Any] = []

    def take(count: int) -> None:
        for element in waiting[:count]:
            # It is unclear which of several duplicates is meant.
            [found] = present[element] if len(present.get(element, ())) == 1 else [None]
            merged.append(merge(found, wanted[element], list_type.element))
        del waiting[:count]

    for entry in live:
        element = _stored_element(list_type, entry)
        if element not in wanted:
            merged.append(entry)
        elif element == next((one for one in waiting if one in present), None):
            # Everything that is applied before this entry comes before it.
            take(waiting.index(element) + 1)
    take(len(waiting))
    return merged


def remove(value: Any, unwanted: FieldSet, value_type: ValueType, path: Path = ()) -> Any:
    """Return a value without some of its fields; emptied objects and lists remain."""
    if not value or value_type.is_whole(value):
        return value
    if isinstance(value_type, ListType):
        return [
            remove(entry, unwanted, value_type.element, below)
            for entry in value
            if (below := (*path, _stored_element(value_type, entry))) not in unwanted
        ]
    kept: Plain = {}
    for name, child in value.items():
        below, child_type = (*path, f"f:{name}"), value_type.child(name)
        if child_type is None:
            kept[name] = child
        elif below not in unwanted:
            kept[name] = remove(child, unwanted, child_type, below)
    return kept
