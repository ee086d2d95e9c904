"""Sweep files: seeds, names, and errors."""

from __future__ import annotations

from typing import Any

import pytest

from kubesched.api.field_errors import ConfigError
from kubesched.sweep.spec import load_sweep, named, seeds_of, sweep_errors


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        (3, (1, 2, 3)),
        ("42-44", (42, 43, 44)),
        ("7, 1-2", (7, 1, 2)),
        ("0-0", (0,)),
        ([5, 2], (5, 2)),
    ],
)
def test_seeds(written: Any, expected: tuple[int, ...]) -> None:
    """A number of seeds counts from 1; the order stays."""
    assert expected == seeds_of(written)


@pytest.mark.parametrize("written", [0, -1, "", "a", "5-4", "1,1", "1-9999999999", [], [-1]])
def test_invalid_seeds(written: Any) -> None:
    """Empty, reversed, duplicate and too many seeds."""
    with pytest.raises(ValueError, match=r"seed|range"):
        seeds_of(written)


def test_everything_has_a_name() -> None:
    """Names default to those of files and classes; configurations default to `default`."""
    spec = named(
        load_sweep(
            {
                "version": 1,
                "inputs": [{"files": ["a/day.yaml.gz"]}, {"name": "b", "files": ["x"]}],
                "plugins": [{}, {"plugins": ["m:A", "b.py:B"]}],
            }
        )
    )
    assert ["day", "b"] == [each.name for each in spec.inputs]
    assert ["default"] == [each.name for each in spec.configurations]
    assert ["none", "A,B"] == [each.name for each in spec.plugins]


def test_every_error_is_reported_at_once() -> None:
    """Wrong types, unknown fields, and conflicts between valid fields."""
    raw = {
        "version": 1,
        "input": [],
        "inputs": [{"files": ["a.yaml"]}, {"files": ["b/a.yaml"], "complete": "yes"}],
        "configurations": [
            {"name": "a", "file": "a", "configuration": {"kind": "K"}},
            {"name": "b", "featureGates": {"Nope": True}},
        ],
        "parameters": [
            {"name": "seed", "values": [1, 1], "field": "workloads[0]"},
            {"name": "b", "values": [[2]], "field": "scenario.name"},
        ],
        "seeds": "x",
    }
    with pytest.raises(ConfigError) as refused:
        load_sweep(raw)
    assert [
        "input",
        "inputs[1].complete",
        "inputs[1].name",
        "configurations[0].file",
        "configurations[1].featureGates",
        "parameters[0].name",
        "parameters[0].values[1]",
        "parameters[0].field",
        "parameters[1].values[0]",
        "seeds",
    ] == [error.path for error in refused.value.errors]


def test_a_scenario_is_no_sweep() -> None:
    """The error says how a scenario is swept."""
    with pytest.raises(ConfigError, match="a scenario, not a sweep; name it with --input"):
        load_sweep({"version": 1, "duration": "1h", "nodes": []})


def test_fields_that_a_function_excludes() -> None:
    """A function reads its inputs and chooses its figures itself."""
    raw = {
        "version": 1,
        "inputs": [{"files": ["a"], "times": True}],
        "parameters": [{"name": "b", "values": [1], "field": "scenario.name"}],
        "function": "m:f",
        "figures": ["totals.*"],
        "duration": "1h",
    }
    found = sweep_errors(named(load_sweep(raw)))
    assert ["figures", "duration", "inputs[0].times", "parameters[0].field"] == [
        error.path for error in found
    ]


@pytest.mark.parametrize("raw", [{}, {"version": 2}, {"version": True}, [1]])
def test_another_version_is_refused(raw: Any) -> None:
    """Only the version is reported then."""
    with pytest.raises(ConfigError) as refused:
        load_sweep(raw)
    assert 1 == len(refused.value.errors)
