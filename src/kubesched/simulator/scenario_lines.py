"""Evaluates scenarios from JSON lines, and finds how a result differs from the expected one.

Each line has a result or an error.

Rejects:  nothing; a malformed line gives an error result.
Invariants: values are equal only if their JSON texts are: True is not 1.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

import msgspec

from kubesched.api.field_errors import ConfigError
from kubesched.simulator.evaluate import Evaluator, ScenarioError

ABSENT: Final = "(absent)"


class Difference(msgspec.Struct, frozen=True):
    """A value that differs from the expected one; both are JSON, or ABSENT.

    `path` has the keys and indices that lead to it, such as `scores.node-1.ImageLocality`.
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


# Lines.

_DEEP = "it is nested too deeply"


class AnsweredLine(msgspec.Struct, frozen=True):
    """A line and its result.

    Attributes:
        number: The line number from 1, counting blank lines.
        name: The scenario's name; empty if it could not be read.
        answer: The result; after an error `error`, `line`, and `name` if known.
        expected: The recorded result; None if there is none.
        is_error: Whether the result is an error.
    """

    number: int
    name: str
    answer: Mapping[str, Any]
    expected: Mapping[str, Any] | None = None
    is_error: bool = False


def answer_lines(evaluator: Evaluator, lines: Iterable[bytes]) -> Iterator[AnsweredLine]:
    """Yield the result of each line that is not blank, as soon as the line is read."""
    for number, line in enumerate(lines, 1):
        if line.strip():
            yield _answered(evaluator, number, line)


def _answered(evaluator: Evaluator, number: int, line: bytes) -> AnsweredLine:
    name = ""
    expected: Mapping[str, Any] | None = None
    try:
        scenario, expected = _read(line)
        name = _name_of(scenario)
        answer = evaluator.evaluate(scenario)
    except Exception as error:  # noqa: BLE001 - an error in one line must not affect the others
        named = {"name": name} if name else {}
        result = {"error": _message(error), "line": number, **named}
        return AnsweredLine(number, name, result, expected, is_error=True)
    return AnsweredLine(number, name, answer, expected)


def _read(line: bytes) -> tuple[Mapping[str, Any], Mapping[str, Any] | None]:
    """Return the scenario and the expected result; a line may also be a bare scenario."""
    # JSON must be UTF-8, but msgspec validates only the text that it keeps.
    line.decode()
    found = msgspec.json.decode(line)
    if not isinstance(found, dict):
        raise ScenarioError("an object is required")
    if "scenario" not in found:
        return found, None
    scenario, expected = found["scenario"], found.get("expected")
    if not isinstance(scenario, dict):
        raise ScenarioError("scenario: an object is required")
    if expected is not None and not isinstance(expected, dict):
        raise ScenarioError("expected: an object is required")
    return scenario, expected


def _name_of(scenario: Mapping[str, Any]) -> str:
    name = scenario.get("name")
    return name if isinstance(name, str) else ""


def _message(error: Exception) -> str:
    match error:
        case UnicodeDecodeError():
            return f"it is no UTF-8: {error.reason} (byte {error.start})"
        case msgspec.DecodeError():
            return f"it is no JSON: {error}"
        case RecursionError():
            return _DEEP
        case ConfigError():
            return "; ".join(f"scenario.config: {field_error}" for field_error in error.errors)
        case ScenarioError():
            return str(error)
        case _:
            return f"internal error: {type(error).__name__}: {error}"
