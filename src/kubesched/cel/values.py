"""The values of expressions, their types, equality and order.

bool, int, float, str, bytes, None, tuple (list) and dict (map) are Python's own; the rest is here.

Upstream: google/cel-go common/types; staging/src/k8s.io/apiserver/pkg/cel/{quantity,semver}.go
Invariants: an int is within 64 bits; a dict's keys are as `map_key` makes them.
Differs:  nothing.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from typing import ClassVar

INT_MIN, INT_MAX = -(2**63), 2**63 - 1
UINT_MAX = 2**64 - 1
TIMESTAMP_MIN, TIMESTAMP_MAX = -62_135_596_800 * 10**9, 253_402_300_800 * 10**9 - 1


class CelError(Exception):
    """An error while evaluating; the text is upstream's."""


def no_such_overload(function: str = "", *args: object) -> CelError:
    """The error of calling a function with arguments it does not take."""
    if not function:
        return CelError("no such overload")
    types = ", ".join(type_name(arg) for arg in args)
    return CelError(f"no such overload: {function}({types})")


class UInt(int):
    """An unsigned 64-bit integer."""

    __slots__ = ()


@dataclass(frozen=True, slots=True, order=True)
class CelQuantity:
    """A resource quantity, in units of 10^-9."""

    nano: int

    type_name: ClassVar[str] = "kubernetes.Quantity"
    is_opaque: ClassVar[bool] = True


@dataclass(frozen=True, slots=True)
class Duration:
    """A span of time."""

    nanoseconds: int


@dataclass(frozen=True, slots=True)
class Timestamp:
    """A point in time, in nanoseconds since the epoch.

    `offset_seconds` is the zone it was written in, which shows in its text and nowhere else.
    """

    nanoseconds: int
    offset_seconds: int = field(default=0, compare=False)


@dataclass(frozen=True, slots=True)
class Optional:
    """A value, or none."""

    value: object = None
    has_value: bool = False


NONE = Optional()


@dataclass(frozen=True, slots=True)
class CelType:
    """The type of a value, which is a value too."""

    name: str


class DefaultMap(dict[object, object]):
    """A map whose lookups find an empty map where there is no entry (`in` tells the truth)."""

    __slots__ = ()


@dataclass(frozen=True, slots=True)
class _BoolKey:
    """A boolean as a key, which Python would take for 0 or 1."""

    value: bool


_TRUE_KEY, _FALSE_KEY = _BoolKey(True), _BoolKey(False)


def map_key(value: object) -> object:
    """What stands for `value` among a dict's keys; equal for keys that are equal in CEL."""
    if value is True:
        return _TRUE_KEY
    if value is False:
        return _FALSE_KEY
    if isinstance(value, float) and value.is_integer():
        return int(value)
    return value


def from_map_key(key: object) -> object:
    """The value a dict's key stands for."""
    return key.value if isinstance(key, _BoolKey) else key


_TYPE_NAMES: dict[type, str] = {
    bool: "bool",
    int: "int",
    UInt: "uint",
    float: "double",
    str: "string",
    bytes: "bytes",
    type(None): "null_type",
    tuple: "list",
    dict: "map",
    DefaultMap: "map",
    Duration: "google.protobuf.Duration",
    Timestamp: "google.protobuf.Timestamp",
    Optional: "optional_type",
    CelType: "type",
}


def type_name(value: object) -> str:
    """The name of the value's type."""
    name = _TYPE_NAMES.get(type(value))
    return getattr(value, "type_name", "dyn") if name is None else name


def equal(left: object, right: object) -> bool:
    """`left == right`. Raises CelError for quantities and versions compared to other types."""
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
    if type(left) is not type(right) and getattr(left, "is_opaque", False):
        raise no_such_overload()
    return type(left) is type(right) and left == right


def quietly_equal(left: object, right: object) -> bool:
    """`left == right` where an error counts as different."""
    try:
        return equal(left, right)
    except CelError:
        return False


def _elements_differ(left: object, right: object) -> bool:
    """Whether elements make their aggregates differ: an error does not, as upstream has it."""
    try:
        return not equal(left, right)
    except CelError:
        return False


def _lists_equal(left: tuple[object, ...], right: tuple[object, ...]) -> bool:
    if len(left) != len(right):
        return False
    return not any(map(_elements_differ, left, right))


def _maps_equal(left: Mapping[object, object], right: Mapping[object, object]) -> bool:
    if len(left) != len(right):
        return False
    return all(key in right and not _elements_differ(left[key], right[key]) for key in left)


def _optionals_equal(left: Optional, right: Optional) -> bool:
    if not left.has_value or not right.has_value:
        return left.has_value == right.has_value
    return equal(left.value, right.value)


def compare(left: object, right: object) -> int:
    """-1, 0 or 1. Raises CelError if the two cannot be ordered."""
    if isinstance(left, bool) or isinstance(right, bool):
        if isinstance(left, bool) and isinstance(right, bool):
            return int(left) - int(right)
        raise no_such_overload()
    if isinstance(left, int | float) and isinstance(right, int | float):
        if math.isnan(left) or math.isnan(right):
            raise CelError("NaN values cannot be ordered")
        return (left > right) - (left < right)
    for kind in (str, bytes):
        if isinstance(left, kind) and isinstance(right, kind):
            return _order(left, right)
    for timed in (Duration, Timestamp):
        if isinstance(left, timed) and isinstance(right, timed):
            return _order(left.nanoseconds, right.nanoseconds)
    raise no_such_overload()


def _order(left: str | bytes | int, right: str | bytes | int) -> int:
    return (left > right) - (left < right)  # type: ignore[operator]  # both are of one kind


def is_comparable(value: object) -> bool:
    """Whether the value has an order at all."""
    return isinstance(value, bool | int | float | str | bytes | Duration | Timestamp)


def is_zero(value: object) -> bool:
    """Whether `optional.ofNonZeroValue(value)` is none."""
    if isinstance(value, Duration):
        return value.nanoseconds == 0
    if isinstance(value, Timestamp):
        return value.nanoseconds == TIMESTAMP_MIN
    if isinstance(value, Optional):
        return not value.has_value or is_zero(value.value)
    return value is None or (
        isinstance(value, bool | int | float | str | bytes | tuple | dict) and not value
    )


def checked_int(number: int) -> int:
    """The number, if it is within 64 bits. Raises CelError otherwise."""
    if not INT_MIN <= number <= INT_MAX:
        raise CelError("integer overflow")
    return number


def checked_uint(number: int) -> UInt:
    """The number, if it is within unsigned 64 bits. Raises CelError otherwise."""
    if not 0 <= number <= UINT_MAX:
        raise CelError("unsigned integer overflow")
    return UInt(number)


def checked_timestamp(nanoseconds: int, offset_seconds: int = 0) -> Timestamp:
    """The timestamp, if it is within the years 1 to 9999. Raises CelError otherwise."""
    if not TIMESTAMP_MIN <= nanoseconds <= TIMESTAMP_MAX:
        raise CelError("timestamp overflow")
    return Timestamp(nanoseconds, offset_seconds)


_ESCAPES = {
    "\a": "\\a", "\b": "\\b", "\f": "\\f", "\n": "\\n", "\r": "\\r", "\t": "\\t", "\v": "\\v",
    "\\": "\\\\", '"': '\\"',
}  # fmt: skip


def quoted(string: str) -> str:
    """The string as Go quotes it (`%q`)."""
    return '"' + "".join(map(_escaped, string)) + '"'


def _escaped(char: str) -> str:
    code = ord(char)
    if char in _ESCAPES or char.isprintable():
        return _ESCAPES.get(char, char)
    if 0xDC80 <= code <= 0xDCFF:
        # A byte that is no UTF-8.
        return f"\\x{code - 0xDC00:02x}"
    if code < 0x20 or code == 0x7F:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code <= 0xFFFF else f"\\U{code:08x}"


def text(value: object) -> str:
    """The value as it appears in error messages."""
    if value is True:
        return "true"
    if value is False:
        return "false"
    if value is None:
        return "null"
    if isinstance(value, float):
        return format_double(value)
    return str(value).encode(errors="surrogateescape").decode(errors="replace")


# From here on Go writes a double with an exponent.
_EXPONENT_MAX = 6


def format_double(value: float) -> str:
    """The shortest text of a double, as Go's %g."""
    if math.isinf(value):
        return "+Inf" if value > 0 else "-Inf"
    if math.isnan(value):
        return "NaN"
    sign, digits, scale = Decimal(repr(value)).normalize().as_tuple()
    assert isinstance(scale, int)
    exponent = len(digits) - 1 + scale
    if -4 <= exponent < _EXPONENT_MAX:
        return f"{Decimal(repr(value)).normalize():f}"
    first, rest = str(digits[0]), "".join(map(str, digits[1:]))
    mantissa = f"{'-' if sign else ''}{first}{'.' if rest else ''}{rest}"
    return f"{mantissa}e{'-' if exponent < 0 else '+'}{abs(exponent):02}"
