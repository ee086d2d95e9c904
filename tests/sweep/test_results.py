"""Results as CSV and Parquet, and summaries."""

from __future__ import annotations

import io
from pathlib import Path

import polars as pl
import pytest

from kubesched.inputs.errors import UserError
from kubesched.sweep.execution import SweepOutcome
from kubesched.sweep.plan import SweepCell, SweepRun
from kubesched.sweep.results import (
    Outcomes,
    check_format,
    encoded,
    run_columns,
    summaries,
    summary_columns,
)


def _outcomes() -> Outcomes:
    found = []
    for load in (1, 2):
        labels: dict[str, str | int | float | bool] = {"input": "a", "load": load}
        cell = SweepCell(labels=labels, digests={}, read={}, directory="")
        for seed in (1, 2, 3):
            figures = {"bound": seed * load, "wait": 0.5 * (seed - 1) or None, "digest": f"d{seed}"}
            found.append((SweepRun(cell, seed), SweepOutcome(figures, "", 1.0)))
    failed = SweepOutcome({}, 'plugin "Mine" raised, badly', 1.0)
    return [*found[:-1], (found[-1][0], failed)]


def test_csv_has_a_row_per_run() -> None:
    """Texts with commas are quoted; what is missing is empty; times are left out."""
    lines = encoded(run_columns(_outcomes()), Path("a.csv")).decode().splitlines()
    assert [
        "input,load,seed,error,bound,wait,digest",
        "a,1,1,,1,,d1",
        "a,1,2,,2,0.5,d2",
        "a,1,3,,3,1.0,d3",
        "a,2,1,,2,,d1",
        "a,2,2,,4,0.5,d2",
        'a,2,3,"plugin ""Mine"" raised, badly",,,',
    ] == lines


def test_parquet_has_the_same_and_keeps_types() -> None:
    """Both files are read as equal tables, and are the same bytes each time."""
    for columns in (run_columns(_outcomes()), summary_columns(summaries(_outcomes(), []))):
        data = encoded(columns, Path("a.parquet"))
        assert data == encoded(columns, Path("a.parquet"))
        table = pl.read_parquet(io.BytesIO(data))
        read = pl.read_csv(encoded(columns, Path("a.csv")), schema=table.schema)
        assert table.equals(read, null_equal=True)
        assert columns == table.to_dict(as_series=False)
    assert (
        pl.Int64
        == pl.read_parquet(io.BytesIO(encoded(run_columns(_outcomes()), Path("a.parquet")))).schema[
            "bound"
        ]
    )


def test_a_summary_has_the_mean_of_each_cell_and_figure() -> None:
    """Texts have none, and a failed run does not count."""
    columns = summary_columns(summaries(_outcomes(), []))
    assert ["bound", "wait"] * 2 == columns["figure"]
    assert [3, 2, 2, 1] == columns["n"]
    assert [2.0, 0.75, 3.0, 0.5] == columns["mean"]
    assert [0, 0, 1, 1] == columns["failed"]
    # t(2) = 4.302653, and the deviation of 1, 2, 3 is 1.
    assert pytest.approx(2 - 4.302653 / 3**0.5) == columns["low"][0]
    assert pytest.approx(2 + 4.302653 / 3**0.5) == columns["high"][0]
    assert columns["low"][3] is None


def test_figures_to_show_are_patterns() -> None:
    """The others are left out of the summary."""
    assert [{"wait"}] * 2 == [cell.means.keys() for cell in summaries(_outcomes(), ["w*"])]


def test_numbers_of_two_types_are_of_the_wider_one() -> None:
    """A column is of one type in both formats."""
    cell = SweepCell(labels={"input": "a"}, digests={}, read={}, directory="")
    values: list[tuple[float, int | str]] = [(1, 1), (2.5, "b")]
    outcomes = [
        (SweepRun(cell, seed), SweepOutcome({"x": x, "y": y}, "", 0.0))
        for seed, (x, y) in enumerate(values)
    ]
    columns = run_columns(outcomes)
    assert ([1.0, 2.5], ["1", "b"]) == (columns["x"], columns["y"])


def test_other_formats_are_refused() -> None:
    """The message names those that there are."""
    with pytest.raises(UserError, match=r"a.xlsx: results are written as .csv or .parquet"):
        check_format(Path("a.xlsx"))
