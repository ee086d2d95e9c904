"""Results as CSV and Parquet, summaries with intervals, and the journal of finished runs."""

from __future__ import annotations

import io
from pathlib import Path

import polars as pl
import pytest

from kubesched.inputs.errors import UserError
from kubesched.sweep.execution import SweepOutcome
from kubesched.sweep.plan import SweepCell, SweepRun
from kubesched.sweep.results import (
    CellSummary,
    Outcomes,
    SweepJournal,
    SweepMean,
    check_format,
    encoded,
    mean_of,
    run_columns,
    summaries,
    summary_columns,
    t_quantile,
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


def test_a_parameter_may_be_called_like_a_column_of_the_summary() -> None:
    """Its values stay."""
    cells = [CellSummary({"mean": size}, 0, {"bound": mean_of([size + 1.0])}) for size in (1, 2)]
    columns = summary_columns(cells)
    assert ([1, 2], [2.0, 3.0]) == (columns["mean"], columns["figure mean"])


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


# Intervals.


@pytest.mark.parametrize(
    ("freedom", "expected"),
    [(1, 12.706), (2, 4.303), (3, 3.182), (4, 2.776), (9, 2.262), (10, 2.228), (30, 2.042)],
)
def test_quantiles_are_those_of_printed_tables(freedom: int, expected: float) -> None:
    """The column of 95 %, two-sided, of any textbook."""
    assert expected == round(t_quantile(freedom), 3)


def test_many_values_are_as_of_a_normal_distribution() -> None:
    """1.96 is its quantile."""
    assert pytest.approx(1.95996, abs=1e-3) == t_quantile(5_000)


def test_the_interval_of_four_values() -> None:
    """2, 4, 4 and 6: mean 4, variance 8/3, half width 3.182446 * sqrt(8/3) / 2 = 2.598457."""
    found = mean_of([2, 4, 4, 6])
    assert (4, 4.0) == (found.n, found.mean)
    assert pytest.approx(1.6329932) == found.stdev
    assert pytest.approx(2.5984567) == found.half_width


def test_one_value_has_no_interval() -> None:
    """And none has no mean."""
    assert SweepMean(1, 5.0, None, None) == mean_of([5])
    assert SweepMean(0, None, None, None) == mean_of([])


# The journal.


CELL = SweepCell(labels={"input": "a"}, digests={"a.yaml": "1", "b.py": "2"}, read={}, directory="")
OUTCOME = SweepOutcome({"x": 1, "y": 2.5, "z": None}, "", 0.5)


def _run(seed: int, **digests: str) -> SweepRun:
    return SweepRun(
        SweepCell(labels=CELL.labels, digests=CELL.digests | digests, read={}, directory=""), seed
    )


def test_finished_runs_are_there_again(tmp_path: Path) -> None:
    """Equal, types included."""
    SweepJournal(tmp_path / "runs").add(_run(1), OUTCOME)
    journal = SweepJournal(tmp_path / "runs")
    found = journal.outcome(_run(1))
    assert repr(OUTCOME) == repr(found)
    assert journal.outcome(_run(2)) is None


@pytest.mark.parametrize("cut", [2, 20, 90])
def test_truncated_lines_are_ignored(cut: int, tmp_path: Path) -> None:
    """Lines after them count, as after two kills in the middle of a write."""
    file = tmp_path / "runs"
    SweepJournal(file).add(_run(1), OUTCOME)
    for seed in (2, 3):
        SweepJournal(file).add(_run(seed), OUTCOME)
        file.write_bytes(file.read_bytes()[:-cut])
    SweepJournal(file).add(_run(4), OUTCOME)
    journal = SweepJournal(file)
    assert [OUTCOME, None, None, OUTCOME] == [journal.outcome(_run(seed)) for seed in range(1, 5)]


def test_changed_digests(tmp_path: Path) -> None:
    """Each changed, new or missing input has the number of its runs."""
    file = tmp_path / "runs"
    for seed in (1, 2):
        SweepJournal(file).add(_run(seed), OUTCOME)
    runs = [_run(1), _run(2, **{"b.py": "3", "c.py": "4"}), _run(3)]
    journal = SweepJournal(file)
    assert {"b.py": 1, "c.py": 1} == journal.changed(runs)
    assert [OUTCOME, None, None] == [journal.outcome(run) for run in runs]


def test_another_file_is_refused(tmp_path: Path) -> None:
    """And kept."""
    file = tmp_path / "runs"
    file.write_text("a,b\n1,2\n")
    with pytest.raises(UserError, match="it has no finished runs of a sweep; remove it, or name "):
        SweepJournal(file)
    assert "a,b\n1,2\n" == file.read_text()
