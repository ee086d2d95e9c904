"""Renders a report of a simulation over time as one HTML page, light and dark, without scripts."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from typing import Final

from kubesched.simulator.svg import (
    COLOURS,
    Line,
    bar_chart,
    duration,
    line_chart,
    number,
    percent,
)
from kubesched.simulator.timeline_report import Histogram, Series, TimelineReport
from kubesched.simulator.timeline_tables import Table, tables_of, title_of

STYLE: Final = (
    """
:root{color-scheme:light dark;--text:#1b1f24;--dim:#57606a;--back:#fff;--rule:#d8dee4;
--c0:#0969da;--c1:#bc4c00;--c2:#1a7f37;--c3:#8250df;--c4:#9a6700;--c5:#bf3989;--c6:#0f7b8a;--c7:#57606a}
@media(prefers-color-scheme:dark){:root{--text:#e6edf3;--dim:#9198a1;--back:#0d1117;--rule:#30363d;
--c0:#4493f8;--c1:#f0883e;--c2:#3fb950;--c3:#ab7df8;--c4:#d29922;--c5:#db61a2;--c6:#39c5cf;--c7:#9198a1}}
body{font:15px/1.5 system-ui,sans-serif;color:var(--text);background:var(--back);max-width:60rem;
margin:2rem auto;padding:0 1rem}
h1{font-size:1.6rem}h2{font-size:1.15rem;margin-top:2.2rem}
p.dim,figcaption{color:var(--dim)}
.table{overflow-x:auto}
table{border-collapse:collapse;margin:.5rem 0;font-variant-numeric:tabular-nums}
th,td{padding:.2rem .9rem .2rem 0;text-align:right;border-bottom:1px solid var(--rule)}
td{white-space:nowrap}
th:first-child,td:first-child,td.text,th.text{text-align:left}
th{color:var(--dim);font-weight:600}
figure{margin:1rem 0;overflow-x:auto}svg{width:100%;min-width:36rem;height:auto;display:block}
.grid{stroke:var(--rule)}.axis{fill:var(--dim);font-size:11px}
.line{fill:none;stroke-width:1.6}.compared .line.s1{stroke-dasharray:6 4}
.compared .line.s2{stroke-dasharray:2 4}.tip{opacity:0}.tip:hover{opacity:1}
.key{display:inline-block;width:.8em;height:.8em;border-radius:2px;margin:0 .3em 0 1em}
footer{margin-top:3rem;color:var(--dim);font-size:.85rem;overflow-wrap:anywhere}
""".strip()
    + "".join(
        f"\n.line.s{i}{{stroke:var(--c{i})}}.tip.s{i},rect.s{i}{{fill:var(--c{i})}}"
        f".key.s{i}{{background:var(--c{i})}}"
        for i in range(COLOURS)
    )
)


def html_report(report: TimelineReport) -> str:
    """Return the page."""
    title = title_of(report)
    body = [
        f"<h1>{escape(title)}</h1>",
        f'<p class="dim">Seed {report.seed}. Point at a chart to see its numbers.</p>',
    ]
    body += [table_html(table) for table in tables_of(report)]
    body.append(_histogram(report.wait_histogram))
    body += _charts(report.series, report.duration_seconds)
    body.append(
        f"<footer>Decision log: {number(report.decisions)} lines, SHA-256 "
        f"{escape(report.decision_digest)}. The same scenario and seed give the same.</footer>"
    )
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{escape(title)}</title>\n<style>\n{STYLE}\n</style>\n</head>\n<body>\n"
        + "\n".join(body)
        + "\n</body>\n</html>\n"
    )


def table_html(table: Table) -> str:
    """Return a table as HTML."""
    return (
        f'<h2>{escape(table.title)}</h2>\n<div class="table">\n<table>\n<thead><tr>'
        + "".join(_cell("th", text, at, table) for at, text in enumerate(table.columns))
        + "</tr></thead>\n<tbody>\n"
        + "\n".join(
            "<tr>" + "".join(_cell("td", text, at, table) for at, text in enumerate(row)) + "</tr>"
            for row in table.rows
        )
        + "\n</tbody>\n</table>\n</div>"
    )


def _cell(tag: str, text: str, at: int, table: Table) -> str:
    is_text = ' class="text"' if at < table.text_columns else ""
    return f"<{tag}{is_text}>{escape(text)}</{tag}>"


def _histogram(histogram: Histogram) -> str:
    bounds = [duration(bound) for bound in histogram.bounds_seconds]
    names = [f"< {bounds[0]}", *(f"< {bound}" for bound in bounds[1:]), "longer"]
    title = "How long pods waited for a node"
    return figure_html(title, bar_chart(names, histogram.counts, title), ())


def _charts(series: Iterable[Series], span_seconds: float) -> list[str]:
    charts: dict[tuple[str, str], list[Series]] = {}
    for each in series:
        charts.setdefault((each.chart, each.unit), []).append(each)
    return [
        _chart(title, unit, together, span_seconds) for (title, unit), together in charts.items()
    ]


def _chart(title: str, unit: str, together: Sequence[Series], span_seconds: float) -> str:
    lines = [Line(each.name, each.values.means, each.values.width_seconds) for each in together]
    show = percent if unit == "share" else number
    chart = line_chart(lines, span_seconds, f"{title}: {unit} over time", show)
    return figure_html(caption_of(title, unit), chart, [line.name for line in lines])


def caption_of(title: str, unit: str) -> str:
    """Return a chart's caption, with the unit unless the title implies it."""
    is_plain = unit == "share" or title.lower().startswith(unit)
    return title if is_plain else f"{title}, {unit}"


def figure_html(caption: str, chart: str, names: Sequence[str]) -> str:
    """Return a chart with caption and legend as HTML."""
    keys = "".join(
        f'<span class="key s{at % COLOURS}"></span>{escape(name)}' for at, name in enumerate(names)
    )
    return f"<h2>{escape(caption)}</h2>\n<figure>{chart}<figcaption>{keys}</figcaption></figure>"
