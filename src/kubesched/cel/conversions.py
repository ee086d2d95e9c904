"""Conversions between types.

Upstream: google/cel-go common/stdlib/standard.go, common/types (ConvertToType)
Differs:  nothing.
"""

import math
import re

from kubesched.api.go_text import go_float
from kubesched.cel.declarations import Library
from kubesched.cel.values import (
    INT_MAX,
    INT_MIN,
    UINT_MAX,
    CelError,
    CelType,
    UInt,
    checked_int,
    checked_uint,
    type_name,
)

_DIGITS = "[0-9]{1,1000}"
_SPECIAL_DOUBLE = re.compile("nan|[+-]?inf(?:inity)?", re.IGNORECASE | re.ASCII)
_HEX_DOUBLE = re.compile(r"[+-]?0[xX][0-9a-fA-F]*\.?[0-9a-fA-F]*[pP][+-]?[0-9]+")
_DOUBLE = re.compile(r"[+-]?[0-9._]+(?:[eE][+-]?[0-9_]+)?")
_TRUE = {"1", "t", "T", "TRUE", "true", "True"}
_FALSE = {"0", "f", "F", "FALSE", "false", "False"}


def _failed(source: str, target: str) -> CelError:
    return CelError(f"type conversion error from '{source}' to '{target}'")


def _identity(value: object) -> object:
    return value


def _string_to_bool(string: str) -> bool:
    if string in _TRUE or string in _FALSE:
        return string in _TRUE
    raise _failed("string", "bool")


def _string_to_int(string: str) -> int:
    if re.fullmatch("[+-]?" + _DIGITS, string) and INT_MIN <= int(string) <= INT_MAX:
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
    if math.isnan(value) or math.isinf(value) or not INT_MIN < value < INT_MAX:
        raise CelError("integer overflow")
    return int(value)


def _double_to_uint(value: float) -> UInt:
    if math.isnan(value) or math.isinf(value) or not 0 <= value < UINT_MAX:
        raise CelError("unsigned integer overflow")
    return UInt(value)


def bytes_to_string(value: bytes) -> str:
    """Decode UTF-8. Raises CelError."""
    try:
        return value.decode()
    except UnicodeDecodeError as error:
        raise CelError("invalid UTF-8 in bytes, cannot convert to string") from error


LIBRARY: Library = {
    "type(A): type": lambda value: CelType(type_name(value)),
    "dyn(A): dyn": _identity,
    "bool(bool): bool": _identity,
    "bool(string): bool": _string_to_bool,
    "bytes(bytes): bytes": _identity,
    "bytes(string): bytes": lambda string: string.encode(errors="surrogateescape"),
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
    "string(bytes): string": bytes_to_string,
    "string(double): string": go_float,
    "string(int): string": str,
    "string(uint): string": str,
    "uint(uint): uint": _identity,
    "uint(double): uint": _double_to_uint,
    "uint(int): uint": checked_uint,
    "uint(string): uint": _string_to_uint,
}
