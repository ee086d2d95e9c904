"""The report of a simulation over time as text."""

from __future__ import annotations

import pytest

from kubesched.cli.output import Writer
from kubesched.cli.timeline import _write
from kubesched.simulator.timeline_report import (
    Histogram,
    MoveCount,
    ResourceReport,
    TimelineReport,
    Totals,
    WaitReport,
)


def _report(**parts: object) -> TimelineReport:
    empty: dict[str, object] = dict.fromkeys(TimelineReport.__struct_fields__, ())
    head = {"scenario": "night", "seed": 1, "partial": False, "duration_seconds": 7200.0}
    counts = {"totals": Totals(lost=1234), "wait_histogram": Histogram((), (0,))}
    numbers = {"relists": 0, "checks": 3, "decisions": 4, "decision_digest": "00ff"}
    fields: dict[str, object] = {**empty, **head, **counts, **numbers, **parts}
    return TimelineReport(**fields)  # type: ignore[arg-type]  # checked by name only


def test_totals(capsys: pytest.CaptureFixture[str]) -> None:
    """Totals always follow the headline; tables without rows are left out."""
    _write(Writer(), _report(partial=True))
    lines = capsys.readouterr().out.splitlines()
    head = "night: 2 h simulated before it was interrupted, seed 1"
    assert [head, "", "Totals"] == lines[:3]
    assert "pods lost: stopped before their end, and not created again  1,234" in lines
    assert "times all invariants were checked" == lines[-1].rpartition("  ")[0].strip()


def test_tables(capsys: pytest.CaptureFixture[str]) -> None:
    """Texts are aligned to the left, numbers to the right, and absent ones are dashes."""
    waits = WaitReport("all", 2, 1, 1, 0, 90.0, 90.0, 90.0, 90.0, 90.0, 2.5)
    none = WaitReport("5", 0, 0, 0, 0, None, None, None, None, None, 0.0)
    resources = ResourceReport("cpu", None, 0.5, 0.25, 0.125)
    moves = MoveCount("", "Active", "UnschedulablePodAdd", 2)
    _write(Writer(), _report(waits=(waits, none), resources=(resources,), moves=(moves,)))
    expected = """\
From creation to binding, by priority
PRIORITY  ARRIVED  BOUND  PENDING  PREEMPTED     MEAN      P50      P90      P99      MAX  \
POD HOURS PENDING
all             2      1        1          0  1.5 min  1.5 min  1.5 min  1.5 min  1.5 min  \
              2.5
5               0      0        0          0        -        -        -        -        -  \
                0

Requested of allocatable
RESOURCE  MEAN  PEAK  AT THE END  FRAGMENTED
cpu          -  50 %        25 %      12.5 %

Moves in the queue
FROM  TO      EVENT                COUNT
-     Active  UnschedulablePodAdd      2
"""
    written = capsys.readouterr().out
    assert expected == written[written.index("From creation") :]
