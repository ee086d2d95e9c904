"""Strings, floats and durations as Go writes them; bools and durations as Go reads them.

Upstream: Go's strconv.{Quote,QuoteRune,ParseBool}, strconv.FormatFloat(f, 'g', -1, 64),
          time.Duration.String and time.ParseDuration
Differs:  errors show what is not a duration as strconv.Quote does, where Go escapes every byte
          outside ASCII.
"""

from __future__ import annotations

import math
import re
from decimal import Decimal
from typing import Final

from kubesched.api.integers import is_int64

GO_ESCAPES: Final = {
    "\a": r"\a",
    "\b": r"\b",
    "\f": r"\f",
    "\n": r"\n",
    "\r": r"\r",
    "\t": r"\t",
    "\v": r"\v",
    '"': r"\"",
    "\\": r"\\",
}

GO_JSON_ESCAPES: Final = {ord(one): f"\\u{ord(one):04x}" for one in "&<>\u2028\u2029"}
"""What Go's JSON encoder escapes in addition, as a table for `str.translate`."""

GO_BOOLEANS: Final = {
    **dict.fromkeys(("1", "t", "T", "TRUE", "true", "True"), True),
    **dict.fromkeys(("0", "f", "F", "FALSE", "false", "False"), False),
}
"""The texts that Go reads as a bool."""

_NANOSECONDS: Final = 10**9
_UNITS: Final = {
    "ns": 1,
    "us": 10**3,
    "µs": 10**3,
    "μs": 10**3,
    "ms": 10**6,
    "s": _NANOSECONDS,
    "m": 60 * _NANOSECONDS,
    "h": 3600 * _NANOSECONDS,
}
_PART: Final = re.compile(r"([0-9]*)(?:\.([0-9]*))?([^0-9.]*)")
_DIGITS_MAX: Final = 19
"""The largest int64 has 19 digits."""


def go_quote(text: str) -> str:
    """Return the text in double quotes; characters that Go does not print are escaped."""
    return '"' + "".join(map(_quoted_character, text)) + '"'


def go_quote_character(character: str) -> str:
    """Return the character in single quotes; one that Go does not print is escaped."""
    shown = {"'": r"\'", '"': '"'}.get(character) or _quoted_character(character)
    return f"'{shown}'"


def _quoted_character(character: str) -> str:
    if character in GO_ESCAPES:
        return GO_ESCAPES[character]
    if character.isprintable():
        return character
    code = ord(character)
    if 0xDC80 <= code <= 0xDCFF:
        # Python represents a byte that is not UTF-8 by this code.
        return f"\\x{code - 0xDC00:02x}"
    if code < 0x80:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code <= 0xFFFF else f"\\U{code:08x}"


def go_float(value: float) -> str:
    """Return the shortest text that reads as the same number, with an exponent as in Go's `%g`."""
    if math.isinf(value):
        return "+Inf" if value > 0 else "-Inf"
    if math.isnan(value):
        return "NaN"
    number = Decimal(repr(value)).normalize()
    sign, digits, scale = number.as_tuple()
    assert isinstance(scale, int)
    exponent = len(digits) - 1 + scale
    if -4 <= exponent < 6:
        return f"{number:f}"
    fraction = "".join(map(str, digits[1:]))
    return f"{'-' * sign}{digits[0]}{'.' * bool(fraction)}{fraction}e{exponent:+03}"


def go_duration(seconds: float) -> str:
    """Return the text of a duration, rounded to nanoseconds: `1h0m5s`, `1.5s`, `500ms`."""
    nanoseconds = round(seconds * _NANOSECONDS)
    if nanoseconds < 0:
        return f"-{go_duration(-seconds)}"
    if nanoseconds == 0:
        return "0s"
    if nanoseconds < _NANOSECONDS:
        unit = next(unit for unit in ("ms", "µs", "ns") if nanoseconds >= _UNITS[unit])
        return _decimal(nanoseconds, _UNITS[unit]) + unit
    minutes, rest = divmod(nanoseconds, _UNITS["m"])
    hours, minutes = divmod(minutes, 60)
    text = f"{hours}h{minutes}m" if hours else f"{minutes}m" if minutes else ""
    return f"{text}{_decimal(rest, _NANOSECONDS)}s"


def _decimal(amount: int, unit: int) -> str:
    whole, rest = divmod(amount, unit)
    if not rest:
        return str(whole)
    digits = str(rest).zfill(len(str(unit)) - 1).rstrip("0")
    return f"{whole}.{digits}"


def parse_go_duration(text: str) -> int:
    """Return the nanoseconds of a duration such as `1m30s`; raises ValueError with Go's message."""
    unsigned = text[1:] if text[:1] in {"+", "-"} else text
    if unsigned == "0":
        return 0
    if not unsigned:
        raise _invalid(text)
    magnitude = _parse_parts(text, unsigned)
    nanoseconds = -magnitude if text[0] == "-" else magnitude
    if not is_int64(nanoseconds):
        raise _invalid(text)
    return nanoseconds


def _parse_parts(text: str, unsigned: str) -> int:
    total = 0
    while unsigned:
        match = _PART.match(unsigned)
        assert match is not None, "every group may be empty"
        whole, fraction, unit = match[1], match[2] or "", match[3]
        if not whole and not fraction:
            raise _invalid(text)
        if not unit:
            raise ValueError(f"time: missing unit in duration {go_quote(text)}")
        if unit not in _UNITS:
            raise ValueError(f"time: unknown unit {go_quote(unit)} in duration {go_quote(text)}")
        if len(whole.lstrip("0")) > _DIGITS_MAX:
            raise _invalid(text)
        total += int(whole[-_DIGITS_MAX:] or 0) * _UNITS[unit]
        # Go ignores digits beyond those of an int64, and truncates to nanoseconds.
        kept = fraction[: _DIGITS_MAX - 1]
        total += int(kept or 0) * _UNITS[unit] // 10 ** len(kept)
        unsigned = unsigned[match.end() :]
    return total


def _invalid(text: str) -> ValueError:
    return ValueError(f"time: invalid duration {go_quote(text)}")
