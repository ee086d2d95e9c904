"""Checks of decoded objects that their types cannot express: quantities and times.

What is checked here once need not be feared afterwards: no later reader meets a quantity that
cannot be parsed.

Invariants: a path is written as in the JSON, `$.spec.containers[0].resources.requests.cpu`.
"""

import types
from collections.abc import Iterator
from functools import cache
from typing import Any, Final, NamedTuple, get_args, get_origin, get_type_hints

import msgspec

from kubesched.api.meta import KubeStruct, parse_time
from kubesched.api.quantity import Quantity, parse_quantity

_TIME_SUFFIXES: Final = ("_time", "_timestamp")
_QUANTITY_PARTS: Final = frozenset(get_args(Quantity))


class Fault(NamedTuple):
    """What is wrong, and at which path."""

    path: str
    message: str


class _Place(NamedTuple):
    """A field that holds something to check, at once or further down."""

    attribute: str
    name: str
    shape: str


def first_fault(item: KubeStruct) -> Fault | None:
    """Return the first quantity or time that cannot be parsed, None if all can."""
    return next(_faults(item, "$"), None)


def _faults(item: KubeStruct, path: str) -> Iterator[Fault]:
    for attribute, name, shape in _places(type(item)):
        value = getattr(item, attribute)
        # Most fields are absent, and an absent one has nothing to check.
        if not value and value != 0:
            continue
        yield from _CHECKS[shape](value, f"{path}.{name}")


def _check_struct(value: Any, path: str) -> Iterator[Fault]:
    return _faults(value, path)


def _check_structs(value: Any, path: str) -> Iterator[Fault]:
    for index, item in enumerate(value):
        yield from _faults(item, f"{path}[{index}]")


def _check_struct_map(value: Any, path: str) -> Iterator[Fault]:
    for key, item in value.items():
        yield from _faults(item, f"{path}.{key}")


def _check_quantity(value: Any, path: str) -> Iterator[Fault]:
    try:
        parse_quantity(value)
    except ValueError as error:
        yield Fault(path, str(error))


def _check_quantity_map(value: Any, path: str) -> Iterator[Fault]:
    for key, quantity in value.items():
        yield from _check_quantity(quantity, f"{path}.{key}")


def _check_time(value: Any, path: str) -> Iterator[Fault]:
    try:
        parse_time(value)
    except ValueError as error:
        yield Fault(path, str(error))


_CHECKS: Final = {
    "struct": _check_struct,
    "structs": _check_structs,
    "struct map": _check_struct_map,
    "quantity": _check_quantity,
    "quantity map": _check_quantity_map,
    "time": _check_time,
}


@cache
def _places(type_: type[KubeStruct]) -> tuple[_Place, ...]:
    hints = get_type_hints(type_)
    places = []
    for field in msgspec.structs.fields(type_):
        shape = _shape(field.name, hints[field.name])
        if shape:
            places.append(_Place(field.name, field.encode_name, shape))
    return tuple(places)


def _shape(name: str, hint: Any) -> str:
    """Return what of a field has to be checked, "" if nothing has."""
    parts = _union_parts(hint)
    if parts == _QUANTITY_PARTS:
        return "quantity"
    if parts == {str}:
        return "time" if name.endswith(_TIME_SUFFIXES) else ""
    return _shape_of_collection(next(iter(parts))) if len(parts) == 1 else ""


def _shape_of_collection(part: Any) -> str:
    origin, arguments = get_origin(part), get_args(part)
    if origin is dict and _union_parts(arguments[1]) == _QUANTITY_PARTS:
        return "quantity map"
    if origin is dict:
        return "struct map" if _is_checked(arguments[1]) else ""
    if origin is tuple:
        return "structs" if _is_checked(arguments[0]) else ""
    return "struct" if _is_checked(part) else ""


def _union_parts(hint: Any) -> frozenset[Any]:
    parts = get_args(hint) if isinstance(hint, types.UnionType) else (hint,)
    return frozenset(part for part in parts if part is not type(None))


def _is_checked(type_: Any) -> bool:
    return isinstance(type_, type) and issubclass(type_, KubeStruct) and bool(_places(type_))
