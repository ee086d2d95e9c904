"""Values of JSON as Go's `%v` prints them, for messages that repeat a patch.

Upstream: fmt.Sprintf, reflect.Kind.String (Go)
Differs:  nothing.
"""

from __future__ import annotations

from decimal import Decimal
from typing import Any

__all__ = ["go_kind", "go_text"]


def go_text(value: Any) -> str:
    """Return what `%v` prints."""
    if value is None:
        return "<nil>"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, dict):
        parts = (f"{name}:{go_text(value[name])}" for name in sorted(value))
        return f"map[{' '.join(parts)}]"
    if isinstance(value, list):
        return f"[{' '.join(map(go_text, value))}]"
    return _float_text(value) if isinstance(value, float) else str(value)


def _float_text(value: float) -> str:
    sign, digits, exponent = Decimal(repr(value)).normalize().as_tuple()
    assert isinstance(exponent, int), "JSON has neither infinities nor NaN"
    magnitude = len(digits) + exponent - 1
    if -4 <= magnitude < 6:
        return f"{Decimal(repr(value)).normalize():f}"
    mantissa = "".join(map(str, digits))
    tail = f".{mantissa[1:]}" if len(mantissa) > 1 else ""
    return f"{'-' * sign}{mantissa[0]}{tail}e{magnitude:+03d}"


def go_kind(value: Any) -> str:
    """Return the word for what a decoded JSON value is in Go."""
    if isinstance(value, dict):
        return "map"
    if isinstance(value, list):
        return "slice"
    if isinstance(value, bool):
        return "bool"
    if isinstance(value, int):
        return "int64"
    return "float64" if isinstance(value, float) else "string"
