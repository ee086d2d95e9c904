"""Field validation finds the fields of a body that nobody knows, and those that stand twice.

Upstream: sigs.k8s.io/json, staging/src/k8s.io/apimachinery/pkg/runtime/converter.go,
          staging/src/k8s.io/apiserver/pkg/endpoints/handlers/rest.go (v1.36)
Differs:  of YAML aliases the repeated fields are told once, not at every use.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, Final, NamedTuple

import yaml

from kubesched.apiserver.object_types import ObjectType, decoded, type_of
from kubesched.apiserver.plain import Plain
from kubesched.apiserver.reading import DecodeError, Place, shown_path
from kubesched.apiserver.resource import Resource
from kubesched.apiserver.value_types import ListType, MapType, ValueType

__all__ = ["patch_problems", "problems", "unknown_field_paths", "warnings_of"]

_YAML_HEAD: Final = "yaml: unmarshal errors:\n"
_PATCH_FIELDS: Final = frozenset(("op", "path", "from", "value"))
# Both read plain structure only, nothing is built; the one made from C is faster.
_YamlLoader: Final = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


class _Members(NamedTuple):
    """An object's members as they stand in the text, repeated ones too."""

    pairs: list[tuple[str, Any]]


class _RepeatedError(Exception):
    pass


def problems(resource: Resource, obj: Plain, body: bytes) -> list[str]:
    """Return what a strict client wants to know of a body, in the order of the body.

    Args:
        resource: What the body should be.
        obj: The body, decoded.
        body: Its text, in any form.

    Returns:
        Texts such as `unknown field "spec.nodSelector"`; none for a body that does not fit its
        type, which is told otherwise.
    """
    object_type = type_of(resource.group, resource.version, resource.kind)
    unknown = None if object_type is None else _unknown_paths(object_type, obj)
    if object_type is None or unknown is None:
        return []
    found = [_unknown(path) for path in unknown]
    try:
        members = _with_repeated(body)
    except ValueError:
        return [*_repeated_in_yaml(body), *found]
    if members is None:
        return found
    return list(dict.fromkeys(_of_object(object_type, members, None)))


def unknown_field_paths(group: str, version: str, kind: str, obj: Plain) -> list[str]:
    """Return the paths of an object's fields that its kind does not have.

    None for an object of an unknown kind, or one that does not fit its type.
    """
    object_type = type_of(group, version, kind)
    return [] if object_type is None else _unknown_paths(object_type, obj) or []


def patch_problems(resource: Resource, obj: Plain, patch: bytes, *, is_merged: bool) -> list[str]:
    """Return what a strict client wants to know of a patch.

    Args:
        resource: What is patched.
        obj: The object with the patch applied, before unknown fields are dropped.
        patch: The text of the patch.
        is_merged: Whether the patch is a strategic merge, whose unknown fields come in order of
            their texts and not of the object's fields.
    """
    members = _with_repeated(patch)
    repeated = [] if members is None else list(_anywhere(members, None))
    operations = json.loads(patch)
    if isinstance(operations, list):
        repeated = [f"json patch {text}" for text in _of_operations(operations, repeated)]
    unknown = problems(resource, obj if is_merged else _in_order(obj), b"{}")
    return list(dict.fromkeys([*repeated, *(sorted(unknown) if is_merged else unknown)]))


def warnings_of(found: list[str]) -> list[str]:
    """Return problems as a client that only wants to be warned hears of them: one by one."""
    warnings: list[str] = []
    for problem in found:
        if problem.startswith(_YAML_HEAD):
            lines = problem.removeprefix(_YAML_HEAD).split("\n")
            warnings.extend(line.strip() for line in lines)
        else:
            warnings.append(problem)
    return warnings


def _unknown_paths(object_type: ObjectType, obj: Plain) -> list[str] | None:
    """Return the paths of unknown fields; None for what does not fit the type."""
    try:
        return list(decoded(object_type, obj)[1])
    except DecodeError:
        return None


def _unknown(path: str) -> str:
    return f'unknown field "{path}"'


def _repeated(place: Place) -> str:
    return f'duplicate field "{shown_path(place)}"'


def _with_repeated(text: bytes) -> Any:
    """Return a JSON text with all members of its objects, None if none stands twice.

    Raises:
        ValueError: It is no JSON.
    """
    try:
        json.loads(text, object_pairs_hook=_refuse_repeated)
    except _RepeatedError:
        return json.loads(text, object_pairs_hook=_Members)
    return None


def _refuse_repeated(pairs: list[tuple[str, Any]]) -> None:
    if len(pairs) > 1 and len({name for name, _ in pairs}) < len(pairs):
        raise _RepeatedError


def _of_value(value_type: ValueType, value: Any, place: Place) -> Iterator[str]:
    if isinstance(value_type, ListType) and isinstance(value, list):
        for index, one in enumerate(value):
            yield from _of_value(value_type.element, one, Place(place, index))
    elif isinstance(value, _Members):
        if isinstance(value_type, ObjectType):
            yield from _of_object(value_type, value, place)
        elif isinstance(value_type, MapType):
            yield from _of_map(value_type, value, place)


def _of_object(object_type: ObjectType, members: _Members, place: Place | None) -> Iterator[str]:
    seen = set()
    for name, value in members.pairs:
        inner = Place(place, name)
        field = object_type.fields.get(name)
        if field is None:
            yield _unknown(shown_path(inner))
            continue
        if name in seen:
            yield _repeated(inner)
        seen.add(name)
        yield from _of_value(field.type, value, inner)


def _of_map(map_type: MapType, members: _Members, place: Place) -> Iterator[str]:
    seen = set()
    for name, value in members.pairs:
        inner = Place(place, name)
        if name in seen:
            yield _repeated(inner)
        seen.add(name)
        yield from _of_value(map_type.element, value, inner)


def _anywhere(value: Any, place: Place | None) -> Iterator[str]:
    """Yield what stands twice, whatever it belongs to."""
    if isinstance(value, _Members):
        seen = set()
        for name, one in value.pairs:
            inner = Place(place, name)
            if name in seen:
                yield _repeated(inner)
            seen.add(name)
            yield from _anywhere(one, inner)
    elif isinstance(value, list):
        for index, one in enumerate(value):
            yield from _anywhere(one, Place(place, index))


def _of_operations(operations: list[Any], repeated: list[str]) -> list[str]:
    unknown = [
        _unknown(f"[{index}].{name}")
        for index, operation in enumerate(operations)
        if isinstance(operation, dict)
        for name in operation
        if name not in _PATCH_FIELDS
    ]
    return [*repeated, *unknown]


def _in_order(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _in_order(value[name]) for name in sorted(value)}
    if isinstance(value, list):
        return [_in_order(one) for one in value]
    return value


def _repeated_in_yaml(text: bytes) -> list[str]:
    try:
        root = yaml.compose(text, _YamlLoader)
    except yaml.YAMLError:
        return []
    lines = list(_repeated_keys(root, set()))
    return [_YAML_HEAD + "\n".join(lines)] if lines else []


def _repeated_keys(node: yaml.Node | None, visited: set[int]) -> Iterator[str]:
    """Yield the lines of keys that stand twice, inner ones first as Go's parser finds them."""
    if node is None or id(node) in visited:
        return
    visited.add(id(node))
    if isinstance(node, yaml.SequenceNode):
        for one in node.value:
            yield from _repeated_keys(one, visited)
    elif isinstance(node, yaml.MappingNode):
        seen = set()
        for key, value in node.value:
            yield from _repeated_keys(value, visited)
            if key.value in seen:
                quoted = json.dumps(key.value, ensure_ascii=False)
                yield f"  line {value.start_mark.line + 1}: key {quoted} already set in map"
            seen.add(key.value)
