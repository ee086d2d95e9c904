"""`string.format`: replace clauses such as %s and %.2f by values.

Upstream: google/cel-go ext/formatting.go (version 2 of the library of strings), whose numbers
          golang.org/x/text writes as in American English
Differs:  clauses are parsed when they are filled in, not before; a whole double that is a key of
          a map is shown as an integer.
"""

import math
import re
from collections.abc import Callable

from kubesched.api.go_text import go_float, go_quote
from kubesched.cel.conversions import bytes_to_string
from kubesched.cel.declarations import Library
from kubesched.cel.operators import check_length
from kubesched.cel.times import duration_text, timestamp_text
from kubesched.cel.values import (
    INT_MAX,
    CelError,
    CelType,
    Duration,
    Timestamp,
    from_map_key,
    type_name,
)

Clause = Callable[[object], str]

_DECIMALS_DEFAULT = 6
# No double has more decimals.
_DECIMALS_MAX = 1100
_SUPERSCRIPTS = str.maketrans(
    "0123456789-",
    "\u2070\u00b9\u00b2\u00b3\u2074\u2075\u2076\u2077\u2078\u2079\u207b",
)
_SPECIAL_DOUBLES = {"NaN": math.nan, "Infinity": math.inf, "-Infinity": -math.inf}
_DIGITS = re.compile("[0-9]*")


class _FormatError(Exception):
    """The clause does not accept the value."""


# Values as text.


def _integer(value: object) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def _string(value: object) -> str:
    """Format for %s. Raises _FormatError."""
    if isinstance(value, tuple):
        return _list(value)
    if isinstance(value, dict):
        return _map(value)
    scalar = _scalar(value)
    if scalar is None:
        raise _FormatError(
            "string clause can only be used on strings, bools, bytes, ints, doubles, maps, lists,"
            f" types, durations, and timestamps, was given {type_name(value)}"
        )
    return scalar


def _scalar(value: object) -> str | None:
    """Return the text of a scalar, None for a value that has none."""
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    if isinstance(value, bytes):
        return _bytes(value)
    for kind, convert in _TEXTS:
        if isinstance(value, kind):
            return convert(value)
    return None


_TEXTS: tuple[tuple[type, Callable[..., str]], ...] = (
    (str, str),
    (int, str),
    (float, go_float),
    (Timestamp, timestamp_text),
    (Duration, duration_text),
    (CelType, lambda kind: kind.name),
)


def _bytes(value: bytes) -> str:
    try:
        return bytes_to_string(value)
    except CelError as error:
        raise _FormatError(
            f"could not convert argument {go_quote(str(error))} to string"
        ) from error


def _element(value: object) -> str:
    """Format an element of a list or map as a CEL literal. Raises _FormatError."""
    if isinstance(value, tuple | dict):
        return _string(value)
    if isinstance(value, float):
        return f"{value:.6f}" if math.isfinite(value) else go_quote(go_float(value))
    scalar = _scalar(value)
    if scalar is None:
        raise _FormatError(f"no formatting function for {type_name(value)}")
    if isinstance(value, str | bytes):
        return f"{'b' if isinstance(value, bytes) else ''}{go_quote(scalar)}"
    if isinstance(value, Timestamp | Duration):
        return f"{'timestamp' if isinstance(value, Timestamp) else 'duration'}({go_quote(scalar)})"
    return scalar


def _list(values: tuple[object, ...]) -> str:
    return f"[{', '.join(map(_element, values))}]"


def _map(entries: dict[object, object]) -> str:
    pairs = [(_key(from_map_key(key)), _element(value)) for key, value in entries.items()]
    pairs.sort(key=lambda pair: pair[0].encode(errors="surrogateescape"))
    return "{" + ", ".join(f"{key}:{value}" for key, value in pairs) + "}"


def _key(key: object) -> str:
    if isinstance(key, float):
        raise _FormatError("no formatting function for map key of type double")
    return _element(key)


# Numbers.


def _decimal(value: object) -> str:
    number = _integer(value)
    if number is None:
        raise _FormatError(
            f"decimal clause can only be used on integers, was given {type_name(value)}"
        )
    return str(number)


def _double(value: object, clause: str) -> float:
    if isinstance(value, str) and value in _SPECIAL_DOUBLES:
        return _SPECIAL_DOUBLES[value]
    if isinstance(value, float):
        # A zero has no sign.
        return value or 0.0
    raise _FormatError(f"{clause} clause can only be used on doubles, was given {type_name(value)}")


def _not_finite(value: float) -> str:
    return "NaN" if math.isnan(value) else "\u221e" if value > 0 else "-\u221e"


def _fixed(precision: int | None) -> Clause:
    """Return the formatter of %f; like upstream, it keeps only the low bits of the precision."""
    wanted = _DECIMALS_DEFAULT if precision is None else precision
    decimals_min, decimals_max = wanted & 0xFF, wanted & 0xFFFF
    decimals_max = min(decimals_max, _DECIMALS_MAX)

    def fixed(value: object) -> str:
        number = _double(value, "fixed-point")
        if not math.isfinite(number):
            return _not_finite(number)
        whole, point, decimals = f"{number:,.{decimals_max}f}".partition(".")
        kept = decimals[:decimals_min] + decimals[decimals_min:].rstrip("0")
        return whole + point + kept if kept else whole

    return fixed


def _scientific(precision: int | None) -> Clause:
    """Return the formatter of %e; like upstream, it uses the precision as width."""
    width = (_DECIMALS_DEFAULT if precision is None else precision) & 0xFFFF

    def scientific(value: object) -> str:
        number = _double(value, "scientific")
        if not math.isfinite(number):
            return _not_finite(number).rjust(width)
        mantissa, _, exponent = f"{number:.{_DECIMALS_DEFAULT}e}".partition("e")
        power = exponent.removeprefix("+").translate(_SUPERSCRIPTS)
        return f"{mantissa}\u00d710{power}".rjust(width)

    return scientific


def _binary(value: object) -> str:
    if not isinstance(value, int):
        raise _FormatError(
            f"only integers and bools can be formatted as binary, was given {type_name(value)}"
        )
    return f"{int(value):b}"


def _octal(value: object) -> str:
    number = _integer(value)
    if number is None:
        raise _FormatError(
            f"octal clause can only be used on integers, was given {type_name(value)}"
        )
    return f"{number:o}"


def _hex(value: object) -> str:
    if isinstance(value, str):
        return value.encode(errors="surrogateescape").hex()
    if isinstance(value, bytes):
        return value.hex()
    number = _integer(value)
    if number is None:
        raise _FormatError(
            "only integers, byte buffers, and strings can be formatted as hex, was given"
            f" {type_name(value)}"
        )
    return f"{number:x}"


# Clauses.

_CLAUSES: dict[str, Callable[[int | None], Clause]] = {
    "s": lambda _: _string,
    "d": lambda _: _decimal,
    "f": _fixed,
    "e": _scientific,
    "b": lambda _: _binary,
    "o": lambda _: _octal,
    "x": lambda _: _hex,
    "X": lambda _: lambda value: _hex(value).upper(),
}


def _precision(clause: str) -> tuple[int | None, str]:
    """Split the precision from a clause. Raises CelError."""
    if not clause.startswith("."):
        return None, clause
    match = _DIGITS.match(clause, 1)
    digits = match.group() if match else ""
    rest = clause[1 + len(digits) :]
    failed = "could not parse formatting clause: error while parsing precision"
    if not rest:
        raise CelError(f"{failed}: could not find end of precision specifier")
    if not digits or len(digits) > 1000 or int(digits) > INT_MAX:
        problem = "value out of range" if digits else "invalid syntax"
        raise CelError(
            f"{failed}: error while converting precision to integer:"
            f" strconv.Atoi: parsing {go_quote(digits)}: {problem}"
        )
    return int(digits), rest


def _fill(clause: str, value: object) -> tuple[str, str]:
    """Return the formatted value and the rest of the template. Raises CelError."""
    precision, rest = _precision(clause)
    if rest[0] not in _CLAUSES:
        # Upstream shows only the first byte.
        shown = chr(rest[0].encode(errors="surrogateescape")[0])
        raise CelError(
            f'could not parse formatting clause: unrecognized formatting clause "{shown}"'
        )
    try:
        return _CLAUSES[rest[0]](precision)(value), rest[1:]
    except _FormatError as error:
        raise CelError(f"error during formatting: {error}") from error


def format_string(template: str, args: tuple[object, ...]) -> str:
    """Fill in the clauses of the template. Raises CelError."""
    parts: list[str] = []
    rest, used, length = template, 0, 0
    while rest:
        before, percent, rest = rest.partition("%")
        parts.append(before)
        if percent and rest.startswith("%"):
            parts.append("%")
            rest = rest[1:]
        elif percent:
            if used >= len(args):
                raise CelError(f"index {used} out of range")
            if not rest:
                raise CelError("unexpected end of string")
            filled, rest = _fill(rest, args[used])
            used += 1
            length += len(filled)
            check_length(length)
            parts.append(filled)
    return "".join(parts)


LIBRARY: Library = {"@format(string, list(dyn)): string": format_string}
