"""Differences between two JSON values, each with its path.

Invariants: values are equal only if their JSON texts are: True is not 1.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import msgspec

ABSENT: Final = "(absent)"


class Difference(msgspec.Struct, frozen=True):
    """A value that differs from the expected one.

    Attributes:
        path: Keys and indices that lead to it, such as `scores.node-1.ImageLocality`.
        expected: As JSON, or ABSENT.
        got: As JSON, or ABSENT.
    """

    path: str
    expected: str
    got: str


def differences(expected: Any, got: Any, path: str = "") -> Iterator[Difference]:
    """Yield the differences, in the order of the keys of `expected`."""
    if isinstance(expected, dict) and isinstance(got, dict):
        yield from _of_objects(expected, got, path)
    elif isinstance(expected, list) and isinstance(got, list) and len(expected) == len(got):
        for at, (left, right) in enumerate(zip(expected, got, strict=True)):
            yield from differences(left, right, f"{path}[{at}]")
    elif type(expected) is not type(got) or expected != got:
        yield Difference(path, _json(expected), _json(got))


def _of_objects(expected: dict[str, Any], got: dict[str, Any], path: str) -> Iterator[Difference]:
    for key, value in expected.items():
        below = f"{path}.{key}" if path else key
        if key in got:
            yield from differences(value, got[key], below)
        else:
            yield Difference(below, _json(value), ABSENT)
    for key, value in got.items():
        if key not in expected:
            yield Difference(f"{path}.{key}" if path else key, ABSENT, _json(value))


def _json(value: Any) -> str:
    return msgspec.json.encode(value).decode()
