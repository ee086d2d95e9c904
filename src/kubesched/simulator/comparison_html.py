"""Renders a comparison of simulations over time as one HTML page, with a line per run."""

from __future__ import annotations

import math
from collections.abc import Sequence
from html import escape
from typing import Final

from kubesched.simulator.comparison import TimelineComparison
from kubesched.simulator.html_report import STYLE, caption_of, figure_html, table_html
from kubesched.simulator.svg import Line, duration, line_chart, number, percent
from kubesched.simulator.timeline_report import Series, TimelineReport
from kubesched.simulator.timeline_tables import Table

_CHARTS: Final = ("Pods", "Utilisation", "Fragmentation", "Disruptions")


def comparison_html(comparison: TimelineComparison, reports: Sequence[TimelineReport]) -> str:
    """Return the page; `reports` are the compared reports."""
    title = f"{' and '.join(comparison.runs)}: {duration(comparison.duration_seconds)} simulated"
    rows = tuple((row.name, *row.texts()) for row in comparison.measures)
    body = [
        f"<h1>{escape(title)}</h1>",
        f'<p class="dim">Seed {comparison.seed}. Point at a chart to see its numbers.</p>',
        table_html(Table("Side by side", ("WHAT", *comparison.runs), rows)),
        *_charts(comparison, reports),
    ]
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{escape(title)}</title>\n<style>\n{STYLE}\n</style>\n</head>\n"
        '<body class="compared">\n' + "\n".join(body) + "\n</body>\n</html>\n"
    )


def _charts(comparison: TimelineComparison, reports: Sequence[TimelineReport]) -> list[str]:
    found: dict[tuple[str, str, str], dict[int, Series]] = {}
    for at, report in enumerate(reports):
        for each in report.series:
            if each.chart in _CHARTS:
                found.setdefault((each.chart, each.name, each.unit), {})[at] = each
    span = comparison.duration_seconds
    charts = []
    for (chart, name, unit), by_run in found.items():
        if chart == "Disruptions" and not any(any(each.values.means) for each in by_run.values()):
            continue
        width = min(each.values.width_seconds for each in by_run.values())
        lines = [
            Line(run, _resampled(by_run[at], width, span) if at in by_run else (), width)
            for at, run in enumerate(comparison.runs)
        ]
        caption = caption_of(f"{chart}: {name}", unit)
        show = percent if unit == "share" else number
        drawn = line_chart(lines, span, f"{caption} over time", show)
        charts.append(figure_html(caption, drawn, comparison.runs))
    return charts


def _resampled(series: Series, width_seconds: float, span_seconds: float) -> tuple[float, ...]:
    """Return the values of a series at the middles of bins of another width."""
    values = series.values
    means = values.means
    places = (
        int((i + 0.5) * width_seconds / values.width_seconds)
        for i in range(max(math.ceil(span_seconds / width_seconds), 1))
    )
    return tuple(means[min(at, len(means) - 1)] for at in places)
