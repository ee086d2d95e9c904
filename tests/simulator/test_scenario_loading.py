"""Scenarios are decoded strictly, and all field errors are reported."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from kubesched.api.field_errors import ConfigError
from kubesched.simulator.scenario import (
    NodeFailure,
    NodeGroup,
    PodArrivals,
    RunTime,
    Scaling,
    Scenario,
    ScenarioDeployment,
    ScenarioEvent,
    ScenarioWorkload,
    Uniform,
)
from kubesched.simulator.scenario_loading import load_scenario

DATA = Path(__file__).parent / "testdata"
HOWTO = Path(__file__).parents[2] / "docs" / "howto" / "simulate-over-time.md"

TEXT = """
version: 1
duration: 2h
nodes:
  - {name: small, count: 2, allocatable: {cpu: 4, memory: 8Gi}, zones: [a, b]}
workloads:
  - name: web
    deployment: {replicas: 2, scale: [{at: 1h, replicas: 3}]}
  - name: batch
    pods: {every: 30s, runTime: {uniform: {min: 1m, max: 1h30m}}}
    requests: {cpu: 500m}
events:
  - {at: 10m, fail: {names: ["small-*"], count: 1, duration: 5m}}
"""


def test_every_field_is_read() -> None:
    """Fields have Kubernetes' names and durations."""
    expected = Scenario(
        version=1,
        duration=7200.0,
        nodes=(
            NodeGroup(
                name="small", count=2, allocatable={"cpu": 4, "memory": "8Gi"}, zones=("a", "b")
            ),
        ),
        workloads=(
            ScenarioWorkload("web", deployment=ScenarioDeployment(2, scale=(Scaling(3600.0, 3),))),
            ScenarioWorkload(
                "batch",
                pods=PodArrivals(every=30.0, run_time=RunTime(uniform=Uniform(60.0, 5400.0))),
                requests={"cpu": "500m"},
            ),
        ),
        events=(ScenarioEvent(at=600.0, fail=NodeFailure(("small-*",), count=1, duration=300.0)),),
    )
    assert expected == load_scenario(TEXT)


def test_the_documented_examples_are_valid() -> None:
    """They are those of the how-to."""
    found = re.findall(r"```yaml\n(.*?)```", HOWTO.read_text(encoding="utf-8"), re.DOTALL)
    assert ["batch and web", "own trace"] == [load_scenario(example).name for example in found]


def _errors(raw: object) -> list[str]:
    with pytest.raises(ConfigError) as caught:
        load_scenario(raw)  # type: ignore[arg-type]  # anything may stand in a file
    return [str(field_error) for field_error in caught.value.errors]


_CASES = yaml.safe_load((DATA / "scenario_errors.yaml").read_text(encoding="utf-8"))


@pytest.mark.parametrize("case", _CASES, ids=lambda case: case["name"])
def test_field_errors_have_path_and_remedy(case: dict[str, Any]) -> None:
    """One case per rule."""
    raw = case["whole"] if "whole" in case else {"version": 1, "duration": "1h", **case["given"]}
    assert case["errors"] == _errors(raw)


def test_all_field_errors_are_reported_at_once() -> None:
    """The error has all of them, not only the first."""
    raw = {
        "version": 1,
        "duration": "soon",
        "nodes": [{"name": "a", "colour": "red"}],
        "workloads": [{"name": "w", "pods": {"every": "1s", "perHour": 3}}],
    }
    paths = [field_error.partition(":")[0] for field_error in _errors(raw)]
    assert paths == ["duration", "nodes[0].colour", "workloads[0].pods.perHour"]


def test_paths_are_relative_to_the_scenario(tmp_path: Path) -> None:
    """They begin in its directory."""
    text = """
version: 1
duration: 1h
objects: [more.yaml]
nodes: [{trace: nodes.csv}]
workloads: [{name: t, trace: {pods: pods.csv}}]
scheduler: {configurationFile: config.yaml}
"""
    path = tmp_path / "scenario.yaml"
    path.write_text(text, encoding="utf-8")
    scenario = load_scenario(path)
    trace = scenario.workloads[0].trace
    assert trace is not None
    found = (
        *scenario.objects,
        scenario.nodes[0].trace,
        trace.pods,
        scenario.scheduler.configuration_file,
    )
    names = ("more.yaml", "nodes.csv", "pods.csv", "config.yaml")
    assert tuple(str(tmp_path / name) for name in names) == found


def test_a_missing_file(tmp_path: Path) -> None:
    """The message names it."""
    with pytest.raises(ConfigError, match=r"none\.yaml: cannot read file"):
        load_scenario(tmp_path / "none.yaml")
