"""Cron schedules: when a CronJob starts its next job.

Upstream: github.com/robfig/cron/v3, as pkg/controller/cronjob uses it (v1.36)
Rejects:  schedules with other than five fields, unknown names and numbers out of range.
Differs:  `@every` is not known.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Final

import msgspec

_NAMED: Final = {
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
    "@monthly": "0 0 1 * *",
    "@weekly": "0 0 * * 0",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@hourly": "0 * * * *",
}
_MONTHS: Final = [
    "jan",
    "feb",
    "mar",
    "apr",
    "may",
    "jun",
    "jul",
    "aug",
    "sep",
    "oct",
    "nov",
    "dec",
]
_DAYS: Final = tuple("sun mon tue wed thu fri sat".split())  # noqa: SIM905 - short
# Of each field: its first and last number, and names for them.
_FIELDS: Final[tuple[tuple[int, int, dict[str, int]], ...]] = (
    (0, 59, {}),
    (0, 23, {}),
    (1, 31, {}),
    (1, 12, {name: number for number, name in enumerate(_MONTHS, 1)}),
    (0, 6, {name: number for number, name in enumerate(_DAYS)}),
)
# The 29th of February is at most eight years away.
_DAYS_MAX: Final = 8 * 366


class CronSchedule(msgspec.Struct, frozen=True):
    """A schedule.

    Attributes:
        minutes: From 0.
        hours: From 0.
        days: Of the month, from 1.
        months: From 1.
        weekdays: From 0 for Sunday.
        needs_both: Whether day and weekday must match; otherwise one of them is enough.
    """

    minutes: tuple[int, ...]
    hours: tuple[int, ...]
    days: tuple[int, ...]
    months: tuple[int, ...]
    weekdays: tuple[int, ...]
    needs_both: bool

    def next_after(self, time: datetime) -> datetime | None:
        """Return the first time of the schedule after a time, None if there is none."""
        start = time.replace(second=0, microsecond=0) + timedelta(minutes=1)
        for offset in range(_DAYS_MAX):
            day = start + timedelta(days=offset)
            if not self._has_day(day):
                continue
            for hour in self.hours:
                for minute in self.minutes:
                    found = day.replace(hour=hour, minute=minute)
                    if found >= start:
                        return found
        return None

    def _has_day(self, time: datetime) -> bool:
        is_day = time.day in self.days
        is_weekday = time.isoweekday() % 7 in self.weekdays
        matches = (is_day and is_weekday) if self.needs_both else (is_day or is_weekday)
        return time.month in self.months and matches


def parse_schedule(text: str) -> CronSchedule:
    """Return the schedule of a text such as `*/5 * * * *`.

    Raises:
        ValueError: The text is no schedule.
    """
    fields = _NAMED.get(text.strip(), text).split()
    if len(fields) != len(_FIELDS):
        raise ValueError(f"{text!r} has {len(fields)} fields; a schedule has five")
    minutes, hours, days, months, weekdays = (
        _numbers(field, *limits) for field, limits in zip(fields, _FIELDS, strict=True)
    )
    needs_both = fields[2][0] in "*?" or fields[4][0] in "*?"
    return CronSchedule(minutes, hours, days, months, weekdays, needs_both)


def _numbers(field: str, first: int, last: int, names: dict[str, int]) -> tuple[int, ...]:
    found: set[int] = set()
    for part in field.split(","):
        span, slash, step = part.partition("/")
        low, dash, high = span.partition("-")
        if low in {"*", "?"}:
            begin, end = first, last
        else:
            begin = _number(low, names)
            end = _number(high, names) if dash else (last if slash else begin)
        width = int(step) if slash else 1
        if not first <= begin <= end <= last or width < 1:
            raise ValueError(f"{part!r} is not within {first} and {last}")
        found.update(range(begin, end + 1, width))
    return tuple(sorted(found))


def _number(text: str, names: dict[str, int]) -> int:
    known = names.get(text.lower())
    return int(text) if known is None else known
