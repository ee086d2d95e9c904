"""Arithmetic, order and membership.

Upstream: google/cel-go common/stdlib/standard.go, common/types/{int,uint,double,list,overflow}.go
Differs:  nothing.
"""

import math
import operator
from collections.abc import Callable

from kubesched.cel.declarations import Library
from kubesched.cel.values import (
    CelError,
    UInt,
    checked_int,
    checked_uint,
    compare,
    is_comparable,
    map_key,
    no_such_overload,
    quietly_equal,
)

_LENGTH_MAX = 1_000_000


def _kind(value: object) -> type | None:
    """Return the type that decides about arithmetic; None for a bool, which has none."""
    return None if isinstance(value, bool) else type(value)


def _lacks_trait(name: str, value: object, kinds: tuple[type, ...]) -> None:
    if _kind(value) not in kinds:
        raise CelError(
            "no such overload" if isinstance(value, str) else f"no such overload: {name}"
        )


def add(left: object, right: object) -> object:
    """`left + right`."""
    _lacks_trait("_+_", left, (int, UInt, float, str, bytes, tuple))
    if _kind(left) is not _kind(right):
        raise no_such_overload()
    if isinstance(left, str | bytes | tuple):
        check_length(len(left) + len(right))  # type: ignore[arg-type]  # both are of one kind
    return _checked(left, operator.add(left, right))


def check_length(length: int) -> None:
    """Raise CelError for a length at which upstream would have exceeded its cost limit."""
    if length > _LENGTH_MAX:
        raise CelError("operation cancelled: actual cost limit exceeded")


def subtract(left: object, right: object) -> object:
    """`left - right`."""
    _lacks_trait("_-_", left, (int, UInt, float))
    if _kind(left) is not _kind(right):
        raise no_such_overload()
    return _checked(left, operator.sub(left, right))


def multiply(left: object, right: object) -> object:
    """`left * right`."""
    _lacks_trait("_*_", left, (int, UInt, float))
    if _kind(left) is not _kind(right):
        raise no_such_overload()
    return _checked(left, operator.mul(left, right))


def divide(left: object, right: object) -> object:
    """`left / right`; integer division rounds towards zero."""
    _lacks_trait("_/_", left, (int, UInt, float))
    if _kind(left) is not _kind(right):
        raise no_such_overload()
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
    _lacks_trait("_%_", left, (int, UInt))
    if _kind(left) is not _kind(right):
        raise no_such_overload()
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
        return isinstance(value, bool | int | float | str) and map_key(value) in container
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


def _relation(name: str, holds: Callable[[int], bool]) -> Callable[[object, object], bool]:
    def relation(left: object, right: object) -> bool:
        if not is_comparable(left):
            raise CelError(f"no such overload: {name}")
        return holds(compare(left, right))

    return relation


less = _relation("_<_", lambda order: order < 0)
less_equals = _relation("_<=_", lambda order: order <= 0)
greater = _relation("_>_", lambda order: order > 0)
greater_equals = _relation("_>=_", lambda order: order >= 0)

_ORDERED = (
    *((kind, kind) for kind in ("bool", "string", "bytes")),
    *((left, right) for left in ("int", "uint", "double") for right in ("int", "uint", "double")),
)

LIBRARY: Library = {
    **{
        f"_+_({kind}, {kind}): {kind}": add
        for kind in ("bytes", "double", "int", "list(A)", "string", "uint")
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
        for name, function in (
            ("_<_", less),
            ("_<=_", less_equals),
            ("_>_", greater),
            ("_>=_", greater_equals),
        )
        for left, right in _ORDERED
    },
}
