"""Schedules of CronJobs and their times."""

from __future__ import annotations

from datetime import UTC, datetime

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
    "text", ["", "* * * *", "60 * * * *", "5-1 * * * *", "*/0 * * * *", "x * * * *"]
)
def test_invalid_schedules_are_errors(text: str) -> None:
    """Numbers out of range, unknown names and missing fields."""
    with pytest.raises(ValueError, match=r"."):
        parse_schedule(text)
