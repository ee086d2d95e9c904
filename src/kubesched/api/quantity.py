"""Quantities: exact decimal numbers with the suffixes of Kubernetes.

An `Amount` is the number `unscaled * 10**exponent`. As upstream, it either fits the fast 64-bit
form or not (`is_big`); the two forms overflow differently.

Upstream: staging/src/k8s.io/apimachinery/pkg/api/resource/quantity.go (v1.36)
Differs:  exponents beyond 1000 and texts of more than 1000 characters are rejected, because
          computing with them takes minutes.
"""

import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Final, NamedTuple

from kubesched.api.integers import INT64_MAX, INT64_MIN, Int64, is_int64, wrap
from kubesched.api.names import CPU

Quantity = str | Int64 | float

DECIMAL_SI: Final = "DecimalSI"
DECIMAL_EXPONENT: Final = "DecimalExponent"
BINARY_SI: Final = "BinarySI"

_NANO: Final = -9
NANO: Final = 10**9
"""Nano-units in one unit, see `nano_value`."""
_EXPONENT_MAX: Final = 1000
_TEXT_LENGTH_MAX: Final = 1000
_BITS_MAX: Final = 3000
_FAST_DIGITS_MAX: Final = 18
_STEPS_AT_ONCE: Final = frozenset({0, 1, 2, 3, 6, 9})
"""Powers of ten by which upstream multiplies without checking for overflow."""

_FORM: Final = re.compile(
    r"(?P<sign>[+-]?)0*(?P<whole>[0-9]*)(?:\.(?P<fraction>[0-9]*))?"
    r"(?P<suffix>[eEinumkKMGTP]*[-+]?[0-9]*)"
)
_EXPONENT: Final = re.compile(r"[eE]([+-]?[0-9]+)")
FORM_ERROR: Final = (
    "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"
)
_SUFFIX_ERROR: Final = "unable to parse quantity's suffix"

_DECIMAL_SUFFIXES: Final = {
    "n": -9,
    "u": -6,
    "m": -3,
    "": 0,
    "k": 3,
    "M": 6,
    "G": 9,
    "T": 12,
    "P": 15,
    "E": 18,
}
_BINARY_SUFFIXES: Final = {"Ki": 10, "Mi": 20, "Gi": 30, "Ti": 40, "Pi": 50, "Ei": 60}
_DECIMAL_NAMES: Final = {exponent: name for name, exponent in _DECIMAL_SUFFIXES.items()}
_BINARY_NAMES: Final = {exponent: name for name, exponent in _BINARY_SUFFIXES.items()}


class QuantityError(ValueError):
    """A text is not a quantity; the message contains it."""


class Amount(NamedTuple):
    """An exact number; use `compare`, not `==`, because 1 and 1000m are different amounts.

    Attributes:
        unscaled, exponent: The number is `unscaled * 10**exponent`.
        is_big: Whether it does not fit the fast 64-bit form.
        format: How `str` writes it.
        text: The text from which it was parsed, if `str` returns that unchanged; else "".
    """

    unscaled: int = 0
    exponent: int = 0
    is_big: bool = False
    format: str = DECIMAL_SI
    text: str = ""

    @property
    def sign(self) -> int:
        """-1, 0 or 1."""
        return (self.unscaled > 0) - (self.unscaled < 0)

    def value(self) -> int:
        """Whole units, rounded away from zero, as an int64."""
        return self.scaled_value(0)

    def milli_value(self) -> int:
        """Thousandths, rounded away from zero, as an int64."""
        return self.scaled_value(-3)

    def scaled_value(self, exponent: int) -> int:
        """Units of `10**exponent`, rounded away from zero, as an int64.

        On overflow, the result is upstream's: the low 64 bits, or in the fast form 0 for some
        powers of ten.
        """
        if self.is_big:
            return _scaled_big(self.unscaled, exponent - self.exponent)
        if self.exponent == exponent:
            return self.unscaled
        if self.exponent < exponent:
            return _divided_away_from_zero(self.unscaled, exponent - self.exponent)
        return _scaled_fast(self.unscaled, self.exponent - exponent)

    def add(self, other: "Amount") -> "Amount":
        """Return the exact sum; zero takes the other's format."""
        form = self.format if self.unscaled else other.format
        if not (self.is_big or other.is_big):
            if not other.unscaled:
                return Amount(self.unscaled, self.exponent, format=form)
            if not self.unscaled:
                return Amount(other.unscaled, other.exponent, format=form)
        exponent = min(self.exponent, other.exponent)
        left, right = _unscaled_at(self, exponent), _unscaled_at(other, exponent)
        is_big = self.is_big or other.is_big or not _fit(left, right, left + right)
        return Amount(left + right, exponent, is_big, form)

    def compare(self, other: "Amount") -> int:
        """Return -1, 0 or 1 for less, equal, more."""
        exponent = min(self.exponent, other.exponent)
        left, right = _unscaled_at(self, exponent), _unscaled_at(other, exponent)
        return (left > right) - (left < right)

    def __str__(self) -> str:
        return self.text or _canonical(self)


ZERO: Final = Amount()


def _power_of_ten(exponent: int) -> int:
    return int(10**exponent)


def _unscaled_at(amount: Amount, exponent: int) -> int:
    return amount.unscaled * _power_of_ten(amount.exponent - exponent)


@lru_cache(maxsize=65_536)
def _parse_text(text: str) -> Amount:
    match = _FORM.fullmatch(text) if len(text) <= _TEXT_LENGTH_MAX else None
    if match is None or not text:
        raise QuantityError(f"{text[:_TEXT_LENGTH_MAX]!r}: {FORM_ERROR}")
    sign, whole, fraction, suffix = match.group("sign", "whole", "fraction", "suffix")
    form, exponent = _interpret(text, suffix)
    # A number without digits is 0, with any sign and suffix.
    whole, fraction = whole or "0", fraction or ""
    digits = whole + fraction
    number, factor = int(digits), -1 if sign == "-" else 1
    if form == BINARY_SI:
        # Upstream estimates three decimal digits per factor of 1024, plus one.
        if not fraction and len(digits) + exponent * 3 // 10 + 1 <= 15:
            kept = text if number & 7 else ""
            return Amount(factor * number << exponent, 0, format=form, text=kept)
        return _big(factor, number << exponent, -len(fraction), form)
    scale = exponent - len(fraction)
    if len(digits) > _FAST_DIGITS_MAX or scale < _NANO:
        return _big(factor, number, scale, form)
    is_canonical = scale % 3 == 0 and not digits.endswith("000") and digits[0] != "0"
    kept = text if is_canonical or text == "0" else ""
    return Amount(factor * number, scale, format=form, text=kept)


def _interpret(text: str, suffix: str) -> tuple[str, int]:
    if suffix in _DECIMAL_SUFFIXES:
        return DECIMAL_SI, _DECIMAL_SUFFIXES[suffix]
    if suffix in _BINARY_SUFFIXES:
        return BINARY_SI, _BINARY_SUFFIXES[suffix]
    match = _EXPONENT.fullmatch(suffix)
    # Exponents beyond an int64 are an error upstream, too, and slow to parse in Python.
    if match is None or len(match[1]) > _FAST_DIGITS_MAX:
        raise QuantityError(f"{text!r}: {_SUFFIX_ERROR}")
    exponent = int(match[1])
    if abs(exponent) > _EXPONENT_MAX:
        raise QuantityError(f"{text!r}: exponents beyond {_EXPONENT_MAX} are not supported")
    return DECIMAL_EXPONENT, exponent


def _big(factor: int, unscaled: int, scale: int, form: str) -> Amount:
    """Return a number rounded up to nano-units, and limited to int64 with a binary suffix.

    `factor` is 1 or -1.
    """
    if unscaled:
        unscaled = _rounded_up_to_nano(unscaled, scale)
        scale = _NANO
    one = _power_of_ten(max(-scale, 0))
    if form == BINARY_SI and unscaled > INT64_MAX * one:
        unscaled, scale = INT64_MAX, 0
    if form == BINARY_SI and 0 < unscaled < one:
        form = DECIMAL_SI
    return Amount(factor * unscaled, scale, is_big=True, format=form)


def _rounded_up_to_nano(unscaled: int, scale: int) -> int:
    if scale >= _NANO:
        return unscaled * _power_of_ten(scale - _NANO)
    return -(-unscaled // _power_of_ten(_NANO - scale))


def _fit(*numbers: int) -> bool:
    return all(is_int64(number) for number in numbers)


def _scaled_fast(number: int, zeros: int) -> int:
    """Multiply a 64-bit number by `10**zeros`, overflowing as upstream does."""
    if zeros in _STEPS_AT_ONCE:
        is_lost = number == INT64_MIN and zeros
        return 0 if is_lost else wrap(number * _power_of_ten(zeros))
    # 10**19 does not fit an int64, so larger powers need not be computed.
    scaled = number * _power_of_ten(min(zeros, 19))
    return scaled if _fit(scaled) else 0


def _divided_away_from_zero(number: int, zeros: int) -> int:
    divisor = _power_of_ten(min(zeros, 19))
    return -(-number // divisor) if number > 0 else number // divisor


def _scaled_big(unscaled: int, zeros: int) -> int:
    """Divide a big number by `10**zeros` as upstream does: round up, then keep the low 64 bits."""
    if zeros <= 0:
        factor = _power_of_ten(-zeros) if zeros >= -18 else INT64_MIN
        return wrap(wrap(unscaled) * factor)
    if unscaled < INT64_MAX and zeros < 19:
        # Division truncates, and a remainder of either sign adds one.
        low = wrap(unscaled)
        quotient, rest = divmod(abs(low), _power_of_ten(zeros))
        return (-quotient if low < 0 else quotient) + bool(rest)
    return wrap(-(-unscaled // _power_of_ten(zeros)))


def _canonical(amount: Amount) -> str:
    if not amount.unscaled:
        return "0"
    if amount.format == BINARY_SI:
        whole, rest = divmod(
            amount.unscaled * _power_of_ten(max(amount.exponent, 0)),
            _power_of_ten(max(-amount.exponent, 0)),
        )
        if not rest and abs(whole) >= 1024:
            return _binary_text(whole)
    return _decimal_text(amount)


def _binary_text(whole: int) -> str:
    exponent = 0
    while whole % 1024 == 0:
        whole //= 1024
        exponent += 10
    # There is no suffix beyond Ei; upstream then writes no suffix.
    return f"{whole}{_BINARY_NAMES.get(exponent, '')}"


def _decimal_text(amount: Amount) -> str:
    unscaled, exponent = amount.unscaled, amount.exponent
    while unscaled % 10 == 0:
        unscaled //= 10
        exponent += 1
    unscaled *= _power_of_ten(exponent % 3)
    exponent -= exponent % 3
    if amount.format == DECIMAL_EXPONENT:
        return f"{unscaled}e{exponent}" if exponent else str(unscaled)
    # There is no suffix beyond E; upstream then writes no suffix.
    return f"{unscaled}{_DECIMAL_NAMES.get(exponent, '')}"


def parse_quantity(quantity: Quantity) -> Amount:
    """Return the exact number in a JSON string or number; raises QuantityError if it has none."""
    if isinstance(quantity, str):
        return _parse_text(quantity.strip())
    if isinstance(quantity, float):
        return _parse_text(repr(quantity))
    if quantity.bit_length() > _BITS_MAX:
        raise QuantityError(f"an integer of {quantity.bit_length()} bits: {FORM_ERROR}")
    return _parse_text(str(quantity))


@lru_cache(maxsize=65_536, typed=True)
def value(quantity: Quantity) -> int:
    """Return whole units, rounded away from zero, as an int64."""
    return parse_quantity(quantity).value()


@lru_cache(maxsize=65_536, typed=True)
def milli_value(quantity: Quantity) -> int:
    """Return thousandths, rounded away from zero, as an int64."""
    return parse_quantity(quantity).milli_value()


@lru_cache(maxsize=65_536)
def nano_value(quantity: Quantity) -> int:
    """Return units of 10**-9, rounded away from zero, as an unbounded int."""
    amount = parse_quantity(quantity)
    magnitude = _rounded_up_to_nano(abs(amount.unscaled), amount.exponent)
    return amount.sign * magnitude


def resource_value(resource: str, quantity: Quantity) -> int:
    """Return an amount as the scheduler counts it: cpu in thousandths, others in whole units."""
    return milli_value(quantity) if resource == CPU else value(quantity)


def resource_values(quantities: Mapping[str, Quantity]) -> dict[str, int]:
    """Return the amounts by resource as the scheduler counts them."""
    return {name: resource_value(name, quantity) for name, quantity in quantities.items()}


def canonical(quantity: Quantity) -> str:
    """Return the quantity as upstream writes it."""
    return str(parse_quantity(quantity))
