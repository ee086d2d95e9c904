"""Read parts of timestamps and durations, and write both as text.

Upstream: google/cel-go common/stdlib/standard.go, common/types/{timestamp,duration}.go;
          Go's package time
Reads:    the zones that Python's zoneinfo finds
Differs:  `Local` is UTC; a zone's file that cannot be read is an unknown zone.
"""

import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from kubesched.api.go_text import go_quote
from kubesched.cel.declarations import Library
from kubesched.cel.values import (
    INT_MAX,
    INT_MIN,
    TIMESTAMP_MAX,
    TIMESTAMP_MIN,
    CelError,
    Duration,
    Timestamp,
)

_SECOND = 10**9
_MINUTE = 60 * _SECOND
_HOUR = 60 * _MINUTE
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)

# The calendar repeats after 400 years, which are whole weeks.
_CYCLE_YEARS = 400
_CYCLE_SECONDS = 146_097 * 86_400
_NUMBER = re.compile("[+-]?[0-9]{1,1000}")


def _civil(timestamp: Timestamp, offset_seconds: int) -> tuple[int, datetime]:
    """Return the year, and a datetime whose year is another one with the same calendar."""
    seconds = timestamp.nanoseconds // _SECOND + offset_seconds
    cycles, rest = divmod(seconds, _CYCLE_SECONDS)
    clock = _EPOCH + timedelta(seconds=rest)
    return clock.year + cycles * _CYCLE_YEARS, clock


def timestamp_text(timestamp: Timestamp) -> str:
    """Return the timestamp in RFC 3339, in the zone it was written in."""
    offset = timestamp.offset_seconds
    year, clock = _civil(timestamp, offset)
    fraction = f".{timestamp.nanoseconds % _SECOND:09}".rstrip("0").rstrip(".")
    hours, minutes = divmod(abs(offset) // 60, 60)
    zone = f"{'-' if offset < 0 else '+'}{hours:02}:{minutes:02}" if offset else "Z"
    return f"{year:04}-{clock:%m-%dT%H:%M:%S}{fraction}{zone}"


def duration_text(duration: Duration) -> str:
    """Return the duration in seconds, with as many decimals as needed."""
    digits = f"{Decimal(repr(_as_double(duration, _SECOND))):f}"
    return digits.removesuffix(".0") + "s"


def _as_double(duration: Duration, unit: int) -> float:
    """Convert to a unit with upstream's rounding: whole units plus the divided rest."""
    whole, rest = divmod(abs(duration.nanoseconds), unit)
    magnitude = whole + rest / unit
    return -magnitude if duration.nanoseconds < 0 else magnitude


# Zones.


def _integer(text: str) -> int:
    if _NUMBER.fullmatch(text) is None:
        raise CelError(f"strconv.Atoi: parsing {go_quote(text)}: invalid syntax")
    if not INT_MIN <= int(text) <= INT_MAX:
        raise CelError(f"strconv.Atoi: parsing {go_quote(text)}: value out of range")
    return int(text)


def _wrapped(number: int) -> int:
    """Return the number as a signed 64-bit integer, wrapped on overflow."""
    return (number - INT_MIN) % 2**64 + INT_MIN


def _fixed_offset_seconds(zone: str) -> int:
    """Parse an offset such as -08:00; like upstream, it wraps on overflow."""
    hours_text, _, minutes_text = zone.partition(":")
    hours, minutes = _integer(hours_text), _integer(minutes_text)
    total = hours * 60 + (-minutes if zone[0] == "-" else minutes)
    nanoseconds = _wrapped(total * _MINUTE)
    return -(-nanoseconds // _SECOND) if nanoseconds < 0 else nanoseconds // _SECOND


def _named_offset_seconds(timestamp: Timestamp, zone: str) -> int:
    if zone in {"", "UTC", "Local"}:
        return 0
    if ".." in zone or zone[0] in "/\\":
        raise CelError("time: invalid location name")
    try:
        info = ZoneInfo(zone)
    except (ZoneInfoNotFoundError, ValueError, OSError) as error:
        raise CelError(f"unknown time zone {zone}") from error
    # datetime cannot apply an offset at either end of the calendar; no zone changes there.
    margin = 2 * 24 * _HOUR
    nanoseconds = min(max(timestamp.nanoseconds, TIMESTAMP_MIN + margin), TIMESTAMP_MAX - margin)
    clock = _EPOCH + timedelta(seconds=nanoseconds // _SECOND)
    offset = clock.astimezone(info).utcoffset()
    return 0 if offset is None else int(offset.total_seconds())


def _offset_seconds(timestamp: Timestamp, zone: str) -> int:
    if ":" in zone:
        return _fixed_offset_seconds(zone)
    return _named_offset_seconds(timestamp, zone)


# Parts.


def _part(read: Callable[[datetime], int]) -> Callable[..., int]:
    def part(timestamp: Timestamp, zone: str = "UTC") -> int:
        return read(_civil(timestamp, _offset_seconds(timestamp, zone))[1])

    return part


def _full_year(timestamp: Timestamp, zone: str = "UTC") -> int:
    return _civil(timestamp, _offset_seconds(timestamp, zone))[0]


def _milliseconds(timestamp: Timestamp, zone: str = "UTC") -> int:
    _offset_seconds(timestamp, zone)
    return timestamp.nanoseconds % _SECOND // 10**6


def _whole(unit: int) -> Callable[[Duration], int]:
    """Return a function that gives a duration in whole units, rounded towards zero."""
    return lambda duration: int(_as_double(duration, unit))


def _whole_milliseconds(duration: Duration) -> int:
    magnitude = abs(duration.nanoseconds) // 10**6
    return -magnitude if duration.nanoseconds < 0 else magnitude


_PARTS: dict[str, Callable[..., int]] = {
    "getFullYear": _full_year,
    "getMonth": _part(lambda clock: clock.month - 1),
    "getDate": _part(lambda clock: clock.day),
    "getDayOfMonth": _part(lambda clock: clock.day - 1),
    "getDayOfWeek": _part(lambda clock: clock.isoweekday() % 7),
    "getDayOfYear": _part(lambda clock: clock.timetuple().tm_yday - 1),
    "getHours": _part(lambda clock: clock.hour),
    "getMinutes": _part(lambda clock: clock.minute),
    "getSeconds": _part(lambda clock: clock.second),
    "getMilliseconds": _milliseconds,
}
_UNITS = {"getHours": _HOUR, "getMinutes": _MINUTE, "getSeconds": _SECOND}

LIBRARY: Library = {
    **{f"@{name}(timestamp): int": part for name, part in _PARTS.items()},
    **{f"@{name}(timestamp, string): int": part for name, part in _PARTS.items()},
    **{f"@{name}(duration): int": _whole(unit) for name, unit in _UNITS.items()},
    "@getMilliseconds(duration): int": _whole_milliseconds,
    "string(timestamp): string": timestamp_text,
    "string(duration): string": duration_text,
}
