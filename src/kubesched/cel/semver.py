"""Semantic versions.

Upstream: github.com/blang/semver/v4; staging/src/k8s.io/apiserver/pkg/cel/library/semverlib.go
Differs:  nothing.
"""

from dataclasses import dataclass
from functools import lru_cache
from typing import ClassVar

from kubesched.cel.values import UINT_MAX

_DIGITS = frozenset("0123456789")
_ALPHANUMERIC = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ-0123456789")


class SemverError(ValueError):
    """A text that is no semantic version; the message is upstream's."""


@dataclass(frozen=True, slots=True, eq=False)
class Semver:
    """A semantic version; build metadata takes no part in comparisons."""

    major: int
    minor: int
    patch: int
    prerelease: tuple[int | str, ...] = ()
    build: tuple[str, ...] = ()

    type_name: ClassVar[str] = "kubernetes.Semver"
    is_opaque: ClassVar[bool] = True

    def compare(self, other: "Semver") -> int:
        """-1, 0 or 1."""
        mine, others = self.core, other.core
        if mine != others:
            return 1 if mine > others else -1
        return _compare_prereleases(self.prerelease, other.prerelease)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Semver) and self.compare(other) == 0

    def __hash__(self) -> int:
        return hash((self.core, self.prerelease))

    @property
    def core(self) -> tuple[int, int, int]:
        """The three numbers."""
        return (self.major, self.minor, self.patch)


@lru_cache(4096)
def parse_semver(text: str) -> Semver:
    """The version that `text` is, strictly. Raises SemverError."""
    if not text:
        raise SemverError("Version string empty")
    parts = text.split(".", 2)
    if len(parts) != 3:
        raise SemverError("No Major.Minor.Patch elements found")
    major, minor = _number("Major", parts[0]), _number("Minor", parts[1])
    rest, plus, build = parts[2].partition("+")
    patch, dash, prerelease = rest.partition("-")
    return Semver(
        major,
        minor,
        _number("Patch", patch),
        tuple(map(_prerelease, prerelease.split("."))) if dash else (),
        tuple(map(_build, build.split("."))) if plus else (),
    )


def normalize_semver(text: str) -> str:
    """The text without a leading `v` and leading zeros, filled up to three numbers.

    Raises SemverError.
    """
    parts = [_without_zeros(part) for part in text.removeprefix("v").split(".", 2)]
    if len(parts) < 3:
        if "+" in parts[-1] or "-" in parts[-1]:
            raise SemverError("short version cannot contain PreRelease/Build meta data")
        parts += ["0"] * (3 - len(parts))
    return ".".join(parts)


def _without_zeros(part: str) -> str:
    if len(part) <= 1:
        return part
    stripped = part.lstrip("0")
    return stripped if stripped[:1] in _DIGITS else "0" + stripped


def _number(name: str, text: str) -> int:
    if not set(text) <= _DIGITS:
        raise SemverError(f"Invalid character(s) found in {name.lower()} number {_quoted(text)}")
    if len(text) > 1 and text[0] == "0":
        raise SemverError(f"{name} number must not contain leading zeroes {_quoted(text)}")
    return _uint64(text)


def _uint64(text: str) -> int:
    if not text:
        raise SemverError('strconv.ParseUint: parsing "": invalid syntax')
    if len(text) > 20 or int(text) > UINT_MAX:
        raise SemverError(f"strconv.ParseUint: parsing {_quoted(text)}: value out of range")
    return int(text)


def _prerelease(text: str) -> int | str:
    if not text:
        raise SemverError("Prerelease is empty")
    if set(text) <= _DIGITS:
        if len(text) > 1 and text[0] == "0":
            raise SemverError(
                f"Numeric PreRelease version must not contain leading zeroes {_quoted(text)}"
            )
        return _uint64(text)
    if not set(text) <= _ALPHANUMERIC:
        raise SemverError(f"Invalid character(s) found in prerelease {_quoted(text)}")
    return text


def _build(text: str) -> str:
    if not text:
        raise SemverError("Build meta data is empty")
    if not set(text) <= _ALPHANUMERIC:
        raise SemverError(f"Invalid character(s) found in build meta data {_quoted(text)}")
    return text


def _quoted(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


def _compare_prereleases(left: tuple[int | str, ...], right: tuple[int | str, ...]) -> int:
    if not left or not right:
        return bool(right) - bool(left) if bool(left) != bool(right) else 0
    # Numbers come before words; a longer list after its own beginning.
    mine = [(isinstance(part, str), part) for part in left]
    others = [(isinstance(part, str), part) for part in right]
    return (mine > others) - (mine < others)
