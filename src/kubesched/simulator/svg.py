"""Line charts as inline SVG, with a tooltip on every mark.

Colours come from the page's style sheet through the classes `s0` to `s7`, so that one chart works
on light and dark pages.

Invariants: all text is escaped; the same values give the same bytes.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from html import escape
from typing import Final

import msgspec

WIDTH: Final = 880
HEIGHT: Final = 240
COLOURS: Final = 8
"""Number of colour classes; further series start over."""

_LEFT, _RIGHT, _TOP, _BOTTOM = 64, 12, 10, 28
_TICKS: Final = 5
_TIPS_MAX: Final = 100
_TIME_TICKS: Final = 6
_NEAR_THE_END: Final = 0.98
# Seconds, minutes, hours, a day.
_TIME_STEPS: Final = (
    *(0.001, 0.01, 0.1, 1.0, 2.0, 5.0, 10.0, 15.0, 30.0),
    *(60.0, 120.0, 300.0, 600.0, 900.0, 1800.0),
    *(3600.0, 7200.0, 10_800.0, 21_600.0, 43_200.0, 86_400.0),
)

Format = Callable[[float], str]


class Line(msgspec.Struct, frozen=True):
    """A line of a chart.

    Attributes:
        name: Name of the line.
        values: One per bin of time.
        width_seconds: The width of a bin; the last is cut off at the end of the chart.
    """

    name: str
    values: tuple[float, ...]
    width_seconds: float

    def middles(self, span_seconds: float) -> list[float]:
        """Return the time in the middle of each bin, in seconds."""
        width = self.width_seconds
        return [
            (at * width + min((at + 1) * width, span_seconds)) / 2 for at in range(len(self.values))
        ]


def number(value: float) -> str:
    """Return a number formatted with three significant digits."""
    if value == int(value) and abs(value) < 1e15:
        return f"{int(value):,}"
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"


def percent(value: float) -> str:
    """Return a share as a percentage."""
    return f"{value * 100:.3g} %"


def duration(seconds: float) -> str:
    """Return a duration in the largest unit of which it has at least one."""
    for unit, size in (("d", 86_400.0), ("h", 3_600.0), ("min", 60.0), ("s", 1.0)):
        if seconds >= size:
            return f"{seconds / size:.3g} {unit}"
    return f"{seconds * 1000:.3g} ms" if seconds else "0 s"


def ticks(highest: float, count: int = _TICKS) -> list[float]:
    """Return round numbers from 0 to at least `highest`, about `count` of them."""
    if not (highest > 0 and math.isfinite(highest)):
        return [0.0, 1.0]
    rough = highest / count
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(factor * power for factor in (1, 2, 2.5, 5, 10) if factor * power >= rough * 0.999)
    return [step * i for i in range(math.ceil(highest / step - 1e-9) + 1)]


def line_chart(
    lines: Sequence[Line], span_seconds: float, label: str, show: Format = number
) -> str:
    """Draw lines over time.

    Args:
        lines: The lines, whose bins lie within the span.
        span_seconds: The length of the time axis.
        label: The accessible description of the chart.
        show: Formats a value.
    """
    scale = ticks(max((max(line.values, default=0.0) for line in lines), default=0.0))
    parts = [_grid(scale, show), _time_axis(span_seconds)]
    for i, line in enumerate(lines):
        parts.append(_line(line, i % COLOURS, scale[-1], span_seconds, show))
    return _svg(parts, label)


def _svg(parts: Sequence[str], label: str) -> str:
    return (
        f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="{escape(label)}">'
        f"{''.join(parts)}</svg>"
    )


def _p(value: float) -> str:
    """Return a coordinate in tenths of a pixel."""
    return f"{value:.1f}".removesuffix(".0")


def _plot_width() -> float:
    return float(WIDTH - _LEFT - _RIGHT)


def _y(value: float, highest: float) -> float:
    height = HEIGHT - _TOP - _BOTTOM
    return HEIGHT - _BOTTOM - height * min(max(value / highest, 0.0), 1.0)


def _grid(scale: Sequence[float], show: Format) -> str:
    return "".join(
        f'<line class="grid" x1="{_LEFT}" x2="{WIDTH - _RIGHT}" y1="{_p(_y(value, scale[-1]))}" '
        f'y2="{_p(_y(value, scale[-1]))}"/>'
        f'<text class="axis" x="{_LEFT - 6}" y="{_p(_y(value, scale[-1]) + 4)}" '
        f'text-anchor="end">{escape(show(value))}</text>'
        for value in scale
    )


def time_ticks(span_seconds: float) -> list[float]:
    """Return at most seven ticks from 0 on at round intervals within the span, in seconds."""
    day = _TIME_STEPS[-1]
    steps = (*_TIME_STEPS, *(day * digit * 10**power for power in range(6) for digit in (2, 5, 10)))
    step = next((step for step in steps if span_seconds / step <= _TIME_TICKS), span_seconds)
    return [step * i for i in range(int(span_seconds / step + 1e-9) + 1)] if step > 0 else [0.0]


def _time_axis(span_seconds: float) -> str:
    """Draw the time axis; a label at the very end is right-aligned."""
    found = []
    for moment in time_ticks(span_seconds):
        place = moment / span_seconds if span_seconds > 0 else 0.0
        anchor = "start" if not place else "end" if place > _NEAR_THE_END else "middle"
        found.append(
            f'<text class="axis" x="{_p(_LEFT + _plot_width() * place)}" y="{HEIGHT - 8}" '
            f'text-anchor="{anchor}">{escape(duration(moment))}</text>'
        )
    return "".join(found)


def _line(line: Line, colour: int, highest: float, span_seconds: float, show: Format) -> str:
    count = len(line.values)
    if not count:
        return ""
    middles = line.middles(span_seconds)
    places = [
        (
            _p(_LEFT + _plot_width() * (at / span_seconds if span_seconds > 0 else 0.0)),
            _p(_y(value, highest)),
        )
        for at, value in zip(middles, line.values, strict=True)
    ]
    points = " ".join(f"{x},{y}" for x, y in places)
    every = math.ceil(count / _TIPS_MAX)
    tips = "".join(
        f'<circle class="tip s{colour}" cx="{places[i][0]}" cy="{places[i][1]}" r="4"><title>'
        f"{escape(line.name)} at {escape(duration(middles[i]))}: "
        f"{escape(show(line.values[i]))}</title></circle>"
        for i in range(0, count, every)
    )
    return f'<polyline class="line s{colour}" points="{points}"/>{tips}'
