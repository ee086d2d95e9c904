"""A patched object as text, as upstream shows it to whoever sent a patch that does not fit.

What a patch does not touch keeps the order in which Go writes fields; objects that a patch goes
through have become maps, which Go writes by name.

Upstream: gopkg.in/evanphx/json-patch.v4, encoding/json
Differs:  nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeAlias

from kubesched.apiserver.plain import Plain, encode
from kubesched.apiserver.resources import Resource
from kubesched.apiserver.schema import ListType, MapType, ObjectType, type_of

# The objects that a patch goes through: by name, what it goes through below.
_Touched: TypeAlias = Mapping[str, "_Touched"]
_ESCAPED = str.maketrans({"<": "\\u003c", ">": "\\u003e", "&": "\\u0026"})


def merged_text(resource: Resource, changed: Plain, patch: Any) -> str:
    """Return an object that a merge patch was applied to.

    Args:
        resource: What it is.
        changed: The object.
        patch: The patch.
    """
    return _text(resource, changed, _touched_by_merge(patch))


def operated_text(resource: Resource, changed: Plain, operations: Any) -> str:
    """Return an object that a JSON patch was applied to.

    Args:
        resource: What it is.
        changed: The object.
        operations: Of the patch.
    """
    touched: dict[str, Any] = {}
    for operation in operations if isinstance(operations, list) else ():
        for name in ("path", "from"):
            path = operation.get(name) if isinstance(operation, dict) else None
            if isinstance(path, str):
                _touch(touched, path)
    return _text(resource, changed, touched)


def _touched_by_merge(patch: Any) -> _Touched:
    if not isinstance(patch, dict):
        return {}
    return {
        name: _touched_by_merge(value) for name, value in patch.items() if isinstance(value, dict)
    }


def _touch(touched: dict[str, Any], path: str) -> None:
    for part in path.split("/")[1:-1]:
        touched = touched.setdefault(part.replace("~1", "/").replace("~0", "~"), {})


def _text(resource: Resource, changed: Plain, touched: _Touched) -> str:
    object_type = type_of(resource.group, resource.version, resource.kind)
    ordered = _ordered(changed, object_type, touched)
    return encode(ordered).decode().translate(_ESCAPED)


def _ordered(value: Any, value_type: Any, touched: _Touched | None) -> Any:
    """Return a value with its fields in order; what is not touched is in Go's."""
    if isinstance(value, list):
        element = value_type.element if isinstance(value_type, ListType) else None
        return [
            _ordered(one, element, (touched or {}).get(str(number)))
            for number, one in enumerate(value)
        ]
    if not isinstance(value, dict):
        return value
    names = sorted(value)
    if touched is None and isinstance(value_type, ObjectType):
        known = [name for name in value_type.fields if name in value]
        names = [*known, *(name for name in names if name not in value_type.fields)]
    return {
        name: _ordered(value[name], _type_below(value_type, name), (touched or {}).get(name))
        for name in names
    }


def _type_below(value_type: Any, name: str) -> Any:
    if isinstance(value_type, ObjectType):
        field = value_type.fields.get(name)
        return None if field is None else field.type
    return value_type.element if isinstance(value_type, MapType) else None
