"""Figures of reports by their names."""

from __future__ import annotations

import pytest

from kubesched.simulator.report import ResourceUse, SimulationReport, Summary
from kubesched.simulator.timeline_report import TimelineReport
from kubesched.sweep.figures import CLUSTER_FIGURES, SCENARIO_FIGURES, figures_of, unknown_figures

REPORT = SimulationReport(
    partial=False,
    seed=1,
    summary=Summary(5, 3, 2, 0, 0, 0, 0, 0, 6, 2, 2, (ResourceUse("cpu", 8, 0, 4, 0.0, 0.5),)),
    placements=(),
    unplaced=(),
    gated=(),
    ignored=(),
    evictions=(),
    zones=(),
    nodes=(),
    unknown=(),
)


def test_figures_are_selected_by_patterns() -> None:
    """They are in the report's order; elements of lists are named by their resource."""
    patterns = ("summary.resources.*.share*", "summary.p*", "seed")
    assert {
        "seed": 1,
        "summary.pods": 5,
        "summary.placed": 3,
        "summary.resources.cpu.shareBefore": 0.0,
        "summary.resources.cpu.shareAfter": 0.5,
    } == figures_of(REPORT, patterns)


def test_the_defaults_exist() -> None:
    """Each matches a figure of its report."""
    assert {} == unknown_figures(SCENARIO_FIGURES, [TimelineReport])
    assert {} == unknown_figures(CLUSTER_FIGURES, [SimulationReport])


@pytest.mark.parametrize(
    "pattern",
    ["totals.*", "*", "waits.all.p99Seconds", "waits.*.p*", "resources.nvidia.com/gpu.meanShare"],
)
def test_known_figures(pattern: str) -> None:
    """Names of elements are not known before the run."""
    assert {} == unknown_figures([pattern], [TimelineReport])


@pytest.mark.parametrize(
    ("pattern", "hint"),
    [
        ("totals.bounds", "did you mean totals.bound?"),
        ("waits.all.p98Seconds", "did you mean waits.*.p99Seconds?"),
        ("series.cpu.values", "such as scenario"),
    ],
)
def test_figures_that_no_report_has(pattern: str, hint: str) -> None:
    """They are reported before a run begins."""
    assert {pattern: hint} == unknown_figures([pattern], [TimelineReport])
