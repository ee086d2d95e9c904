"""Field sets: paths to fields of an object, as `metadata.managedFields` keeps them.

A path is a tuple of elements in their written form: `f:name` for a field, `k:{"name":"x"}` for a
list entry with keys, `v:"x"` for an entry of a set.

Upstream: vendor/sigs.k8s.io/structured-merge-diff/v6/fieldpath (v1.36)
Differs:  nothing.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any, Final, TypeAlias

from kubesched.apiserver.plain import Plain

__all__ = [
    "FieldSet",
    "FieldSetError",
    "Path",
    "from_fields_v1",
    "key_element",
    "path_text",
    "sorted_paths",
    "to_fields_v1",
    "value_element",
    "without_below",
]

Path: TypeAlias = tuple[str, ...]
FieldSet: TypeAlias = frozenset[Path]

_MEMBER: Final = "."
_RANKS: Final = {"f": 0, "k": 1, "v": 2, "i": 3}


class FieldSetError(ValueError):
    """What should be a written field set is none."""


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
    """Return the set of a written form.

    Raises:
        FieldSetError: It is none.
    """
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
    """Return paths in order: at each level first those that end there, then the longer ones."""
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
