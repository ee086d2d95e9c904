"""Pods that are rejected again in one step, compared with one attempt after another."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from unittest.mock import patch

import msgspec
import pytest

from kubesched.plugins.registry import in_tree_registry
from kubesched.scheduler.loop import Scheduler
from kubesched.scheduler.repeated_rejections import RepeatedRejections
from kubesched.simulator.run import simulate
from kubesched.simulator.scenario_loading import load_scenario
from kubesched.simulator.timeline_report import TimelineReport
from tests.simulation.scenarios import scenario

_SPREAD = {
    "maxSkew": 1,
    "topologyKey": "topology.kubernetes.io/zone",
    "whenUnsatisfiable": "DoNotSchedule",
    "labelSelector": {"matchLabels": {"app": "spread"}},
}


def _batch(name: str, **more: object) -> dict[str, object]:
    pods = {"perHour": 90, "runTime": {"exponential": "20m"}, "restart": True}
    return {"name": name, "pods": pods, "requests": {"cpu": 1, "memory": "1Gi"}, **more}


def _crowded(seed: int) -> dict[str, Any]:
    """Return a scenario with more pods of several templates than there is room for."""
    return {
        "version": 1,
        "name": "crowded",
        "duration": "40m",
        "seed": seed,
        "nodes": [
            {
                "name": "node",
                "count": 4,
                "allocatable": {"cpu": 8, "memory": "64Gi"},
                "zones": ["a", "b"],
            }
        ],
        "priorityClasses": [{"name": "high", "value": 100}],
        "workloads": [
            _batch("plain"),
            _batch("large", requests={"cpu": 3, "memory": "1Gi"}),
            _batch("high", priorityClassName="high" if seed % 2 else ""),
            _batch(
                "spread",
                labels={"app": "spread"},
                template={"spec": {"topologySpreadConstraints": [_SPREAD]}},
            ),
        ],
        "events": [
            {"at": "20m", "drain": {"count": 2}},
            {"at": "30m", "uncordon": {}},
            {"at": "32m", "fail": {"count": 1, "duration": "5m"}},
            {"at": "35m", "delete": {"count": 10}},
        ],
    }


def _played(values: Mapping[str, Any]) -> tuple[TimelineReport, list[dict[str, Any]]]:
    """Return the report but for its log, and the log's lines but for rejections."""
    lines: list[dict[str, Any]] = []

    def write(line: bytes) -> None:
        found = msgspec.json.decode(line)
        if found["what"] != "rejected":
            lines.append(found)

    # Between two slices other tasks run, and a slice would hold other pods.
    with patch.object(Scheduler, "pods_per_slice", 1_000_000):
        report = simulate(load_scenario(dict(values)), in_tree_registry(), write_decision=write)
    return msgspec.structs.replace(report, decisions=0, decision_digest=""), lines


def _compare(values: Mapping[str, Any]) -> None:
    together = _played(values)
    with patch.object(RepeatedRejections, "carry_out", lambda _self: None):
        one_by_one = _played(values)
    assert one_by_one == together


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(2))
def test_a_crowded_cluster(seed: int) -> None:
    """All figures of the report, and all placements, are those of single attempts."""
    _compare(_crowded(seed))


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(12))
def test_random_scenarios(seed: int) -> None:
    """The same for the scenarios of `make sim`."""
    _compare(scenario(seed, "none"))


def test_attempts_are_fewer_decisions() -> None:
    """In a crowded cluster, most attempts are not decided one by one."""
    values = _crowded(1)
    values["duration"] = "20m"
    report = simulate(load_scenario(values), in_tree_registry())
    assert report.decisions < report.totals.attempts / 2
