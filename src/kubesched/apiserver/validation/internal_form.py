"""The internal form of objects, which upstream's messages show: other names, and nothing left out.

`internal_types.txt` tells for each type the names there, the names in JSON, and the types; `^`
marks a field that JSON has one level further up.

Upstream: pkg/apis/core/types.go, pkg/apis/policy/types.go, apimachinery/pkg/util/diff (v1.36)
Differs:  metadata in templates of claims is not shown.
"""

from __future__ import annotations

import difflib
import json
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from typing import Any, Final, NamedTuple

from kubesched.apiserver.plain import Plain
from kubesched.apiserver.schema import ListType, ObjectType, ValueType, type_of

_ZEROES: Final[Mapping[str, Any]] = {
    "IntOrString": 0,
    "Quantity": "0",
    "bool": False,
    "int32": 0,
    "int64": 0,
    "string": "",
}


class _Field(NamedTuple):
    go_name: str
    name: str
    type: str


@cache
def _types() -> Mapping[str, list[_Field]]:
    source = files(__package__).joinpath("internal_types.txt")
    types: dict[str, list[_Field]] = {}
    fields: list[_Field] = []
    for line in source.read_text(encoding="utf-8").splitlines():
        if line.startswith("  "):
            fields.append(_Field(*line.split()))
        elif line:
            fields = types[line] = []
    return types


def internal_form(type_name: str, value: Plain) -> Plain:
    """Return an object as messages show it.

    Args:
        type_name: In the table, such as `core/Taint`.
        value: As the server writes it.
    """
    return _struct(type_name, value, {})


def _struct(type_name: str, value: Plain, outer: Plain) -> Plain:
    shown: Plain = {}
    for field in _types()[type_name]:
        source, name = (outer, field.name[1:]) if field.name[0] == "^" else (value, field.name)
        shown[field.go_name] = _shown(field.type, source.get(name), value)
    return shown


def _shown(type_name: str, value: Any, outer: Plain) -> Any:
    if type_name.startswith("*"):
        return None if value is None else _shown(type_name[1:], value, outer)
    if type_name.startswith(("[]", "map[]")):
        return _all_shown(type_name, value, outer) if value else None
    if type_name in _types():
        return _struct(type_name, value or {}, outer)
    if value is None:
        return _ZEROES.get(type_name)
    return ordered(type_name[5:], value) if type_name.startswith("meta/") else value


def _all_shown(type_name: str, value: Any, outer: Plain) -> Any:
    element = type_name.partition("]")[2]
    if type_name.startswith("[]"):
        return [_shown(element, one, outer) for one in value]
    return {key: _shown(element, value[key], outer) for key in sorted(value)}


def _in_order(value_type: ValueType, value: Any) -> Any:
    """Return a value with its fields in Go's order."""
    if isinstance(value_type, ObjectType):
        fields = value_type.fields
        return {name: _in_order(fields[name].type, value[name]) for name in fields if name in value}
    if isinstance(value_type, ListType):
        return [_in_order(value_type.element, one) for one in value]
    return {key: value[key] for key in sorted(value)} if isinstance(value, dict) else value


def difference(type_name: str, old: Plain, new: Plain) -> str:
    """Return the lines in which two objects differ, and three around each, as upstream does."""
    before, after = (
        json.dumps(internal_form(type_name, one), indent=1, ensure_ascii=False).split("\n")
        for one in (old, new)
    )
    lines = difflib.unified_diff(before, after, n=3, lineterm="")
    return "".join(f"{line}\n" for line in list(lines)[2:])


def ordered(kind: str, value: Plain) -> Plain:
    """Return an object of the meta group with its fields in Go's order."""
    object_type = type_of("meta", "v1", kind)
    assert object_type is not None, f"the fields of {kind} are known"
    shown: Plain = _in_order(object_type, value)
    return shown
