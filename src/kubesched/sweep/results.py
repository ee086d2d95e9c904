"""The results of a sweep: finished runs in a file, and tables with a row per run, or per cell.

Each run is appended to the file as it ends. A process that is killed while it writes leaves an
incomplete line, which is ignored. A run counts as finished as long as nothing that it depends on
has another digest.

Invariants: rows and columns are in the order of the plan, and times of this machine are left out,
            so the same inputs and seeds give the same bytes.
"""

from __future__ import annotations

import csv
import io
import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from fnmatch import fnmatchcase
from functools import lru_cache
from itertools import groupby
from pathlib import Path
from statistics import fmean, stdev
from typing import Any, Final

import msgspec

from kubesched.inputs.errors import UserError
from kubesched.sweep.execution import SweepOutcome
from kubesched.sweep.figures import Figures
from kubesched.sweep.plan import SweepRun
from kubesched.sweep.spec import ERROR, SEED, Scalar

_CONFIDENCE: Final = 0.95
_BISECTIONS: Final = 60


class SweepMean(msgspec.Struct, frozen=True):
    """The mean of `n` values, one per seed; None where there are too few values.

    `stdev` is that of a sample, `half_width` that of the 95 % confidence interval around the mean.
    """

    n: int
    mean: float | None
    stdev: float | None
    half_width: float | None


def mean_of(values: Sequence[float]) -> SweepMean:
    """Return the mean of independent values, with the interval that a normal distribution gives."""
    n = len(values)
    if n < 2:
        return SweepMean(n, fmean(values) if values else None, None, None)
    deviation = stdev(values)
    return SweepMean(n, fmean(values), deviation, t_quantile(n - 1) * deviation / math.sqrt(n))


@lru_cache(maxsize=64)
def t_quantile(freedom: int) -> float:
    """Return the t that the absolute value exceeds with a probability of 5 %.

    `freedom` is at least 1.
    """
    low, high = 0.0, math.pi / 2
    for _ in range(_BISECTIONS):
        middle = (low + high) / 2
        if _within(middle, freedom) < _CONFIDENCE:
            low = middle
        else:
            high = middle
    return math.tan(high) * math.sqrt(freedom)


def _within(angle: float, freedom: int) -> float:
    """Return the probability that |t| is at most tan(angle) * sqrt(freedom)."""
    squared = math.cos(angle) ** 2
    is_odd = freedom % 2
    term = math.cos(angle) if is_odd else 1.0
    total = term if freedom > 1 else 0.0
    for k in range(2 + is_odd, freedom - 1, 2):
        term *= squared * (k - 1) / k
        total += term
    total *= math.sin(angle)
    return (angle + total) * 2 / math.pi if is_odd else total


# Results.

Columns = dict[str, list[Any]]
"""Values by column; those of a column are of one type, or None."""


class CellSummary(msgspec.Struct, frozen=True):
    """The runs of a cell: the number of those that failed, and the means of figures.

    Texts and figures that no run has are left out.
    """

    labels: dict[str, Scalar]
    failed: int
    means: dict[str, SweepMean]


Outcomes = Sequence[tuple[SweepRun, SweepOutcome]]


def run_columns(outcomes: Outcomes) -> Columns:
    """Return a row per run: labels, seed, error, figures."""
    labels = dict.fromkeys(name for run, _ in outcomes for name in run.cell.labels)
    columns: Columns = {name: [run.cell.labels[name] for run, _ in outcomes] for name in labels}
    columns[SEED] = [run.seed for run, _ in outcomes]
    columns[ERROR] = [outcome.error or None for _, outcome in outcomes]
    for name in _figure_names(outcomes):
        # A function may call a figure like a column that is there already.
        own = f"figure {name}" if name in columns else name
        columns[own] = [outcome.figures.get(name) for _, outcome in outcomes]
    return {name: _of_one_type(values) for name, values in columns.items()}


def _figure_names(outcomes: Outcomes) -> list[str]:
    """Return the figures that at least one run has a value of."""
    figures = [figure for _, outcome in outcomes for figure in outcome.figures.items()]
    there = {name for name, value in figures if value is not None}
    return [name for name in dict.fromkeys(name for name, _ in figures) if name in there]


def _of_one_type(values: list[Any]) -> list[Any]:
    kinds = {type(value) for value in values if value is not None}
    if len(kinds) < 2:
        return values
    convert: Callable[[Any], object] = float if kinds == {int, float} else str
    return [None if value is None else convert(value) for value in values]


def summaries(outcomes: Outcomes, show: Sequence[str]) -> list[CellSummary]:
    """Return a summary per cell, with the figures that match one of `show`; empty for all."""
    names = [
        name
        for name in _figure_names(outcomes)
        if not show or any(fnmatchcase(name, pattern) for pattern in show)
    ]
    found = []
    for _, group in groupby(outcomes, key=lambda pair: pair[0].key[:-1]):
        same = list(group)
        figures = [outcome.figures for _, outcome in same]
        means = {name: mean_of(_numbers(figures, name)) for name in names}
        found.append(
            CellSummary(
                same[0][0].cell.labels,
                sum(bool(outcome.error) for _, outcome in same),
                {name: mean for name, mean in means.items() if mean.n},
            )
        )
    return found


def _numbers(figures: Sequence[Figures], name: str) -> list[float]:
    values = [each.get(name) for each in figures]
    return [float(value) for value in values if isinstance(value, int | float)]


def summary_columns(cells: Sequence[CellSummary]) -> Columns:
    """Return a row per cell and figure: labels, figure, n, mean, deviation, interval, failed."""
    rows = [(cell, name, mean) for cell in cells for name, mean in cell.means.items()]
    labels = dict.fromkeys(name for cell in cells for name in cell.labels)
    columns: Columns = {name: [cell.labels[name] for cell, _, _ in rows] for name in labels}
    own: Columns = {
        "figure": [name for _, name, _ in rows],
        "n": [mean.n for _, _, mean in rows],
        "mean": [mean.mean for _, _, mean in rows],
        "stdev": [mean.stdev for _, _, mean in rows],
        "low": [_bound(mean, -1) for _, _, mean in rows],
        "high": [_bound(mean, 1) for _, _, mean in rows],
        "failed": [cell.failed for cell, _, _ in rows],
    }
    # A parameter may be called like one of these.
    columns |= {f"figure {name}" if name in columns else name: own[name] for name in own}
    return {name: _of_one_type(values) for name, values in columns.items()}


def _bound(mean: SweepMean, sign: int) -> float | None:
    if mean.mean is None or mean.half_width is None:
        return None
    return mean.mean + sign * mean.half_width


# Files.


def _csv(columns: Columns) -> bytes:
    stream = io.StringIO(newline="")
    writer = csv.writer(stream, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows([_text(value) for value in row] for row in zip(*columns.values(), strict=True))
    return stream.getvalue().encode()


def _text(value: object) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    return "" if value is None else str(value)


def _parquet(columns: Columns) -> bytes:
    import polars as pl  # noqa: PLC0415 - optional, and only for these files

    stream = io.BytesIO()
    types = {
        name: pl.Float64
        for name, values in columns.items()
        if all(value is None for value in values)
    }
    pl.DataFrame(columns, schema_overrides=types).write_parquet(stream, statistics=False)
    return stream.getvalue()


FORMATS: Final[Mapping[str, Callable[[Columns], bytes]]] = {".csv": _csv, ".parquet": _parquet}
"""What a file contains, by its ending."""


def check_format(file: Path) -> None:
    """Check that results can be written in the format that the file's ending names.

    Raises UserError, which names the formats that can be written, or what to install.
    """
    if file.suffix not in FORMATS:
        raise UserError(f"{file}: results are written as {' or '.join(FORMATS)}; name such a file")
    if FORMATS[file.suffix] is _parquet:
        try:
            import polars  # noqa: F401, ICN001, PLC0415 - the same
        except ImportError as error:
            words = "Parquet needs polars; run: pip install 'kubesched[sweep]', or write .csv"
            raise UserError(f"{file}: {words}") from error


def encoded(columns: Columns, file: Path) -> bytes:
    """Return the contents of a file, in the format of its ending."""
    return FORMATS[file.suffix](columns)


# Finished runs.


class _Line(msgspec.Struct, frozen=True):
    """A finished run, and the digests of what it depended on."""

    key: tuple[Scalar, ...]
    digests: dict[str, str]
    outcome: SweepOutcome


class SweepJournal:
    """Keeps the outcomes of finished runs."""

    def __init__(self, file: Path) -> None:
        """Read what is there; raises UserError if the file is something else, and OSError."""
        self._file = file
        self._lines: dict[tuple[Scalar, ...], _Line] = {}
        data = file.read_bytes() if file.exists() else b""
        *whole, rest = data.split(b"\n")
        decoder = msgspec.json.Decoder(_Line)
        for text in whole:
            with suppress(msgspec.MsgspecError):
                line = decoder.decode(text)
                self._lines[line.key] = line
        if whole and not self._lines:
            words = "it has no finished runs of a sweep; remove it, or name another file with -o"
            raise UserError(f"{file}: {words}")
        self._is_cut_off = bool(rest)

    def outcome(self, run: SweepRun) -> SweepOutcome | None:
        """Return the outcome of a run, or None if it is not finished."""
        line = self._lines.get(run.key)
        return line.outcome if line and line.digests == run.cell.digests else None

    def changed(self, runs: Iterable[SweepRun]) -> dict[str, int]:
        """Return the inputs that changed after runs finished, with the number of these runs."""
        found: Counter[str] = Counter()
        for run in runs:
            line = self._lines.get(run.key)
            if line is not None:
                own = run.cell.digests
                names = own.keys() | line.digests.keys()
                found.update(name for name in names if own.get(name) != line.digests.get(name))
        return dict(sorted(found.items()))

    def add(self, run: SweepRun, outcome: SweepOutcome) -> None:
        """Append a finished run; raises OSError if the file cannot be written."""
        line = _Line(run.key, run.cell.digests, outcome)
        self._lines[line.key] = line
        with self._file.open("ab") as stream:
            # What was cut off becomes a line of its own.
            stream.write(b"\n" * self._is_cut_off + msgspec.json.encode(line) + b"\n")
        self._is_cut_off = False
