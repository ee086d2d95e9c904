"""Shows the results of the experiment: a table, and a page with a plot per trace, light and dark.

    kubesched sweep openb.yaml -o results.csv && python report.py results.csv --html report.html

Rejects:  files that are no results of openb.yaml.
"""

import argparse
import csv
import sys
from collections.abc import Sequence
from html import escape
from pathlib import Path
from statistics import fmean, median, quantiles, stdev
from typing import Final, NamedTuple

NAMES: Final = {
    "random": "Random",
    "dot-product": "Dot product",
    "clustering": "Clustering",
    "packing": "Packing",
    "best-fit": "Best fit",
    "fgd": "FGD",
}
_ARRIVING_PERCENT: Final = 130
_SHOWN_AT: Final = (100, 130)
_FROM_PERCENT: Final = 80
_WIDTH, _HEIGHT = 760, 380
_LEFT, _RIGHT, _TOP, _BOTTOM = 56, 104, 12, 46
_LABEL_GAP: Final = 17
_TIP_EVERY: Final = 2
_OTHER: Final = "other"
"""The style of policies that are not the paper's."""


class Run(NamedTuple):
    """A row of the results; `allocated` has percents at 0, 1, ... 130 % arrived."""

    trace: str
    policy: str
    seed: int
    allocated: tuple[float | None, ...]


class ResultsError(ValueError):
    """A file has no results of the experiment."""


def read_runs(path: Path) -> list[Run]:
    """Return the finished runs of a CSV file."""
    columns = ["input", "plugins", "seed", "error"]
    columns += [f"at_{percent}" for percent in range(_ARRIVING_PERCENT + 1)]
    with path.open(newline="", encoding="utf-8") as stream:
        reader = csv.DictReader(stream)
        # A column that is empty in every run is left out.
        if not {*columns[:4], "at_100"} <= {*(reader.fieldnames or ())}:
            raise ResultsError(f"{path}: this has no results of openb.yaml; name its CSV file")
        found = [
            Run(
                row["input"].removeprefix("openb_pod_list_"),
                row["plugins"],
                int(row["seed"]),
                tuple(float(row[name]) if row.get(name) else None for name in columns[4:]),
            )
            for row in reader
            if not row["error"]
        ]
    if not found:
        raise ResultsError(f"{path}: every run has failed; column error has why")
    return found


def published() -> dict[tuple[str, str], dict[int, float]]:
    """Return the published means by trace and policy, in percent at percent arrived."""
    with Path(__file__).with_name("published.csv").open(newline="", encoding="utf-8") as stream:
        return {
            (row["trace"], row["policy"]): {
                int(name.removeprefix("at_")): float(value)
                for name, value in row.items()
                if name.startswith("at_")
            }
            for row in csv.DictReader(stream)
        }


def _by_trace(runs: Sequence[Run]) -> dict[str, dict[str, list[Run]]]:
    found: dict[str, dict[str, list[Run]]] = {}
    for trace in sorted({run.trace for run in runs}):
        for policy in dict.fromkeys([*NAMES, *(run.policy for run in runs)]):
            same = [run for run in runs if (run.trace, run.policy) == (trace, policy)]
            if same:
                found.setdefault(trace, {})[policy] = same
    return found


def _title(policy: str) -> str:
    """Return the name of a policy; one of your own has that of the sweep."""
    return NAMES.get(policy, policy)


class Table(NamedTuple):
    """Means and standard deviations over the seeds, a row per trace and policy."""

    columns: tuple[str, ...]
    rows: list[tuple[str, ...]]


def table(runs: Sequence[Run]) -> Table:
    """Return the table; it has published means if any of its traces has."""
    known = published()
    by_trace = _by_trace(runs)
    compares = any(trace in by_trace for trace, _ in known)
    columns = ["Trace", "Policy", "Runs"]
    for at in _SHOWN_AT:
        columns += [f"At {at} %", "SD", *(["Published", "Difference"] if compares else [])]
    rows = []
    for trace, policies in by_trace.items():
        for policy, same in policies.items():
            cells = [trace, _title(policy), str(len(same))]
            for at in _SHOWN_AT:
                values = [value for run in same if (value := run.allocated[at]) is not None]
                cells += _spread_of(values)
                if compares:
                    cells += _compared(values, known.get((trace, policy), {}).get(at))
            rows.append(tuple(cells))
    return Table(tuple(columns), rows)


def _spread_of(values: Sequence[float]) -> list[str]:
    mean = f"{fmean(values):.2f}" if values else "-"
    return [mean, f"{stdev(values):.2f}" if len(values) > 1 else "-"]


def _compared(values: Sequence[float], expected: float | None) -> list[str]:
    if expected is None or not values:
        return ["-", "-"]
    # Rounded first: a difference of -0.001 is none.
    return [f"{expected:.2f}", f"{round(fmean(values) - expected, 2) + 0.0:+.2f}"]


def text_table(runs: Sequence[Run]) -> str:
    """Return the table as text."""
    columns, found = table(runs)
    rows = [tuple(title.upper() for title in columns), *found]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = [
        "  ".join(
            cell.ljust(width) if at < 2 else cell.rjust(width)
            for at, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    ]
    return "\n".join(lines) + "\n"


_STYLE: Final = (
    """
:root{color-scheme:light dark;--text:#1b1f24;--dim:#57606a;--back:#fff;--rule:#d8dee4;
--random:#6e7781;--dot-product:#bf3989;--clustering:#9a6700;--packing:#1a7f37;--best-fit:#8250df;
--fgd:#0969da;--other:var(--text)}
@media(prefers-color-scheme:dark){:root{--text:#e6edf3;--dim:#9198a1;--back:#0d1117;--rule:#30363d;
--random:#9198a1;--dot-product:#f778ba;--clustering:#d29922;--packing:#3fb950;--best-fit:#ab7df8;
--fgd:#58a6ff}}
body{font:15px/1.5 system-ui,sans-serif;color:var(--text);background:var(--back);max-width:60rem;
margin:2rem auto;padding:0 1rem}
h1{font-size:1.5rem}h2{font-size:1.15rem;margin:2.2rem 0 .4rem}p{max-width:44rem}
.dim{color:var(--dim)}figure{margin:0;overflow-x:auto}
svg{width:100%;min-width:36rem;height:auto;display:block;overflow:visible}
svg text{fill:var(--dim);font:12px system-ui,sans-serif}svg .name{font-weight:600}
.grid{stroke:var(--rule)}.all{stroke:var(--dim);stroke-dasharray:4 4}
.line{fill:none;stroke-width:2;stroke-linejoin:round}.band{opacity:.16}.leader{opacity:.6}
.tip{opacity:0}.tip:hover{opacity:1}
.table{overflow-x:auto}table{border-collapse:collapse;font-variant-numeric:tabular-nums}
th,td{padding:.2rem 1rem .2rem 0;text-align:right;border-bottom:1px solid var(--rule);
white-space:nowrap}th{color:var(--dim);font-weight:600}
th:first-child,td:first-child{text-align:left}
""".strip()
    + "".join(
        f"\n.{name} .line,.{name} .leader{{stroke:var(--{name})}}"
        f".{name} .band,.{name} .tip,svg .{name} .name{{fill:var(--{name})}}"
        for name in (*NAMES, _OTHER)
    )
)


def html_page(runs: Sequence[Run]) -> str:
    """Return a page that needs no other file and no script."""
    title = "GPU allocation while pods arrive"
    seeds = sorted({run.seed for run in runs})
    about = (
        "Pods arrive until they have asked for 130 % of the cluster's GPUs; one that fits nowhere "
        "is dropped. The more of the GPUs a policy allocates, the less it leaves as fragments that "
        "no pod can use. Lines are medians over the seeds, bands hold the middle half of them; on "
        "the dashed line every request is met."
    )
    which = f"{len(runs)} runs, seeds {seeds[0]} to {seeds[-1]}. Point at a line for its values."
    body = [f"<h1>{title}</h1>", f"<p>{about}</p>", f'<p class="dim">{which}</p>']
    columns, rows = table(runs)
    for trace, policies in _by_trace(runs).items():
        body.append(f"<h2>Trace {escape(trace)}</h2>\n{_figure(trace, policies)}")
        body.append(_html_table(columns, [row for row in rows if row[0] == trace]))
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{title}</title>\n<style>\n{_STYLE}\n</style>\n</head>\n<body>\n"
        + "\n".join(body)
        + "\n</body>\n</html>\n"
    )


def _html_table(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return the table of one trace, whose name stands above it."""
    titles = "".join(f"<th>{escape(title)}</th>" for title in columns[1:])
    lines = "".join(
        "<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in row[1:]) + "</tr>\n" for row in rows
    )
    head = f"<thead><tr>{titles}</tr></thead>"
    return f'<div class="table"><table>{head}<tbody>\n{lines}</tbody></table></div>'


class Curve(NamedTuple):
    """A policy's allocation at each percent arrived: lower quartile, median, upper quartile."""

    policy: str
    at: list[int]
    low: list[float]
    middle: list[float]
    high: list[float]


def curve_of(policy: str, runs: Sequence[Run]) -> Curve:
    """Return the curve over the seeds, from the percent on from which it is drawn."""
    found = Curve(policy, [], [], [], [])
    for at in range(_FROM_PERCENT, _ARRIVING_PERCENT + 1):
        values = [value for run in runs if (value := run.allocated[at]) is not None]
        if values:
            low, _, high = quantiles(values, method="inclusive") if len(values) > 1 else values * 3
            for column, value in zip(found[1:], (at, low, median(values), high), strict=True):
                column.append(value)
    return found


class _Scale:
    """Places percentages on the plot."""

    def __init__(self, lowest: float) -> None:
        self.lowest = int(lowest // 5 * 5)

    def x(self, percent: float) -> float:
        share = (percent - _FROM_PERCENT) / (_ARRIVING_PERCENT - _FROM_PERCENT)
        return round(_LEFT + share * (_WIDTH - _LEFT - _RIGHT), 1)

    def y(self, percent: float) -> float:
        share = (percent - self.lowest) / (100 - self.lowest)
        return round(_HEIGHT - _BOTTOM - share * (_HEIGHT - _TOP - _BOTTOM), 1)

    def points(self, at: Sequence[float], values: Sequence[float]) -> list[str]:
        return [f"{self.x(x)},{self.y(y)}" for x, y in zip(at, values, strict=True)]


def _figure(trace: str, policies: dict[str, list[Run]]) -> str:
    curves = [curve_of(policy, runs) for policy, runs in policies.items()]
    curves = [curve for curve in curves if curve.at]
    if not curves:
        return '<p class="dim">No pod arrived.</p>'
    scale = _Scale(min(min(curve.low) for curve in curves))
    parts = [_axes(scale)]
    parts += [_drawn(curve, scale) for curve in curves]
    parts.append(_labels(curves, scale))
    label = f"GPU allocation against arrived GPU requests, trace {trace}; the table has the values"
    return (
        f'<figure tabindex="0"><svg viewBox="0 0 {_WIDTH} {_HEIGHT}" role="img" '
        f'aria-label="{escape(label)}">'
        f"{''.join(parts)}</svg></figure>"
    )


def _axes(scale: _Scale) -> str:
    right, bottom = _WIDTH - _RIGHT, _HEIGHT - _BOTTOM
    step = 5 if scale.lowest >= 60 else 10
    rows = "".join(
        f'<line class="grid" x1="{_LEFT}" x2="{right}" y1="{y}" y2="{y}"/>'
        f'<text x="{_LEFT - 8}" y="{y + 4}" text-anchor="end">{value}</text>'
        for value in range(scale.lowest, 101, step)
        for y in [scale.y(value)]
    )
    columns = "".join(
        f'<text x="{scale.x(value)}" y="{bottom + 18}" text-anchor="middle">{value}</text>'
        for value in range(_FROM_PERCENT, _ARRIVING_PERCENT + 1, 10)
    )
    middle = (_TOP + bottom) / 2
    first = max(_FROM_PERCENT, scale.lowest)
    return (
        f"{rows}{columns}"
        f'<text x="{(_LEFT + right) / 2}" y="{_HEIGHT - 6}" text-anchor="middle">'
        "arrived GPU requests, % of the cluster</text>"
        f'<text transform="translate(14 {middle}) rotate(-90)" text-anchor="middle">'
        "allocated GPUs, %</text>"
        f'<line class="all" x1="{scale.x(first)}" y1="{scale.y(first)}" x2="{scale.x(100)}" '
        f'y2="{scale.y(100)}"><title>every request allocated</title></line>'
    )


def _style_class(policy: str) -> str:
    return policy if policy in NAMES else _OTHER


def _drawn(curve: Curve, scale: _Scale) -> str:
    around = [
        *scale.points(curve.at, curve.low),
        *reversed(scale.points(curve.at, curve.high)),
    ]
    line = scale.points(curve.at, curve.middle)
    title = escape(_title(curve.policy))
    tips = "".join(
        f'<circle class="tip" cx="{scale.x(at)}" cy="{scale.y(value)}" r="4">'
        f"<title>{title}: {value:.2f} % allocated at {at} % arrived</title></circle>"
        for at, value in zip(curve.at[::_TIP_EVERY], curve.middle[::_TIP_EVERY], strict=True)
    )
    return (
        f'<g class="{_style_class(curve.policy)}">'
        f'<polygon class="band" points="{" ".join(around)}"/>'
        f'<polyline class="line" points="{" ".join(line)}"/>{tips}</g>'
    )


def _labels(curves: Sequence[Curve], scale: _Scale) -> str:
    """Name the lines at their ends, apart from each other."""
    ends = sorted((scale.y(curve.middle[-1]), curve) for curve in curves)
    places = spread([y for y, _ in ends], _LABEL_GAP)
    lower = max(_TOP - places[0], 0)
    right = _WIDTH - _RIGHT
    return "".join(
        f'<g class="{_style_class(curve.policy)}"><path class="leader" fill="none" '
        f'd="M{scale.x(curve.at[-1])} {y}L{right + 14} {place + lower}"/>'
        f'<text class="name" x="{right + 18}" y="{place + lower + 4}">'
        f"{escape(_title(curve.policy))}</text></g>"
        for (y, curve), place in zip(ends, places, strict=True)
    )


def spread(places: Sequence[float], gap: float) -> list[float]:
    """Return ascending places at least `gap` apart; those that were closer keep their middle."""
    blocks = [[place] for place in places]
    while True:
        starts = [fmean(block) - gap * (len(block) - 1) / 2 for block in blocks]
        ends = [start + gap * len(block) for start, block in zip(starts, blocks, strict=True)]
        pairs = zip(ends[:-1], starts[1:], strict=True)
        close = [at for at, (end, start) in enumerate(pairs) if end > start]
        if not close:
            return [
                round(start + gap * at, 1)
                for start, block in zip(starts, blocks, strict=True)
                for at in range(len(block))
            ]
        at = close[0]
        blocks[at : at + 2] = [blocks[at] + blocks[at + 1]]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; return its exit code."""
    parser = argparse.ArgumentParser(description="Show the results of the openb experiment.")
    parser.add_argument("results", type=Path, help="the CSV file of kubesched sweep")
    parser.add_argument("--html", type=Path, metavar="FILE", help="write a page with the plots")
    options = parser.parse_args(arguments)
    try:
        runs = read_runs(options.results)
        sys.stdout.write(text_table(runs))
        if options.html:
            options.html.write_text(html_page(runs), encoding="utf-8")
    except (ResultsError, OSError) as error:
        sys.stderr.write(f"report: error: {error}\n")
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
