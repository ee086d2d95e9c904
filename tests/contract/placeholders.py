"""Placeholders of recorded conversations: bound when first seen, compared afterwards."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from .boundary import compared

_PLACEHOLDER: Final = re.compile(
    r"<(?:(uid|rv|ip|continue|suffix|hex):([^>]+)|(time)\+(\d+)s|"
    r"(time|microtime|age|date|any|server|host|port|hostname|dir|home|kubeconfig))>"
)
_FORMS: Final = {
    "uid": r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}",
    "rv": r"[0-9]+",
    "ip": r"[0-9a-f.:]+",
    "continue": r"[A-Za-z0-9_-]+",
    "suffix": r"[a-z0-9]{5}",
    "hex": r"[0-9a-f]{16}",
    "time": r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ",
    "microtime": r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d+Z",
    "age": r"(?:\d+[smhdy]|<unknown>)+",
    "date": r".+?",
    "any": r".*?",
    "server": r".*?",
}
_CLOCK_TOLERANCE: Final = timedelta(seconds=3)


class DifferenceError(AssertionError):
    """An answer differs from the record."""


class Placeholders:
    """The values of the placeholders of one conversation."""

    def __init__(self, list_only_ranks: Sequence[int] = ()) -> None:
        """Start with nothing bound.

        Args:
            list_only_ranks: Ranks of versions that only have to lie between their neighbours.
        """
        self._values: dict[str, str] = {}
        self._list_only = frozenset(list_only_ranks)

    def bind(self, placeholder: str, value: str) -> None:
        """Set the value of a placeholder."""
        self._values[placeholder] = value

    def filled(self, value: Any) -> Any:
        """Return a part of a request with its placeholders replaced by values."""
        if isinstance(value, dict):
            return {self.filled(name): self.filled(one) for name, one in value.items()}
        if isinstance(value, list):
            return [self.filled(one) for one in value]
        return _PLACEHOLDER.sub(self._value, value) if isinstance(value, str) else value

    def _value(self, match: re.Match[str]) -> str:
        return self._values.get(match[0], match[0])

    def compare(self, expected: Any, actual: Any, now: datetime, path: str = "$") -> None:
        """Compare a part of an answer with the record.

        Raises:
            DifferenceError: They differ.
        """
        if isinstance(expected, dict) and isinstance(actual, dict):
            self._compare_objects(expected, actual, now, path)
        elif isinstance(expected, list) and isinstance(actual, list):
            if len(expected) != len(actual):
                raise DifferenceError(
                    f"{path}: {len(expected)} entries expected, got {actual!r:.400}"
                )
            for position, (one, other) in enumerate(zip(expected, actual, strict=True)):
                self.compare(one, other, now, f"{path}[{position}]")
        elif isinstance(expected, str) and isinstance(actual, str):
            self._compare_texts(expected, actual, now, path)
        elif expected != actual or type(expected) is not type(actual):
            raise DifferenceError(f"{path}: expected {expected!r:.400}, got {actual!r:.400}")

    def _compare_objects(
        self, expected: dict[str, Any], actual: dict[str, Any], now: datetime, path: str
    ) -> None:
        expected, actual = compared(expected), compared(actual)
        # Keys are placeholders too, in the disrupted pods of a budget for one.
        expected = {self.filled(name): one for name, one in expected.items()}
        missing = [name for name in expected if name not in actual]
        extra = [name for name in actual if name not in expected]
        if missing or extra:
            shown = {name: actual[name] for name in extra}
            raise DifferenceError(f"{path}: missing {missing}, too much {shown!r:.400}")
        for name, one in expected.items():
            self.compare(one, actual[name], now, f"{path}.{name}")

    def _compare_texts(self, expected: str, actual: str, now: datetime, path: str) -> None:
        if expected == actual:
            return
        pattern, names = self._pattern(expected)
        match = re.fullmatch(pattern, actual, re.DOTALL)
        if match is None:
            shown = self.filled(expected)
            raise DifferenceError(f"{path}: expected {shown!r:.500}, got {actual!r:.500}")
        for name, value in zip(names, match.groups(), strict=True):
            self._bind_or_check(name, value, now, path)

    def _pattern(self, expected: str) -> tuple[str, list[str]]:
        pattern, names, at = "", [], 0
        for match in _PLACEHOLDER.finditer(expected):
            pattern += re.escape(expected[at : match.start()])
            at = match.end()
            known = self._values.get(match[0])
            if known is not None:
                pattern += re.escape(known)
            else:
                kind = match[1] or match[3] or match[5]
                pattern += f"({_FORMS.get(kind, '.*?')})"
                names.append(match[0])
        return pattern + re.escape(expected[at:]), names

    def _bind_or_check(self, name: str, value: str, now: datetime, path: str) -> None:
        if name.startswith("<time"):
            match = _PLACEHOLDER.fullmatch(name)
            assert match is not None
            expected = now + timedelta(seconds=int(match[4] or 0))
            moment = datetime.fromisoformat(value)
            is_loose = match[3] is None
            tolerance = timedelta(minutes=2) if is_loose else _CLOCK_TOLERANCE
            if abs(moment - expected) > tolerance:
                raise DifferenceError(f"{path}: {value} is not {name} of {expected}")
        elif ":" in name and name != "<rv:oldest>":
            self._bind(name, value, path)

    def _bind(self, name: str, value: str, path: str) -> None:
        if name in self._values:
            if self._values[name] != value:
                raise DifferenceError(f"{path}: {name} was {self._values[name]}, is {value}")
            return
        if name.startswith("<rv:"):
            self._check_rank(name, int(value), path)
        elif value in self._values.values():
            raise DifferenceError(f"{path}: {value} for {name} was seen before")
        self._values[name] = value

    def _check_rank(self, name: str, value: int, path: str) -> None:
        rank = _rank(name)
        for other, text in self._versions():
            is_loose = rank in self._list_only or other in self._list_only
            before, after = (value, int(text)) if rank < other else (int(text), value)
            if before > after or (before == after and not is_loose):
                raise DifferenceError(f"{path}: {name} is {value}, but <rv:{other}> is {text}")

    def _versions(self) -> Iterator[tuple[int, str]]:
        for name, value in self._values.items():
            if name.startswith("<rv:") and name != "<rv:oldest>":
                yield _rank(name), value


def _rank(name: str) -> int:
    return int(name.removeprefix("<rv:").removesuffix(">"))


EPOCH: Final = datetime(2030, 1, 1, tzinfo=UTC)
