"""Schedules of CronJobs and their times."""

from __future__ import annotations

from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import pytest

from kubesched.cluster.controllers.jobs import parse_schedule


@pytest.mark.parametrize(
    ("schedule", "expected"),
    [
        pytest.param("* * * * *", "2026-01-01T10:31", id="every-minute"),
        pytest.param("*/20 * * * *", "2026-01-01T10:40", id="steps"),
        pytest.param("5/20 * * * *", "2026-01-01T10:45", id="steps-from"),
        pytest.param("0 9-17/4 * * *", "2026-01-01T13:00", id="range-with-steps"),
        pytest.param("15,45 3 * * *", "2026-01-02T03:15", id="list"),
        pytest.param("0 0 * * mon", "2026-01-05T00:00", id="weekday"),
        pytest.param("0 0 13 * fri", "2026-01-02T00:00", id="day-or-weekday"),
        pytest.param("0 0 */10 * fri", "2026-01-02T00:00", id="stepped-day-or-weekday"),
        pytest.param("0 0 */1 * fri", "2026-01-02T00:00", id="every-day-and-weekday"),
        pytest.param("0 0 29 feb ?", "2028-02-29T00:00", id="leap-day"),
        pytest.param("0 0 31 4 *", None, id="never"),
        pytest.param("@hourly", "2026-01-01T11:00", id="named"),
    ],
)
def test_next_time_of_a_schedule(schedule: str, expected: str | None) -> None:
    """After half past ten on a Thursday."""
    found = parse_schedule(schedule).next_after(datetime(2026, 1, 1, 10, 30, 7, tzinfo=UTC))
    assert expected == (None if found is None else found.strftime("%Y-%m-%dT%H:%M"))


@pytest.mark.parametrize(
    ("schedule", "after", "expected"),
    [
        pytest.param("0 9 * * *", "2026-03-07T14:00", "2026-03-08T13:00", id="shorter-day"),
        pytest.param("30 2 * * *", "2026-03-08T06:31", "2026-03-09T06:30", id="skipped"),
        pytest.param("*/30 * * * *", "2026-03-08T06:31", "2026-03-08T07:00", id="after-a-gap"),
        pytest.param("*/30 * * * *", "2026-11-01T05:31", "2026-11-01T06:00", id="repeated-hour"),
        pytest.param("30 1 * * *", "2026-11-01T05:30", "2026-11-01T06:30", id="repeated"),
        pytest.param("0 9 * * *", "2026-10-31T13:00", "2026-11-01T14:00", id="longer-day"),
    ],
)
def test_schedules_follow_the_clocks_of_their_zone(
    schedule: str, after: str, expected: str
) -> None:
    """In New York, clocks change on 8 March and 1 November; times here are in UTC."""
    time = (
        datetime.fromisoformat(after).replace(tzinfo=UTC).astimezone(ZoneInfo("America/New_York"))
    )
    found = parse_schedule(schedule).next_after(time)
    assert found is not None
    assert expected == found.astimezone(UTC).strftime("%Y-%m-%dT%H:%M")


@pytest.mark.parametrize(
    "text", ["", "* * * *", "60 * * * *", "5-1 * * * *", "*/0 * * * *", "x * * * *"]
)
def test_invalid_schedules_are_errors(text: str) -> None:
    """Numbers out of range, unknown names and missing fields."""
    with pytest.raises(ValueError, match=r"."):
        parse_schedule(text)
