"""What server-side apply does with values: check, list the fields, compare, merge, and remove.

Upstream: vendor/sigs.k8s.io/structured-merge-diff/v6/typed (v1.36)
Invariants: no value handed in is changed; results may share parts with them.
Differs:  nothing.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any, Final

import msgspec

from kubesched.apiserver.field_sets import FieldSet, Path, path_text, to_fields_v1
from kubesched.apiserver.layouts import Division, EntryError, Layout, entry_element
from kubesched.apiserver.plain import Plain
from kubesched.apiserver.schema import ListType, Scalar

__all__ = ["Comparison", "compare", "faults", "field_set", "merge", "remove"]


class _Absent:
    """What stands for a value that is not there; null is one that is."""


_ABSENT: Final = _Absent()
_DUPLICATE: Final = "duplicate entries for key"
_TEXT_SCALARS: Final = ("bytes", "microTime", "string", "time")
_NUMBERS: Final = ("float64", "int32", "int64")
_GO_TYPES: Final = {
    bool: "bool",
    dict: "map[string]interface {}",
    float: "float64",
    int: "int64",
    list: "[]interface {}",
    str: "string",
}


def faults(value: Any, layout: Layout, *, allows_duplicates: bool = False) -> list[str]:
    """Return why a value cannot be applied, each fault with its path; empty if it can.

    Args:
        value: An object.
        layout: Of the object.
        allows_duplicates: Whether keys of a list may stand twice, as in what is stored.
    """
    found = _faults(value, layout, ())
    return [one for one in found if not (allows_duplicates and _DUPLICATE in one)]


def _faults(value: Any, layout: Layout, path: Path) -> Iterator[str]:
    where = f"{path_text(path)}: " if path else ""
    if value is None or layout.division is Division.OPEN:
        return
    if isinstance(layout.type, Scalar):
        if fault := _scalar_fault(value, layout.type.form):
            yield where + fault
    elif isinstance(layout.type, ListType):
        if isinstance(value, list):
            yield from _entry_faults(value, layout, path)
        else:
            yield f"{where}expected list, got &{{{_go_value(value)}}}"
    elif isinstance(value, dict):
        for name in sorted(value):
            below = (*path, f"f:{name}")
            child = layout.child(name)
            if child is None:
                yield f"{path_text(below)}: field not declared in schema"
                return
            yield from _faults(value[name], child, below)
    else:
        yield f"{where}expected map, got &{{{_go_value(value)}}}"


def _entry_faults(entries: list[Any], layout: Layout, path: Path) -> Iterator[str]:
    assert layout.element is not None, "lists have elements"
    seen: dict[str, None] = {}
    for index, entry in enumerate(entries):
        element = f"i:{index}"
        if layout.is_list:
            try:
                element = entry_element(layout, entry)
            except EntryError as error:
                yield f"{path_text(path)}: element {index}: {error}"
                return
            if element in seen:
                shown = path_text((element,))
                yield f"{path_text(path)}: {_DUPLICATE} {shown}"
            seen[element] = None
        yield from _faults(entry, layout.element, (*path, element))


def _scalar_fault(value: Any, form: str) -> str | None:
    if form in _TEXT_SCALARS:
        if not isinstance(value, str):
            shown = _go_syntax(value)
            return f"expected string, got &value.valueUnstructured{{Value:{shown}}}"
    elif form in _NUMBERS:
        if isinstance(value, bool) or not isinstance(value, int | float):
            return f"expected numeric (int or float), got {_GO_TYPES[type(value)]}"
    elif form == "bool":
        if not isinstance(value, bool):
            return f"expected boolean, got &{{{_go_value(value)}}}"
    elif form != "any" and isinstance(value, dict | list):
        return f"expected any scalar, got &{{{_go_value(value)}}}"
    return None


def _go_value(value: Any) -> str:
    if isinstance(value, dict):
        parts = (f"{name}:{_go_value(child)}" for name, child in sorted(value.items()))
        return f"map[{' '.join(parts)}]"
    if isinstance(value, list):
        return f"[{' '.join(map(_go_value, value))}]"
    if value is None:
        return "<nil>"
    return str(value).lower() if isinstance(value, bool) else str(value)


def _go_syntax(value: Any) -> str:
    if isinstance(value, dict):
        parts = (f"{json.dumps(name)}:{_go_syntax(value[name])}" for name in sorted(value))
        return f"map[string]interface {{}}{{{', '.join(parts)}}}"
    if isinstance(value, list):
        return f"[]interface {{}}{{{', '.join(map(_go_syntax, value))}}}"
    return "interface {}(nil)" if value is None else json.dumps(value, ensure_ascii=False)


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
        try:
            found.setdefault(entry_element(layout, entry), []).append(entry)
        except EntryError:
            # Stored objects may have entries without keys; nobody owns these.
            continue
    return found


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
    left = _single_entries(live, layout)
    right = _single_entries(applied, layout)
    shared = [element for element, _ in right if any(element == one for one, _ in left)]
    return list(_interleaved(left, right, shared, layout.element))


def _single_entries(entries: list[Any], layout: Layout) -> list[tuple[str, Any]]:
    return [(entry_element(layout, entry), entry) for entry in entries]


def _interleaved(
    left: list[tuple[str, Any]], right: list[tuple[str, Any]], shared: list[str], layout: Layout
) -> Iterator[Any]:
    wanted = dict(right)
    counts: dict[str, int] = {}
    for element, _ in left:
        counts[element] = counts.get(element, 0) + 1
    current = {element: entry for element, entry in left if counts[element] == 1}
    done: dict[str, None] = {}
    waiting = [element for element, _ in right]
    for element, entry in left:
        if element not in wanted:
            yield entry
        elif element not in done and element == next(one for one in shared if one not in done):
            # Everything that is applied before this entry comes before it.
            while waiting and element not in done:
                first = waiting.pop(0)
                done[first] = None
                yield (
                    merge(current[first], wanted[first], layout)
                    if first in current
                    else wanted[first]
                )
    for element in waiting:
        yield (
            merge(current[element], wanted[element], layout)
            if element in current
            else wanted[element]
        )


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
        node = unwanted.get(entry_element(layout, entry))
        if node is None:
            yield entry
        elif node and "." not in node:
            yield _remove(entry, node, layout.element)
