"""Numbers as text."""

from __future__ import annotations

import pytest

from kubesched.simulator.timeline_report import duration, number, percent


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        pytest.param(0, "0", id="zero"),
        pytest.param(1234567, "1,234,567", id="whole"),
        pytest.param(0.12345, "0.123", id="small"),
        pytest.param(1234.5, "1,234", id="large"),
    ],
)
def test_numbers_have_three_significant_digits(value: float, expected: str) -> None:
    """Whole numbers may have more."""
    assert expected == number(value)


@pytest.mark.parametrize(
    ("seconds", "expected"),
    [
        pytest.param(0, "0 s", id="zero"),
        pytest.param(0.004, "4 ms", id="milliseconds"),
        pytest.param(59.96, "60 s", id="seconds"),
        pytest.param(90, "1.5 min", id="minutes"),
        pytest.param(7200, "2 h", id="hours"),
        pytest.param(864_000, "10 d", id="days"),
        pytest.param(86_400 * 2_500, "2,500 d", id="years"),
    ],
)
def test_durations_use_the_largest_unit(seconds: float, expected: str) -> None:
    """The number before it is at least one."""
    assert expected == duration(seconds)


def test_percent() -> None:
    """Shares are percentages."""
    assert percent(0.123456) == "12.3 %"
    assert percent(12.3456) == "1,235 %"
