"""`string.format`: replace clauses such as %s and %.2f by values.

Upstream: google/cel-go ext/formatting.go (version 2 of the library of strings), whose numbers
          golang.org/x/text writes as in American English
Differs:  %e always has six decimals; a precision has at most three digits; messages about clauses
          are ours.
"""

import math
import re
from collections.abc import Callable
from types import UnionType
from typing import Any

from kubesched.api.go_text import go_float, go_quote
from kubesched.cel.declarations import Library
from kubesched.cel.operators import bytes_to_string, check_length
from kubesched.cel.values import CelError, CelType, from_map_key, text, type_name

_CLAUSE = re.compile(r"%(?:\.(?P<decimals>[0-9]{1,3}))?(?P<letter>.?)", re.DOTALL)
_DECIMALS_DEFAULT = "6"
_SPECIAL = ("NaN", "Infinity", "-Infinity")
_SUPERSCRIPTS = str.maketrans(
    "0123456789-", "\u2070\u00b9\u00b2\u00b3\u2074\u2075\u2076\u2077\u2078\u2079\u207b"
)


class _UnfitError(Exception):
    """The clause does not accept values of this type."""

    def __init__(self, value: object) -> None:
        super().__init__(type_name(value))


# Values as text.


def _text(value: object) -> str:
    """Return the text of a value for %s. Raises _UnfitError."""
    if isinstance(value, tuple):
        return f"[{', '.join(map(_element, value))}]"
    if isinstance(value, dict):
        pairs = sorted((_element(from_map_key(key)), _element(one)) for key, one in value.items())
        return "{" + ", ".join(f"{key}:{one}" for key, one in pairs) + "}"
    for kinds, convert in _TEXTS:
        if isinstance(value, kinds):
            return convert(value)
    raise _UnfitError(value)


_TEXTS: tuple[tuple[type | UnionType, Callable[[Any], str]], ...] = (
    (bytes, bytes_to_string),
    (CelType, lambda kind: kind.name),
    (bool | int | float | str | None, text),
)


def _element(value: object) -> str:
    """Return an element of a list or map as a CEL literal. Raises _UnfitError."""
    if isinstance(value, float):
        return f"{value:.6f}" if math.isfinite(value) else go_quote(go_float(value))
    if isinstance(value, str | bytes):
        return f"{'b' if isinstance(value, bytes) else ''}{go_quote(_text(value))}"
    return _text(value)


# Numbers.


def _double(write: Callable[[float, str], str]) -> Callable[[object, str], str]:
    """Return the clause of doubles that are finite, or not."""

    def show(value: object, decimals: str) -> str:
        if value in _SPECIAL:
            value = float(str(value))
        if not isinstance(value, float):
            raise _UnfitError(value)
        if not math.isfinite(value):
            return "NaN" if math.isnan(value) else "\u221e" if value > 0 else "-\u221e"
        # A zero has no sign.
        return write(value or 0.0, decimals)

    return show


def _scientific(value: float, _decimals: str) -> str:
    mantissa, _, exponent = f"{value:.6e}".partition("e")
    return f"{mantissa}\u00d710{exponent.removeprefix('+').translate(_SUPERSCRIPTS)}"


def _integer(form: str) -> Callable[[object, str], str]:
    def show(value: object, _decimals: str) -> str:
        if not isinstance(value, int) or (isinstance(value, bool) and form != "b"):
            raise _UnfitError(value)
        return format(int(value), form)

    return show


def _hex(form: str) -> Callable[[object, str], str]:
    def show(value: object, decimals: str) -> str:
        if isinstance(value, str):
            value = value.encode(errors="surrogateescape")
        if isinstance(value, bytes):
            return value.hex() if form == "x" else value.hex().upper()
        return _integer(form)(value, decimals)

    return show


_CLAUSES: dict[str, Callable[[object, str], str]] = {
    "s": lambda value, _: _text(value),
    "d": _integer("d"),
    "f": _double(lambda value, decimals: f"{value:,.{decimals}f}"),
    "e": _double(_scientific),
    "b": _integer("b"),
    "o": _integer("o"),
    "x": _hex("x"),
    "X": _hex("X"),
}


def format_string(template: str, args: tuple[object, ...]) -> str:
    """Fill in the clauses of the template. Raises CelError."""
    values = enumerate(args)

    def fill(clause: re.Match[str]) -> str:
        if clause[0] == "%%":
            return "%"
        show = _CLAUSES.get(clause["letter"])
        if show is None:
            raise CelError(f"could not parse formatting clause: {clause[0]!r} is none")
        at, value = next(values, (len(args), None))
        if at == len(args):
            raise CelError(f"index {at} out of range")
        try:
            return show(value, clause["decimals"] or _DECIMALS_DEFAULT)
        except _UnfitError as error:
            problem = f"error during formatting: {clause[0]} does not accept {error}"
            raise CelError(problem) from error

    check_length(len(template))
    filled = _CLAUSE.sub(fill, template)
    check_length(len(filled))
    return filled


LIBRARY: Library = {"@format(string, list(dyn)): string": format_string}
