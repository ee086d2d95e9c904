"""Single runs: figures, errors, and files that are not those of the plan."""

from __future__ import annotations

from pathlib import Path

import pytest

from kubesched.sweep.execution import InputChangedError, carry_out
from kubesched.sweep.plan import SweepRun

from .sweeps import CLUSTER, RAISING, SCENARIO, SWEEP, planned, write

FUNCTION = """
    import math

    def run(case):
        if case.seed == 3:
            raise ValueError("three is too many")
        return {"nodes": case.files[0].name, "seed": case.seed, "none": math.nan,
                "load": case.parameters["load"], "list": [] if case.seed == 4 else None}
"""
OF_FUNCTION = """
    version: 1
    inputs: [{files: [day.yaml]}]
    parameters: [{name: load, values: [5]}]
    function: "functions:run"
    seeds: 4
"""


def test_a_scenario_is_simulated_with_the_seed(tmp_path: Path) -> None:
    """The same run gives the same figures, and another seed others."""
    write(tmp_path, day=SCENARIO, sweep=SWEEP)
    first, other = planned(tmp_path).runs()[:2]
    found = carry_out(first)
    assert "" == found.error
    assert found.figures == carry_out(first).figures
    assert found.figures != carry_out(other).figures


def test_the_pods_of_a_cluster_are_placed(tmp_path: Path) -> None:
    """As `kubesched simulate` does."""
    write(
        tmp_path,
        prod=CLUSTER,
        sweep="version: 1\ninputs: [{files: [prod.yaml]}]\nfigures: [summary.p*]\n",
    )
    (run,) = planned(tmp_path).runs()
    assert {"summary.pods": 1, "summary.placed": 1} == carry_out(run).figures


def test_a_plugin_that_raises_is_an_outcome(tmp_path: Path) -> None:
    """The outcome has the plugin's name, file and line."""
    write(
        tmp_path, day=SCENARIO, mine=RAISING, sweep=f"{SWEEP}plugins: [{{plugins: [mine.py:Mine]}}]"
    )
    found = carry_out(planned(tmp_path).runs()[0])
    assert {} == found.figures
    words = "plugin Mine raised in Filter for pod default/job-0: KeyError: 'gpu'"
    assert f"{words} (mine.py:6, in Mine.filter)" == found.error


def test_functions(tmp_path: Path) -> None:
    """Exceptions and invalid figures are outcomes; a figure that is not a number is missing."""
    write(tmp_path, day=SCENARIO, functions=FUNCTION, sweep=OF_FUNCTION)
    found = [carry_out(run) for run in planned(tmp_path).runs()]
    expected = {"nodes": "day.yaml", "seed": 1, "none": None, "load": 5, "list": None}
    assert expected == found[0].figures
    assert ["", "ValueError: three is too many"] == [each.error for each in found[1:3]]
    assert "TypeError: figure list is of type list, not a number or text" == found[3].error


def test_a_file_that_has_changed_since_the_plan_is_noticed(tmp_path: Path) -> None:
    """A run with it would not be the one that was planned."""
    write(tmp_path, prod=CLUSTER, sweep="version: 1\ninputs: [{files: [prod.yaml]}]\n")
    (cell,) = planned(tmp_path).cells
    write(tmp_path, prod=f"{CLUSTER}# changed\n")
    with pytest.raises(InputChangedError, match=r"prod.yaml on .*: \w{16}, expected \w{16}"):
        carry_out(SweepRun(cell, 1))
