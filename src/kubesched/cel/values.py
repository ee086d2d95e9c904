"""The values of expressions, their types, equality and order.

Python's bool, int, float, str, None, tuple (list) and dict (map) serve as they are.

Upstream: google/cel-go common/types
Invariants: an int fits into 64 bits; keys of dicts come from `map_key`.
Differs:  nothing.
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import ClassVar

from kubesched.api.go_text import go_float
from kubesched.api.integers import is_int64

UINT_MAX = 2**64 - 1


class CelError(Exception):
    """An evaluation fails; the message is upstream's."""


class CostLimitExceededError(Exception):
    """The evaluation takes too long; unlike a CelError, `||` and `&&` cannot absorb this."""

    def __init__(self) -> None:
        super().__init__("operation cancelled: actual cost limit exceeded")


def succeeds(function: Callable[..., object]) -> Callable[..., bool]:
    """Return a predicate that is true where `function` raises no CelError."""

    def check(*args: object) -> bool:
        try:
            function(*args)
        except CelError:
            return False
        return True

    return check


def no_such_overload(function: str = "", *args: object) -> CelError:
    """Return the error of a function that does not accept these arguments."""
    if not function:
        return CelError("no such overload")
    types = ", ".join(type_name(arg) for arg in args)
    return CelError(f"no such overload: {function}({types})")


class UInt(int):
    """An unsigned 64-bit integer."""

    __slots__ = ()


@dataclass(frozen=True, slots=True)
class Optional:
    """A value, or none."""

    value: object = None
    has_value: bool = False


NONE = Optional()


class Opaque:
    """A value of a type of a library; it cannot be compared to values of other types."""

    __slots__ = ()

    type_name: ClassVar[str]


@dataclass(frozen=True, slots=True)
class CelType:
    """A type as a value of expressions."""

    name: str


class DefaultMap(dict[object, object]):
    """A map whose lookups return an empty map for a missing key; `in` still tests for the key."""

    __slots__ = ()


@dataclass(frozen=True, slots=True, eq=False)
class _BoxedKey:
    """A key that Python compares in another way than Go, which compares aggregates by identity."""

    value: object


# Python's bools equal 0 and 1.
_TRUE_KEY, _FALSE_KEY = _BoxedKey(True), _BoxedKey(False)


def map_key(value: object) -> object:
    """Return the dict key for a value; values that are one key in Go have equal dict keys."""
    if value is True:
        return _TRUE_KEY
    if value is False:
        return _FALSE_KEY
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, tuple | dict | Optional):
        return _BoxedKey(value)
    return value


def from_map_key(key: object) -> object:
    """Return the value of a dict key."""
    return key.value if isinstance(key, _BoxedKey) else key


_TYPE_NAMES: dict[type, str] = {
    bool: "bool",
    int: "int",
    UInt: "uint",
    float: "double",
    str: "string",
    type(None): "null_type",
    tuple: "list",
    dict: "map",
    DefaultMap: "map",
    Optional: "optional_type",
    CelType: "type",
}


def type_name(value: object) -> str:
    """Return the name of the value's type."""
    return value.type_name if isinstance(value, Opaque) else _TYPE_NAMES.get(type(value), "dyn")


def equal(left: object, right: object) -> bool:
    """`left == right`. Raises CelError for an opaque value compared to another type."""
    if left is None or right is None or isinstance(left, bool):
        return left is right
    if isinstance(left, int | float):
        return isinstance(right, int | float) and not isinstance(right, bool) and left == right
    if isinstance(left, tuple) and isinstance(right, tuple):
        return _lists_equal(left, right)
    if isinstance(left, dict) and isinstance(right, dict):
        return _maps_equal(left, right)
    if isinstance(left, Optional) and isinstance(right, Optional):
        return _optionals_equal(left, right)
    if type(left) is not type(right) and isinstance(left, Opaque):
        raise no_such_overload()
    return type(left) is type(right) and left == right


def quietly_equal(left: object, right: object) -> bool:
    """`left == right`, False instead of a CelError."""
    try:
        return equal(left, right)
    except CelError:
        return False


def _elements_differ(left: object, right: object) -> bool:
    """`left != right` for elements; like upstream, False instead of a CelError."""
    try:
        return not equal(left, right)
    except CelError:
        return False


def _lists_equal(left: tuple[object, ...], right: tuple[object, ...]) -> bool:
    return len(left) == len(right) and not any(map(_elements_differ, left, right))


def _maps_equal(left: Mapping[object, object], right: Mapping[object, object]) -> bool:
    return len(left) == len(right) and all(
        key in right and not _elements_differ(left[key], right[key]) for key in left
    )


def _optionals_equal(left: Optional, right: Optional) -> bool:
    if not left.has_value or not right.has_value:
        return left.has_value == right.has_value
    return equal(left.value, right.value)


def compare(left: object, right: object) -> int:
    """Return -1, 0 or 1. Raises CelError if the two cannot be ordered."""
    if isinstance(left, bool) or isinstance(right, bool):
        if isinstance(left, bool) and isinstance(right, bool):
            return int(left) - int(right)
        raise no_such_overload()
    if isinstance(left, int | float) and isinstance(right, int | float):
        if math.isnan(left) or math.isnan(right):
            raise CelError("NaN values cannot be ordered")
        return (left > right) - (left < right)
    if isinstance(left, str) and isinstance(right, str):
        return (left > right) - (left < right)
    raise no_such_overload()


def is_primitive(value: object) -> bool:
    """Whether the value is a bool, number or text; only these are ordered, and found as keys."""
    return isinstance(value, bool | int | float | str)


def is_zero(value: object) -> bool:
    """Whether the value is its type's zero value, for `optional.ofNonZeroValue`."""
    if isinstance(value, Optional):
        return not value.has_value or is_zero(value.value)
    return value is None or (
        isinstance(value, bool | int | float | str | tuple | dict) and not value
    )


def checked_int(number: int) -> int:
    """Return the number. Raises CelError if it does not fit into an int64."""
    if not is_int64(number):
        raise CelError("integer overflow")
    return number


def checked_uint(number: int) -> UInt:
    """Return the number. Raises CelError if it does not fit into a uint64."""
    if not 0 <= number <= UINT_MAX:
        raise CelError("unsigned integer overflow")
    return UInt(number)


def text(value: object) -> str:
    """Return the value as error messages show it."""
    if value is True:
        return "true"
    if value is False:
        return "false"
    if value is None:
        return "null"
    if isinstance(value, float):
        return go_float(value)
    return str(value).encode(errors="surrogateescape").decode(errors="replace")
