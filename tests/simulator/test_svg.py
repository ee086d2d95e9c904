"""Charts are well-formed, escaped, and say their numbers."""

from __future__ import annotations

from xml.etree import ElementTree as ET

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubesched.simulator.svg import (
    HEIGHT,
    WIDTH,
    Line,
    duration,
    line_chart,
    number,
    percent,
    ticks,
    time_ticks,
)

VALUES = st.lists(st.floats(0, 1e12, allow_subnormal=False), max_size=300)


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        pytest.param(0, "0", id="zero"),
        pytest.param(1234567, "1,234,567", id="whole"),
        pytest.param(0.12345, "0.123", id="small"),
        pytest.param(1234.5, "1,234", id="large"),
    ],
)
def test_number(value: float, expected: str) -> None:
    """Three digits that count, more for whole numbers."""
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
    ],
)
def test_duration(seconds: float, expected: str) -> None:
    """The largest unit that fits."""
    assert expected == duration(seconds)


def test_percent() -> None:
    """Shares are percentages."""
    assert percent(0.123456) == "12.3 %"


@given(st.floats(1e-6, 1e15))
def test_ticks_cover_the_values(highest: float) -> None:
    """A few round steps from 0 to at least the highest value."""
    scale = ticks(highest)
    assert scale[0] == 0
    assert scale[-1] >= highest * (1 - 1e-6)
    assert 2 <= len(scale) <= 7


@given(st.lists(VALUES, max_size=10))
def test_line_charts_are_well_formed(lines: list[list[float]]) -> None:
    """Any values make a picture, within its frame."""
    drawn = [Line(f"<line {i}> & co", tuple(values), 12.0) for i, values in enumerate(lines)]
    root = ET.fromstring(line_chart(drawn, 3600.0, 'a "chart" <of> &'))  # noqa: S314 - our own
    assert root.attrib["aria-label"] == 'a "chart" <of> &'
    for polyline in root.iter("polyline"):
        for point in polyline.attrib["points"].split():
            x, y = map(float, point.split(","))
            assert 0 <= x <= WIDTH
            assert 0 <= y <= HEIGHT


def test_line_charts_say_their_numbers() -> None:
    """Each point has a title, as long as there are not too many."""
    root = ET.fromstring(line_chart([Line("pods", (1.0, 2.5), 60.0)], 120.0, "c"))  # noqa: S314 - our own
    assert ["pods at 30 s: 1", "pods at 1.5 min: 2.5"] == [
        title.text for title in root.iter("title")
    ]
    many = line_chart([Line("pods", tuple(map(float, range(1000))), 0.12)], 120.0, "c")
    assert many.count("<title>") <= 100


@pytest.mark.parametrize(
    ("span", "expected"),
    [
        pytest.param(0.0, [0.0], id="nothing"),
        pytest.param(45.0, [0.0, 10.0, 20.0, 30.0, 40.0], id="seconds"),
        pytest.param(1806.0, [0.0, 600.0, 1200.0, 1800.0], id="minutes"),
        pytest.param(86_400.0, [21_600.0 * i for i in range(5)], id="day"),
        pytest.param(150 * 86_400.0, [50 * 86_400.0 * i for i in range(4)], id="months"),
    ],
)
def test_time_ticks_are_round(span: float, expected: list[float]) -> None:
    """Clocks and calendars have other round numbers than tens."""
    assert expected == time_ticks(span)
