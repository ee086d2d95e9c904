"""Values in server-side apply: their fields are listed, compared, merged and removed.

Fields are paths, as `metadata.managedFields` keeps them: tuples of elements in their written form,
`f:name` for a field, `k:{"name":"x"}` for a list entry with keys, `v:"x"` for an entry of a set.
The type of a value determines how it is divided into fields with owners.

Upstream: vendor/sigs.k8s.io/structured-merge-diff/v6/{fieldpath,schema,typed} (v1.36)
Invariants: no argument is changed; results may share parts with them.
Differs:  values without a schema are owned as a whole. Messages do not show values of a wrong
          type.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final, TypeAlias

import msgspec

from kubesched.apiserver.plain import Plain
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


def value_element(value: Any) -> str:
    """Return the element of an entry of a set."""
    return f"v:{_compact(value)}"


def _compact(value: Any) -> str:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False)


def to_fields_v1(fields: FieldSet) -> Plain:
    """Return a set in its written form: objects in objects, named by elements."""
    written: Plain = {}
    for path in sorted_paths(fields):
        node = written
        for element in path:
            node = node.setdefault(element, {})
        node[_MEMBER] = {}
    return {element: _leaves_emptied(node) for element, node in written.items()}


def _leaves_emptied(node: Plain) -> Plain:
    """Drop the mark of a member that has nothing below it."""
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
        raise FieldSetError(f"expected an object at {path_text(path)}")
    if path and (not node or _MEMBER in node):
        paths.append(path)
    for element, child in node.items():
        if element == _MEMBER:
            continue
        if element[:2] not in ("f:", "k:", "v:", "i:"):
            raise FieldSetError(f"{element!r} is no element of a path")
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


class _Absent:
    """The marker of an absent value, as distinct from null."""


_ABSENT: Final = _Absent()


class EntryError(ValueError):
    """An entry of a list cannot be distinguished from the others."""


def entry_element(list_type: ListType, entry: Any) -> str:
    """Return the path element of a list entry; raises EntryError if it has none."""
    if list_type.is_set:
        if entry is None or isinstance(entry, dict | list):
            raise EntryError("associative list without keys has an element that is no scalar")
        return value_element(entry)
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
        elif isinstance(list_type.element, ObjectType):
            field = list_type.element.fields[name]
            if field.default is not None:
                keys[name] = field.default
            elif not (field.is_pointer or field.is_left_out):
                keys[name] = field.type.zero()
    return keys


def with_named(fields: frozenset[Path], value_type: ValueType) -> frozenset[Path]:
    """Add the fields of objects that have something below them in the set."""
    named: dict[Path, None] = dict.fromkeys(fields)
    for path in fields:
        at: ValueType | None = value_type
        for length, element in enumerate(path[:-1], start=1):
            if at is None:
                break
            below = at.element if isinstance(at, ListType) else at.child(element[2:])
            if isinstance(at, ObjectType | Untyped) and not at.is_whole({}) and below is not None:
                named[path[:length]] = None
            at = below
    return frozenset(named)


# Type errors.

_FORMS: Final[Mapping[str, tuple[str, Any]]] = {
    **dict.fromkeys(("bytes", "microTime", "string", "time"), ("string", str)),
    **dict.fromkeys(("float64", "int32", "int64"), ("numeric (int or float)", int | float)),
    "bool": ("boolean", bool),
}


def type_errors(value: Any, value_type: ValueType, path: Path = ()) -> Iterator[str]:
    """Yield why a value does not fit its type, each reason with its path."""
    if value is None or isinstance(value_type, Untyped):
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


# Fields.


def field_set(value: Any, value_type: ValueType) -> FieldSet:
    """Return the fields that a manager who sets this value owns."""
    paths: list[Path] = []
    _list_fields(value, value_type, (), paths)
    return frozenset(paths)


def _list_fields(value: Any, value_type: ValueType, path: Path, paths: list[Path]) -> None:
    if value_type.is_whole(value):
        paths.append(path)
    elif isinstance(value_type, ListType):
        for element, entries in _by_element(value, value_type).items():
            paths.append((*path, element))
            if len(entries) == 1:
                _list_fields(entries[0], value_type.element, (*path, element), paths)
    elif isinstance(value, dict):
        for name, child in value.items():
            below, child_type = (*path, f"f:{name}"), value_type.child(name)
            if child_type is None:
                continue
            _list_fields(child, child_type, below, paths)
            if child in (None, {}) or isinstance(value_type, MapType):
                paths.append(below)


def _by_element(entries: Any, list_type: ListType) -> dict[str, list[Any]]:
    """Return the entries of each path element, several where they are duplicates."""
    found: dict[str, list[Any]] = {}
    for entry in entries if isinstance(entries, list) else ():
        if element := _stored_element(list_type, entry):
            found.setdefault(element, []).append(entry)
    return found


def _stored_element(list_type: ListType, entry: Any) -> str:
    """Return an entry's path element; "" for an entry without one, which has no owner."""
    try:
        return entry_element(list_type, entry)
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

    def besides(self, ignored: FieldSet) -> Comparison:
        """Return the comparison without some fields and what is below them."""
        kept = (without_below(one, ignored) for one in (self.added, self.modified, self.removed))
        return Comparison(*kept)


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

    def compare(self, old: Any, new: Any, value_type: ValueType, path: Path) -> None:
        if old is not _ABSENT and new is not _ABSENT:
            if old == new:
                return
            if value_type.is_whole(old, new) or not (old or new):
                self.modified.append(path)
                return
        if value_type.is_whole(*(one for one in (old, new) if one is not _ABSENT)):
            self.note(old, new, path)
            return
        if isinstance(value_type, ListType):
            self._compare_entries(old, new, value_type, path)
        else:
            self._compare_fields(old, new, value_type, path)
        self.note(old, new, path)

    def _compare_fields(self, old: Any, new: Any, value_type: ValueType, path: Path) -> None:
        before: Mapping[str, Any] = old if isinstance(old, dict) else {}
        after: Mapping[str, Any] = new if isinstance(new, dict) else {}
        for name in {**before, **after}:
            child = value_type.child(name)
            if child is not None:
                one, other = before.get(name, _ABSENT), after.get(name, _ABSENT)
                self.compare(one, other, child, (*path, f"f:{name}"))

    def _compare_entries(self, old: Any, new: Any, list_type: ListType, path: Path) -> None:
        before, after = _by_element(old, list_type), _by_element(new, list_type)
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
                self.compare(one, other, list_type.element, below)
            if len(ones) > 1:
                self.removed.append(below)
            if len(others) > 1:
                self.added.append(below)


def compare(old: Any, new: Any, value_type: ValueType) -> Comparison:
    """Return how a newer object differs from an older one."""
    comparing = _Comparing()
    comparing.compare(old, new, value_type, ())
    return Comparison(
        frozenset(comparing.added), frozenset(comparing.modified), frozenset(comparing.removed)
    )


def merge(live: Any, applied: Any, value_type: ValueType) -> Any:
    """Return a live value with what is applied over it."""
    if value_type.is_whole(live, applied) or not (live or applied):
        return applied
    if isinstance(value_type, ListType):
        return _merge_entries(live or [], applied or [], value_type)
    merged = dict(live or {})
    for name, value in (applied or {}).items():
        child = value_type.child(name)
        is_new = name not in merged or child is None
        merged[name] = value if is_new or child is None else merge(merged[name], value, child)
    return merged


def _merge_entries(live: list[Any], applied: list[Any], list_type: ListType) -> list[Any]:
    """Merge two lists, in the order of both where they agree, else in that of the applied one."""
    present = _by_element(live, list_type)
    wanted = {entry_element(list_type, entry): entry for entry in applied}
    waiting = list(wanted)
    merged: list[Any] = []

    def take(count: int) -> None:
        for element in waiting[:count]:
            found = present.get(element, ())
            new = wanted[element]
            # It is unclear which of several duplicates is meant.
            merged.append(merge(found[0], new, list_type.element) if len(found) == 1 else new)
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


def remove(value: Any, unwanted: FieldSet, value_type: ValueType) -> Any:
    """Return a value without some of its fields; emptied objects and lists remain."""
    return _remove(value, to_fields_v1(unwanted), value_type)


def _remove(value: Any, unwanted: Plain, value_type: ValueType) -> Any:
    if not unwanted:
        return value
    if value_type.is_whole(value):
        # Parts had owners of what is now owned as a whole.
        return type(value)() if isinstance(value, dict | list) else value
    if isinstance(value_type, ListType):
        return (
            list(_left_entries(value, unwanted, value_type)) if isinstance(value, list) else value
        )
    if isinstance(value, dict):
        kept: Plain = {}
        for name, child in value.items():
            node, child_type = unwanted.get(f"f:{name}"), value_type.child(name)
            if node is None or child_type is None:
                kept[name] = child
            elif node and _MEMBER not in node:
                kept[name] = _remove(child, node, child_type)
        return kept
    return value


def _left_entries(entries: list[Any], unwanted: Plain, list_type: ListType) -> Iterator[Any]:
    for entry in entries:
        node = unwanted.get(_stored_element(list_type, entry))
        if node is None:
            yield entry
        elif node and _MEMBER not in node:
            yield _remove(entry, node, list_type.element)
