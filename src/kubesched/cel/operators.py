"""Operators, and conversions between types.

Upstream: google/cel-go common/stdlib/standard.go, common/types/{int,uint,double,list,overflow}.go
Differs:  nothing.
"""

from __future__ import annotations

import math
import operator
import re
from collections.abc import Callable

from kubesched.api.go_text import GO_BOOLEANS, go_float
from kubesched.api.integers import INT64_MAX, INT64_MIN, is_int64
from kubesched.cel.declarations import Library
from kubesched.cel.values import (
    UINT_MAX,
    CelError,
    CelType,
    CostLimitExceededError,
    UInt,
    checked_int,
    checked_uint,
    compare,
    is_primitive,
    map_key,
    no_such_overload,
    quietly_equal,
    type_name,
)

_COST_MAX = 1_000_000


def _kind(value: object) -> type | None:
    """Return the type that decides about arithmetic; None for a bool, which has no arithmetic."""
    return None if isinstance(value, bool) else type(value)


def _check_operands(name: str, left: object, right: object, kinds: tuple[type, ...]) -> None:
    """Raise CelError unless both operands are of the same one of these kinds."""
    if _kind(left) not in kinds:
        raise CelError("no such overload" if isinstance(left, str) else f"no such overload: {name}")
    if _kind(left) is not _kind(right):
        raise no_such_overload()


def add(left: object, right: object) -> object:
    """`left + right`."""
    _check_operands("_+_", left, right, (int, UInt, float, str, tuple))
    if isinstance(left, str | tuple):
        check_cost(len(left) + len(right))  # type: ignore[arg-type]  # both are of one kind
    return _checked(left, operator.add(left, right))


def check_cost(cost: int) -> None:
    """Raise CostLimitExceededError for a length or a number of comparisons beyond the limit."""
    if cost > _COST_MAX:
        raise CostLimitExceededError


def subtract(left: object, right: object) -> object:
    """`left - right`."""
    _check_operands("_-_", left, right, (int, UInt, float))
    return _checked(left, operator.sub(left, right))


def multiply(left: object, right: object) -> object:
    """`left * right`."""
    _check_operands("_*_", left, right, (int, UInt, float))
    return _checked(left, operator.mul(left, right))


def divide(left: object, right: object) -> object:
    """`left / right`; integer division rounds towards zero."""
    _check_operands("_/_", left, right, (int, UInt, float))
    if isinstance(left, float) and isinstance(right, float):
        return _divide_doubles(left, right)
    assert isinstance(left, int)
    assert isinstance(right, int)
    if right == 0:
        raise CelError("division by zero")
    quotient = abs(left) // abs(right)
    return _checked(left, quotient if (left < 0) == (right < 0) else -quotient)


def modulo(left: object, right: object) -> object:
    """`left % right`, with the sign of `left`."""
    _check_operands("_%_", left, right, (int, UInt))
    assert isinstance(left, int)
    assert isinstance(right, int)
    if right == 0:
        raise CelError("modulus by zero")
    remainder = abs(left) % abs(right)
    return _checked(left, -remainder if left < 0 else remainder)


def negate(value: object) -> object:
    """`-value`."""
    if isinstance(value, bool | str):
        raise no_such_overload()
    if isinstance(value, UInt) or not isinstance(value, int | float):
        raise CelError("no such overload: -_")
    return -value if isinstance(value, float) else checked_int(-value)


def logical_not(value: object) -> bool:
    """`!value`."""
    if not isinstance(value, bool):
        raise no_such_overload()
    return not value


def contains(value: object, container: object) -> bool:
    """`value in container`."""
    if isinstance(container, tuple):
        return any(quietly_equal(value, element) for element in container)
    if isinstance(container, dict):
        return is_primitive(value) and map_key(value) in container
    raise no_such_overload()


def _divide_doubles(left: float, right: float) -> float:
    if right != 0:
        return left / right
    if left == 0 or math.isnan(left):
        return math.nan
    return math.copysign(math.inf, left) * math.copysign(1.0, right)


def _checked(like: object, result: object) -> object:
    """Return the result with the type of the operands. Raises CelError on overflow."""
    if isinstance(like, UInt) and isinstance(result, int):
        return checked_uint(result)
    if isinstance(like, int) and isinstance(result, int):
        return checked_int(result)
    return result


def _relation(name: str, holds: Callable[[int, int], bool]) -> Callable[[object, object], bool]:
    def relation(left: object, right: object) -> bool:
        if not is_primitive(left):
            raise CelError(f"no such overload: {name}")
        return holds(compare(left, right), 0)

    return relation


_RELATIONS = {
    "_<_": _relation("_<_", operator.lt),
    "_<=_": _relation("_<=_", operator.le),
    "_>_": _relation("_>_", operator.gt),
    "_>=_": _relation("_>=_", operator.ge),
}
_ORDERED = (
    *((kind, kind) for kind in ("bool", "string")),
    *((left, right) for left in ("int", "uint", "double") for right in ("int", "uint", "double")),
)


# Conversions.

_DIGITS = "[0-9]{1,1000}"
_SPECIAL_DOUBLE = re.compile("nan|[+-]?inf(?:inity)?", re.IGNORECASE | re.ASCII)
_HEX_DOUBLE = re.compile(r"[+-]?0[xX][0-9a-fA-F]*\.?[0-9a-fA-F]*[pP][+-]?[0-9]+")
_DOUBLE = re.compile(r"[+-]?[0-9._]+(?:[eE][+-]?[0-9_]+)?")


def _failed(source: str, target: str) -> CelError:
    return CelError(f"type conversion error from '{source}' to '{target}'")


def _identity(value: object) -> object:
    return value


def _string_to_bool(string: str) -> bool:
    if string not in GO_BOOLEANS:
        raise _failed("string", "bool")
    return GO_BOOLEANS[string]


def _string_to_int(string: str) -> int:
    if re.fullmatch("[+-]?" + _DIGITS, string) and is_int64(int(string)):
        return int(string)
    raise _failed("string", "int")


def _string_to_uint(string: str) -> UInt:
    if re.fullmatch(_DIGITS, string) and int(string) <= UINT_MAX:
        return UInt(string)
    raise _failed("string", "uint")


def _string_to_double(string: str) -> float:
    if _SPECIAL_DOUBLE.fullmatch(string):
        return float(string)
    try:
        if _HEX_DOUBLE.fullmatch(string):
            return float.fromhex(string)
        if _DOUBLE.fullmatch(string) and math.isfinite(float(string)):
            return float(string)
    except (ValueError, OverflowError):
        pass
    raise _failed("string", "double")


def _double_to_int(value: float) -> int:
    if math.isnan(value) or math.isinf(value) or not INT64_MIN < value < INT64_MAX:
        raise CelError("integer overflow")
    return int(value)


def _double_to_uint(value: float) -> UInt:
    if math.isnan(value) or math.isinf(value) or not 0 <= value < UINT_MAX:
        raise CelError("unsigned integer overflow")
    return UInt(value)


LIBRARY: Library = {
    **{
        f"_+_({kind}, {kind}): {kind}": add
        for kind in ("double", "int", "list(A)", "string", "uint")
    },
    **{f"_-_({kind}, {kind}): {kind}": subtract for kind in ("double", "int", "uint")},
    **{f"_*_({kind}, {kind}): {kind}": multiply for kind in ("double", "int", "uint")},
    **{f"_/_({kind}, {kind}): {kind}": divide for kind in ("double", "int", "uint")},
    **{f"_%_({kind}, {kind}): {kind}": modulo for kind in ("int", "uint")},
    **{f"-_({kind}): {kind}": negate for kind in ("double", "int")},
    "!_(bool): bool": logical_not,
    "@in <- A, list(A): bool": contains,
    "@in <- A, map(A, B): bool": contains,
    **{
        f"{name}({left}, {right}): bool": function
        for name, function in _RELATIONS.items()
        for left, right in _ORDERED
    },
    "type(A): type": lambda value: CelType(type_name(value)),
    "dyn(A): dyn": _identity,
    "bool(bool): bool": _identity,
    "bool(string): bool": _string_to_bool,
    "double(double): double": _identity,
    "double(int): double": float,
    "double(string): double": _string_to_double,
    "double(uint): double": float,
    "int(int): int": _identity,
    "int(double): int": _double_to_int,
    "int(string): int": _string_to_int,
    "int(uint): int": lambda value: checked_int(int(value)),
    "string(string): string": _identity,
    "string(bool): string": lambda value: "true" if value else "false",
    "string(double): string": go_float,
    "string(int): string": str,
    "string(uint): string": str,
    "uint(uint): uint": _identity,
    "uint(double): uint": _double_to_uint,
    "uint(int): uint": checked_uint,
    "uint(string): uint": _string_to_uint,
}
