"""Checks of decoded objects that their types cannot express: quantities and times.

After these checks, no code has to handle a quantity that cannot be parsed.

Invariants: paths use JSON names, such as `$.spec.containers[0].resources.requests.cpu`.
"""

import types
from collections.abc import Callable
from functools import cache, lru_cache
from itertools import compress
from operator import attrgetter
from typing import Any, Final, NamedTuple, Union, get_args, get_origin, get_type_hints

import msgspec

from kubesched.api.field_errors import FieldError
from kubesched.api.meta import KubeStruct
from kubesched.api.quantity import Quantity, parse_quantity
from kubesched.api.times import parse_time

_TIME_SUFFIXES: Final = ("_time", "_timestamp")
_QUANTITY_PARTS: Final = frozenset((str, int, float))


class _Field(NamedTuple):
    """A field whose value, or a part of it, must be checked.

    Attributes:
        attribute: Its name; that of a field of a struct inside begins with the struct's: `a.b`.
        path: Its path below the object, such as `.spec.containers`.
        check: Returns the first invalid value, with its path below the field.
    """

    attribute: str
    path: str
    check: Callable[[Any], FieldError | None]


def first_invalid_value(item: KubeStruct) -> FieldError | None:
    """Return the first quantity or time that cannot be parsed, None if all can."""
    found = _check_struct(item)
    return None if found is None else FieldError(f"${found.path}", found.message)


def _check_struct(item: KubeStruct) -> FieldError | None:
    """Return the first invalid value, with its path relative to `item`, built only if needed."""
    read, fields = _reader(type(item))
    values = read(item)
    # Most fields are absent, and absent ones need no check. An empty text is neither a quantity nor
    # a time.
    there = [value is not None for value in values] if "" in values else values
    for field, value in compress(zip(fields, values, strict=True), there):
        if (found := field.check(value)) is not None:
            return FieldError(f"{field.path}{found.path}", found.message)
    return None


def _check_structs(items: tuple[KubeStruct, ...]) -> FieldError | None:
    for index, item in enumerate(items):
        if (found := _check_struct(item)) is not None:
            return FieldError(f"[{index}]{found.path}", found.message)
    return None


def _check_struct_map(items: dict[str, KubeStruct]) -> FieldError | None:
    for key, item in items.items():
        if (found := _check_struct(item)) is not None:
            return FieldError(f".{key}{found.path}", found.message)
    return None


@lru_cache(maxsize=65_536, typed=True)
def _check_quantity(quantity: Quantity) -> FieldError | None:
    try:
        parse_quantity(quantity)
    except ValueError as error:
        return FieldError("", str(error))
    return None


def _check_quantity_map(quantities: dict[str, Quantity]) -> FieldError | None:
    for key, quantity in quantities.items():
        if (found := _check_quantity(quantity)) is not None:
            return FieldError(f".{key}", found.message)
    return None


def _check_time(text: str) -> FieldError | None:
    try:
        parse_time(text)
    except ValueError as error:
        return FieldError("", str(error))
    return None


@cache
def _reader(type_: type[KubeStruct]) -> tuple[Callable[[KubeStruct], Any], tuple[_Field, ...]]:
    """Return the fields to check, and what reads all of them at once."""
    fields = _fields(type_)
    read = attrgetter(*(field.attribute for field in fields))
    # A single attribute is returned as it is, not in a tuple.
    return (read if len(fields) > 1 else lambda item: (read(item),)), fields


@cache
def _fields(type_: type[KubeStruct]) -> tuple[_Field, ...]:
    hints = get_type_hints(type_)
    found = []
    for field in msgspec.structs.fields(type_):
        hint, name, path = hints[field.name], field.name, f".{field.encode_name}"
        if _is_checked(hint):
            # It is always there.
            inside = _fields(hint)
            found += [_Field(f"{name}.{at}", path + below, check) for at, below, check in inside]
        elif (check := _check_of(name, hint)) is not None:
            found.append(_Field(name, path, check))
    return tuple(found)


def _check_of(name: str, hint: Any) -> Callable[[Any], FieldError | None] | None:
    """Return the check of a field, None if it needs none."""
    parts = _union_parts(hint)
    if parts == _QUANTITY_PARTS:
        return _check_quantity
    if parts == {str}:
        return _check_time if name.endswith(_TIME_SUFFIXES) else None
    return _check_of_collection(next(iter(parts))) if len(parts) == 1 else None


def _check_of_collection(part: Any) -> Callable[[Any], FieldError | None] | None:
    origin, arguments = get_origin(part), get_args(part)
    if origin is dict and _union_parts(arguments[1]) == _QUANTITY_PARTS:
        return _check_quantity_map
    if origin is dict:
        return _check_struct_map if _is_checked(arguments[1]) else None
    if origin is tuple:
        return _check_structs if _is_checked(arguments[0]) else None
    return _check_struct if _is_checked(part) else None


def _union_parts(hint: Any) -> frozenset[Any]:
    parts = get_args(hint) if get_origin(hint) in (Union, types.UnionType) else (hint,)
    return frozenset(part for part in parts if part is not type(None))


def _is_checked(type_: Any) -> bool:
    return isinstance(type_, type) and issubclass(type_, KubeStruct) and bool(_fields(type_))
