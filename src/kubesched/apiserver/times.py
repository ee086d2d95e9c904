"""Times: the present of a server and what it draws, and times as objects carry them.

Upstream: staging/src/k8s.io/apiserver/pkg/storage/names/generate.go, Go's time.Parse,
          staging/src/k8s.io/apimachinery/pkg/apis/meta/v1/time.go (v1.36)
Differs:  nothing.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from random import Random
from typing import Final

# Without letters that make words, and digits that look like letters.
_SUFFIX_LETTERS: Final = "bcdfghjklmnpqrstvwxz2456789"
_SUFFIX_LENGTH: Final = 5
_BILLION: Final = 1_000_000_000
_GENERATED_MAX: Final = 63
_FORMAT: Final = "%Y-%m-%dT%H:%M:%SZ"
_SECONDS_LAYOUT: Final = "2006-01-02T15:04:05Z07:00"
_MICROSECONDS_LAYOUT: Final = "2006-01-02T15:04:05.000000Z07:00"
_STEPS: Final = (
    ("2006", re.compile(r"[0-9]{4}")),
    ("-", re.compile("-")),
    ("01", re.compile(r"[0-9]{2}")),
    ("-", re.compile("-")),
    ("02", re.compile(r"[0-9]{2}")),
    ("T", re.compile("T")),
    # Go reads an hour of one digit too where two are asked for.
    ("15", re.compile(r"[0-9]{1,2}")),
    (":", re.compile(":")),
    ("04", re.compile(r"[0-9]{2}")),
    (":", re.compile(":")),
    ("05", re.compile(r"[0-9]{2}")),
)
_FRACTION: Final = re.compile(r"[.,][0-9]+")
_MICROSECONDS: Final = re.compile(r"[.,][0-9]{6}")
_ZONE: Final = re.compile(r"Z|[+-][0-9]{2}:[0-9]{2}")
_RANGES: Final = {
    "01": (1, 12, "month"),
    "15": (0, 23, "hour"),
    "04": (0, 59, "minute"),
    "05": (0, 59, "second"),
}
_ANY: Final = (0, 9999, "")
_ZONE_HOURS_MAX: Final = 24
_ZONE_MINUTES_MAX: Final = 60


class Clock:
    """The present, and what is drawn."""

    def __init__(self, now: Callable[[], datetime], random: Random) -> None:
        """Take a clock and random.

        Args:
            now: Returns the present, with time zone UTC.
            random: Where identities and names come from.
        """
        self.now = now
        self._random = random

    def timestamp(self, after_seconds: int = 0) -> str:
        """Return the present, or a moment after it, in whole seconds."""
        return timestamp(after(self.now(), after_seconds))

    def uid(self) -> str:
        """Return a new identity, a random UUID."""
        bits = self._random.getrandbits(128)
        text = f"{bits:032x}"
        variant = "89ab"[bits >> 62 & 3]
        return f"{text[:8]}-{text[8:12]}-4{text[13:16]}-{variant}{text[17:20]}-{text[20:]}"

    def name_after(self, prefix: str) -> str:
        """Return a name that begins as asked and ends by chance."""
        suffix = "".join(self._random.choices(_SUFFIX_LETTERS, k=_SUFFIX_LENGTH))
        return prefix[: _GENERATED_MAX - _SUFFIX_LENGTH] + suffix

    def between(self, low: float, high: float) -> float:
        """Return a number between two."""
        return self._random.uniform(low, high)


def after(moment: datetime, seconds: int) -> datetime:
    """Return a moment some seconds later, or where Go's nanoseconds of 64 bits lead to."""
    nanoseconds = (seconds * _BILLION + 2**63) % 2**64 - 2**63
    return moment + timedelta(microseconds=nanoseconds // 1000)


def timestamp(moment: datetime) -> str:
    """Return a moment as objects carry it."""
    return moment.strftime(_FORMAT)


def moment_of(text: str) -> datetime:
    """Return the moment of an object's time."""
    return datetime.fromisoformat(text)


class TimeError(ValueError):
    """A text that is no time; the message is Go's."""


def canonical_time(text: str) -> str:
    """Return a time in UTC, to the second.

    Raises:
        TimeError: It is none.
    """
    return _parse(text, _SECONDS_LAYOUT).strftime("%Y-%m-%dT%H:%M:%SZ")


def canonical_micro_time(text: str) -> str:
    """Return a time in UTC, to the microsecond.

    Raises:
        TimeError: It is none, or is not given to the microsecond.
    """
    return _parse(text, _MICROSECONDS_LAYOUT).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def _parse(text: str, layout: str) -> datetime:
    def fail(rest: str, wanted: str) -> TimeError:
        return TimeError(
            f'parsing time "{text}" as "{layout}": cannot parse "{rest}" as "{wanted}"'
        )

    numbers: list[int] = []
    at = 0
    for wanted, form in _STEPS:
        match = form.match(text, at)
        if match is None:
            raise fail(text[at:], wanted)
        if match[0].isdecimal():
            number = int(match[0])
            least, most, name = _RANGES.get(wanted, _ANY)
            if not least <= number <= most:
                raise _out_of_range(text, name)
            numbers.append(number)
        at = match.end()
    is_exact = layout == _MICROSECONDS_LAYOUT
    match = (_MICROSECONDS if is_exact else _FRACTION).match(text, at)
    if match is None and is_exact:
        raise fail(text[at:], ".000000")
    fraction, at = ("", at) if match is None else (match[0], match.end())
    zone = _ZONE.match(text, at)
    if zone is None:
        raise fail(text[at:], "Z07:00")
    if zone.end() != len(text):
        raise TimeError(f'parsing time "{text}": extra text: "{text[zone.end() :]}"')
    return _in_utc(text, numbers, fraction, zone[0])


def _in_utc(text: str, numbers: list[int], fraction: str, zone: str) -> datetime:
    year, month, day, hour, minute, second = numbers
    microseconds = int(fraction[1:7].ljust(6, "0")) if fraction else 0
    offset = _offset(text, zone)
    try:
        return datetime(year, month, day, hour, minute, second, microseconds, UTC) - offset
    except (ValueError, OverflowError):
        raise _out_of_range(text, "day") from None


def _out_of_range(text: str, name: str) -> TimeError:
    return TimeError(f'parsing time "{text}": {name} out of range')


def _offset(text: str, zone: str) -> timedelta:
    if zone == "Z":
        return timedelta()
    hours, minutes = int(zone[1:3]), int(zone[4:6])
    if hours > _ZONE_HOURS_MAX:
        raise _out_of_range(text, "time zone offset hour")
    if minutes > _ZONE_MINUTES_MAX:
        raise _out_of_range(text, "time zone offset minute")
    offset = timedelta(hours=hours, minutes=minutes)
    return -offset if zone[0] == "-" else offset
