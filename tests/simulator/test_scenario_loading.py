"""Scenarios are decoded strictly, and all field errors are reported."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

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
                name="small",
                count=2,
                allocatable={"cpu": 4, "memory": "8Gi"},
                zones=("a", "b"),
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
    """Those of the how-to."""
    found = re.findall(r"```yaml\n(.*?)```", HOWTO.read_text(encoding="utf-8"), re.DOTALL)
    assert ["batch and web", "own trace"] == [load_scenario(example).name for example in found]


def _errors(raw: object) -> list[str]:
    with pytest.raises(ConfigError) as caught:
        load_scenario(raw)  # type: ignore[arg-type]  # anything may stand in a file
    return [str(field_error) for field_error in caught.value.errors]


def _scenario(**fields: Any) -> dict[str, Any]:
    return {"version": 1, "duration": "1h", **fields}


def _workload(**fields: Any) -> dict[str, Any]:
    return _scenario(workloads=[{"name": "w", **fields}])


@pytest.mark.parametrize(
    ("raw", "errors"),
    [
        pytest.param("[]", ["must be a scenario: a mapping with `version: 1`"], id="no-mapping"),
        pytest.param({}, ["version: Required value: must be 1"], id="no-version"),
        pytest.param(
            {"version": 2, "duration": "1h", "nonsense": 1},
            ['version: Unsupported value: 2: supported values: "1"'],
            id="another-version",
        ),
        pytest.param(
            {"name": "shop", "version": "3.8", "services": {"web": {}}},
            [
                (
                    "this is neither a scenario nor Kubernetes objects, but has services; a "
                    "scenario has `version: 1`, `duration` and `nodes`, objects have `apiVersion` "
                    "and `kind`"
                )
            ],
            id="docker-compose",
        ),
        pytest.param(
            {"name": "shop", "version": 1, "lockfileVersion": 2, "packages": {}},
            [
                (
                    "this is neither a scenario nor Kubernetes objects, but has lockfileVersion "
                    "and packages; a scenario has `version: 1`, `duration` and `nodes`, objects "
                    "have `apiVersion` and `kind`"
                )
            ],
            id="json-of-another-program",
        ),
        pytest.param(
            {"version": "2", "nodes": [], "nods": []},
            ['version: Unsupported value: "2": supported values: "1"'],
            id="a-scenario-with-a-text-as-version",
        ),
        pytest.param({"version": 1}, ["duration: Required value"], id="no-duration"),
        pytest.param(
            {"version": 1, "duration": "-1h"},
            ["duration: Invalid value: -3600.0: must not be negative"],
            id="negative-duration",
        ),
        pytest.param(
            {"version": 1, "duration": "0s"},
            ["duration: Invalid value: 0.0: must be longer than nothing"],
            id="no-time",
        ),
        pytest.param(
            _scenario(nodez=[]),
            ['nodez: unknown field "nodez", did you mean "nodes"?'],
            id="unknown",
        ),
        pytest.param(
            _scenario(nodes=[{"count": 1}]), ["nodes[0].name: Required value"], id="no-node-name"
        ),
        pytest.param(
            _scenario(nodes=[{"name": "a"}, {"name": "a"}]),
            ['nodes[1].name: Duplicate value: "a"'],
            id="node-twice",
        ),
        pytest.param(
            _scenario(nodes=[{"name": "a", "count": -1}]),
            ["nodes[0].count: Invalid value: -1: expected integer >= 0"],
            id="negative-count",
        ),
        pytest.param(
            _scenario(nodes=[{"name": "a", "count": 10_000_001}]),
            ["nodes[0].count: Invalid value: 10000001: expected integer <= 10000000"],
            id="too-many-nodes",
        ),
        pytest.param(
            _scenario(nodes=[{"name": "a", "at": "-5s"}]),
            ["nodes[0].at: Invalid value: -5.0: must not be negative"],
            id="negative-time",
        ),
        pytest.param(
            _scenario(nodes=[{"trace": "nodes.csv", "name": "a"}]),
            ["nodes[0]: Forbidden: a trace says everything about its nodes, except `at`"],
            id="trace-and-name",
        ),
        pytest.param(
            _workload(),
            ["workloads[0]: Required value: one of pods, deployment, daemonSet, trace"],
            id="no-kind-of-workload",
        ),
        pytest.param(
            _workload(deployment={}, daemonSet={}),
            ["workloads[0].daemonSet: Forbidden: there is deployment already, and only one may be"],
            id="two-kinds-of-workload",
        ),
        pytest.param(
            _workload(pods={}),
            ["workloads[0].pods: Required value: one of at, every, perHour"],
            id="no-arrivals",
        ),
        pytest.param(
            _workload(pods={"every": "0s"}),
            ["workloads[0].pods.every: Invalid value: 0: must be longer than nothing"],
            id="every-nothing",
        ),
        pytest.param(
            _workload(pods={"perHour": 1e300}),
            [
                (
                    "workloads[0].pods.perHour: Invalid value: 1e+300: must be at most 3600000000, "
                    "which is one in a microsecond"
                )
            ],
            id="too-often",
        ),
        pytest.param(
            _workload(pods={"every": "1s", "runTime": {}}),
            [
                (
                    "workloads[0].pods.runTime: Required value: one of fixed, exponential, "
                    "uniform, logNormal"
                )
            ],
            id="no-run-time",
        ),
        pytest.param(
            _workload(pods={"every": "1s", "runTime": {"uniform": {"min": "2s", "max": "1s"}}}),
            [
                (
                    "workloads[0].pods.runTime.uniform.max: Invalid value: 1.0: must not be less "
                    "than min"
                )
            ],
            id="uniform-backwards",
        ),
        pytest.param(
            _workload(pods={"every": "1s", "restart": True}),
            ["workloads[0].pods.restart: Forbidden: pods without a runTime have no end to reach"],
            id="restart-for-ever",
        ),
        pytest.param(
            _workload(deployment={}, priorityClassName="high"),
            [
                (
                    'workloads[0].priorityClassName: Unsupported value: "high": supported values: '
                    '"system-cluster-critical", "system-node-critical"'
                )
            ],
            id="unknown-class",
        ),
        pytest.param(
            _scenario(priorityClasses=[{"name": "a", "value": 1, "preemptionPolicy": "Maybe"}]),
            [
                (
                    'priorityClasses[0].preemptionPolicy: Unsupported value: "Maybe": supported '
                    'values: "PreemptLowerPriority", "Never"'
                )
            ],
            id="unknown-policy",
        ),
        pytest.param(
            _scenario(events=[{"at": "1s"}]),
            [
                (
                    "events[0]: Required value: one of drain, cordon, uncordon, remove, fail, "
                    "recover, label, delete"
                )
            ],
            id="no-action",
        ),
        pytest.param(
            _scenario(events=[{"at": "1s", "label": {}}]),
            ["events[0].label: Required value: set or remove"],
            id="no-label",
        ),
        pytest.param(
            _scenario(faults={"bind": {"conflict": 1.5}}),
            ["faults.bind.conflict: Invalid value: 1.5: expected number <= 1.0"],
            id="share",
        ),
        pytest.param(
            _scenario(scheduler={"configuration": {"a": 1}, "configurationFile": "b"}),
            ["scheduler.configurationFile: Forbidden: there is a configuration, too"],
            id="two-configurations",
        ),
        pytest.param(
            _workload(deployment={}, disruptionBudget={"minAvailable": 1, "maxUnavailable": 1}),
            [
                (
                    "workloads[0].disruptionBudget.maxUnavailable: Forbidden: there is "
                    "minAvailable already, and only one may be"
                )
            ],
            id="two-sided-budget",
        ),
        pytest.param(
            _workload(deployment={}, disruptionBudget={"minAvailable": "half"}),
            [
                (
                    'workloads[0].disruptionBudget.minAvailable: Invalid value: "half": must be a '
                    "number of pods, or a percentage"
                )
            ],
            id="strange-budget",
        ),
        pytest.param(
            _workload(
                trace={"pods": "pods.csv"},
                disruptionBudget={"maxUnavailable": 1, "unhealthyPodEvictionPolicy": "Never"},
            ),
            [
                (
                    "workloads[0].disruptionBudget: Forbidden: the pods of a trace have no label "
                    "to select them by"
                ),
                (
                    "workloads[0].disruptionBudget.unhealthyPodEvictionPolicy: Unsupported value: "
                    '"Never": supported values: "IfHealthyBudget", "AlwaysAllow"'
                ),
            ],
            id="budget-of-a-trace",
        ),
        pytest.param(
            _scenario(scheduler={"extenders": [{"urlPrefix": "a"}, {"urlPrefix": "a"}]}),
            ['scheduler.extenders[1].urlPrefix: Duplicate value: "a"'],
            id="extender-twice",
        ),
        pytest.param(
            _scenario(report={"checkEvery": "0s"}),
            ["report.checkEvery: Invalid value: 0: must be longer than nothing"],
            id="check-all-the-time",
        ),
    ],
)
def test_field_errors_have_path_and_remedy(raw: object, errors: list[str]) -> None:
    """One case per rule."""
    assert errors == _errors(raw)


def test_all_field_errors_are_reported_at_once() -> None:
    """Not only the first one."""
    raw = {
        "version": 1,
        "duration": "soon",
        "nodes": [{"name": "a", "colour": "red"}],
        "workloads": [{"name": "w", "pods": {"every": "1s", "perHour": 3}}],
    }
    paths = [field_error.partition(":")[0] for field_error in _errors(raw)]
    assert paths == ["duration", "nodes[0].colour", "workloads[0].pods.perHour"]


@pytest.mark.parametrize(
    ("raw", "words"),
    [
        pytest.param(
            _scenario(nodes=[{"name": "a", "allocatable": {"cpu": "lots"}}]),
            "nodes[0]: ",
            id="quantity",
        ),
        pytest.param(
            _scenario(nodes=[{"name": "a", "taints": [{"key": 5}]}]), "nodes[0]: ", id="taint"
        ),
        pytest.param(
            _workload(deployment={}, template={"spec": {"tolerations": "all"}}),
            "workloads[0]: spec.tolerations: ",
            id="template",
        ),
    ],
)
def test_field_errors_in_templates(raw: object, words: str) -> None:
    """They are those of Kubernetes' types, with the path in the scenario."""
    (field_error,) = _errors(raw)
    assert field_error.startswith(words)


def test_paths_are_relative_to_the_scenario(tmp_path: Path) -> None:
    """To its directory."""
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


@pytest.mark.parametrize(
    ("pods", "errors"),
    [
        pytest.param({"perHour": -3}, ["workloads[0].pods.perHour: Invalid value: -3"], id="one"),
        pytest.param({"at": 3}, ["workloads[0].pods.at: Invalid value: 3"], id="list"),
        pytest.param({}, ["workloads[0].pods: Required value: one of at, every, perHour"], id="no"),
    ],
)
def test_a_wrong_value_is_not_a_missing_field(pods: dict[str, Any], errors: list[str]) -> None:
    """If one of several fields is required."""
    raw = {"version": 1, "duration": "1h", "workloads": [{"name": "w", "pods": pods}]}
    found = _errors(raw)
    assert len(errors) == len(found)
    assert all(error.startswith(begin) for error, begin in zip(found, errors, strict=True))
