"""The journal of finished runs: what is cut off, and what has changed."""

from __future__ import annotations

from pathlib import Path

import pytest

from kubesched.inputs.errors import UserError
from kubesched.sweep.execution import SweepOutcome
from kubesched.sweep.plan import SweepCell, SweepRun
from kubesched.sweep.results import SweepJournal

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
