"""Values of devices in expressions: semantic versions and resource quantities.

Upstream: github.com/blang/semver/v4; staging/src/k8s.io/apiserver/pkg/cel/library/semverlib.go,
          staging/src/k8s.io/apiserver/pkg/cel/quantity.go, library/quantity.go
Differs:  nothing.
"""

import operator
from dataclasses import dataclass
from functools import lru_cache
from typing import ClassVar, TypeVar

from kubesched.api.go_text import go_quote
from kubesched.api.integers import is_int64
from kubesched.api.quantity import NANO, nano_value
from kubesched.cel.declarations import Library
from kubesched.cel.values import UINT_MAX, CelError, Opaque, succeeds

# Versions.

_DIGITS = frozenset("0123456789")
_ALPHANUMERIC = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ-0123456789")


@dataclass(frozen=True, slots=True, order=True)
class Semver(Opaque):
    """A semantic version without its build metadata, which comparisons ignore.

    Attributes:
        is_release: Whether it is not a prerelease; it is newer than its prereleases.
        prerelease: Its parts, each with whether it is a word: numbers sort before words.
    """

    major: int
    minor: int
    patch: int
    is_release: bool
    prerelease: tuple[tuple[bool, int | str], ...]

    type_name: ClassVar[str] = "kubernetes.Semver"


@lru_cache(4096)
def parse_semver(text: str) -> Semver:
    """Parse a version strictly. Raises CelError."""
    if not text:
        raise CelError("Version string empty")
    parts = text.split(".", 2)
    if len(parts) != 3:
        raise CelError("No Major.Minor.Patch elements found")
    major, minor = _number("Major", parts[0]), _number("Minor", parts[1])
    rest, plus, build = parts[2].partition("+")
    patch, dash, prerelease = rest.partition("-")
    number = _number("Patch", patch)
    words = tuple(map(_prerelease, prerelease.split("."))) if dash else ()
    if plus:
        for part in build.split("."):
            _check_build(part)
    return Semver(major, minor, number, not dash, words)


def normalize_semver(text: str) -> str:
    """Remove a leading `v` and zeros, and append `.0` up to three numbers. Raises CelError."""
    parts = [_without_zeros(part) for part in text.removeprefix("v").split(".", 2)]
    if len(parts) < 3:
        if "+" in parts[-1] or "-" in parts[-1]:
            raise CelError("short version cannot contain PreRelease/Build meta data")
        parts += ["0"] * (3 - len(parts))
    return ".".join(parts)


def _without_zeros(part: str) -> str:
    if len(part) <= 1:
        return part
    stripped = part.lstrip("0")
    return stripped if stripped[:1] in _DIGITS else "0" + stripped


def _number(name: str, text: str) -> int:
    if not set(text) <= _DIGITS:
        raise CelError(f"Invalid character(s) found in {name.lower()} number {go_quote(text)}")
    if len(text) > 1 and text[0] == "0":
        raise CelError(f"{name} number must not contain leading zeroes {go_quote(text)}")
    return _uint64(text)


def _uint64(text: str) -> int:
    if not text:
        raise CelError('strconv.ParseUint: parsing "": invalid syntax')
    if len(text) > 20 or int(text) > UINT_MAX:
        raise CelError(f"strconv.ParseUint: parsing {go_quote(text)}: value out of range")
    return int(text)


def _prerelease(text: str) -> tuple[bool, int | str]:
    if not text:
        raise CelError("Prerelease is empty")
    if set(text) <= _DIGITS:
        if len(text) > 1 and text[0] == "0":
            raise CelError(
                f"Numeric PreRelease version must not contain leading zeroes {go_quote(text)}"
            )
        return False, _uint64(text)
    if not set(text) <= _ALPHANUMERIC:
        raise CelError(f"Invalid character(s) found in prerelease {go_quote(text)}")
    return True, text


def _check_build(text: str) -> None:
    if not text:
        raise CelError("Build meta data is empty")
    if not set(text) <= _ALPHANUMERIC:
        raise CelError(f"Invalid character(s) found in build meta data {go_quote(text)}")


def _semver(string: str, normalize: bool = False) -> Semver:
    return parse_semver(normalize_semver(string) if normalize else string)


# Quantities.


@dataclass(frozen=True, slots=True, order=True)
class CelQuantity(Opaque):
    """A resource quantity, in units of 10^-9."""

    nano: int

    type_name: ClassVar[str] = "kubernetes.Quantity"


def _quantity(string: str) -> CelQuantity:
    try:
        return CelQuantity(nano_value(string))
    except ValueError as error:
        # Our message begins with the text, upstream's does not.
        raise CelError(str(error).rpartition("': ")[2]) from error


def _is_integer(quantity: CelQuantity) -> bool:
    return quantity.nano % NANO == 0 and is_int64(quantity.nano // NANO)


def _as_integer(quantity: CelQuantity) -> int:
    if not _is_integer(quantity):
        raise CelError("cannot convert value to integer")
    return quantity.nano // NANO


_Ordered = TypeVar("_Ordered", Semver, CelQuantity)


def _compare(left: _Ordered, right: _Ordered) -> int:
    return (left > right) - (left < right)


LIBRARY: Library = {
    "semver(string): semver": _semver,
    "semver(string, bool): semver": _semver,
    "isSemver(string): bool": succeeds(_semver),
    "isSemver(string, bool): bool": succeeds(_semver),
    "@isGreaterThan(semver, semver): bool": operator.gt,
    "@isLessThan(semver, semver): bool": operator.lt,
    "@compareTo(semver, semver): int": _compare,
    "@major(semver): int": lambda version: version.major,
    "@minor(semver): int": lambda version: version.minor,
    "@patch(semver): int": lambda version: version.patch,
    "quantity(string): quantity": _quantity,
    "isQuantity(string): bool": succeeds(_quantity),
    "sign(quantity): int": lambda quantity: (quantity.nano > 0) - (quantity.nano < 0),
    "@isGreaterThan(quantity, quantity): bool": operator.gt,
    "@isLessThan(quantity, quantity): bool": operator.lt,
    "@compareTo(quantity, quantity): int": _compare,
    "@asApproximateFloat(quantity): double": lambda quantity: quantity.nano / NANO,
    "@asInteger(quantity): int": _as_integer,
    "@isInteger(quantity): bool": _is_integer,
    "@add(quantity, quantity): quantity": lambda a, b: CelQuantity(a.nano + b.nano),
    "@add(quantity, int): quantity": lambda a, b: CelQuantity(a.nano + b * NANO),
    "@sub(quantity, quantity): quantity": lambda a, b: CelQuantity(a.nano - b.nano),
    "@sub(quantity, int): quantity": lambda a, b: CelQuantity(a.nano - b * NANO),
}
