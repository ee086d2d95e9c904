"""Defaults: what the server fills in when an object is created, changed or read.

Most of them stand beside their fields, in the tables of types; those that depend on other fields
are functions here, by type.

Upstream: pkg/apis/*/*/defaults.go, zz_generated.defaults.go (v1.36)
Differs:  the time of a device taint is neither filled in nor renewed with its effect; of the older
          autoscaling version only the number of replicas is.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from typing import Any, Final

from kubesched.apiserver.defaults import core, older_fields, others, workloads
from kubesched.apiserver.plain import Plain, deep_copy
from kubesched.apiserver.resources import Resource
from kubesched.apiserver.schema import (
    Field,
    ListType,
    MapType,
    ObjectType,
    SchemaError,
    ValueType,
    decoded,
)
from kubesched.apiserver.status import bad_request

__all__ = ["fill_in", "with_defaults"]

_FUNCTIONS: Final[Mapping[str, Callable[[Plain], None]]] = {
    **core.DEFAULTS,
    **older_fields.DEFAULTS,
    **workloads.DEFAULTS,
    **others.DEFAULTS,
}


def with_defaults(resource: Resource, obj: Plain) -> Plain:
    """Return an object as the server writes it, with its defaults; unknown fields are dropped.

    An object of a kind whose fields are not known comes back as it is.

    Raises:
        StatusError: A value does not fit (400).
    """
    object_type = resource.type
    try:
        read, _ = decoded(object_type, obj)
    except SchemaError as error:
        raise bad_request(
            f'{resource.kind} in version "{resource.version}" cannot be handled as a '
            f"{resource.kind}: {error}"
        ) from None
    fill_in(object_type, read)
    return read


def fill_in(object_type: ObjectType, obj: Plain) -> None:
    """Fill in the defaults of an object, and of all that it holds, in place."""
    plan = _plan(object_type)
    if plan is None:
        return
    if plan.function is not None:
        plan.function(obj)
    for field in plan.literals:
        value = obj.get(field.name)
        if value is None or (not value and not field.is_pointer):
            obj[field.name] = deep_copy(field.default)
    for name, element, is_list, is_map in plan.children:
        child = obj.get(name)
        if child is None:
            continue
        for one in child if is_list else child.values() if is_map else (child,):
            fill_in(element, one)


class _Plan:
    """What there is to fill in of one type."""

    def __init__(self, object_type: ObjectType) -> None:
        self.function = _FUNCTIONS.get(object_type.name)
        self.literals = [one for one in object_type.fields.values() if one.default is not None]
        self.children = [
            (field.name, element, isinstance(field.type, ListType), isinstance(field.type, MapType))
            for field in object_type.fields.values()
            if (element := _object_in(field)) is not None
            # Types that hold themselves have no defaults.
            and element is not object_type
            and _plan(element) is not None
        ]

    def __bool__(self) -> bool:
        return bool(self.function or self.literals or self.children)


@cache
def _plan(object_type: ObjectType) -> _Plan | None:
    """Return what there is to fill in, None if there is nothing."""
    return _Plan(object_type) or None


def _object_in(field: Field) -> ObjectType | None:
    value_type: ValueType | Any = field.type
    if isinstance(value_type, ListType | MapType):
        value_type = value_type.element
    return value_type if isinstance(value_type, ObjectType) else None
