"""Disruption budgets in scenarios, for preemption and drains."""

from __future__ import annotations

import json
from typing import Any

import pytest

from kubesched.plugins.registry import in_tree_registry
from kubesched.simulator.run import simulate
from kubesched.simulator.scenario_loading import load_scenario
from kubesched.simulator.timeline_report import TimelineReport


def _played(**fields: Any) -> tuple[TimelineReport, list[dict[str, Any]]]:
    lines: list[bytes] = []
    scenario = {
        "version": 1,
        "duration": "10m",
        "nodes": [{"name": "n", "count": 2, "allocatable": {"cpu": 2}}],
        **fields,
    }
    report = simulate(load_scenario(scenario), in_tree_registry(), write_decision=lines.append)
    return report, [json.loads(line) for line in lines]


def _service(name: str, budget: dict[str, Any] | None) -> dict[str, Any]:
    return {
        "name": name,
        "deployment": {"replicas": 1},
        "requests": {"cpu": 2},
        "disruptionBudget": budget,
    }


@pytest.mark.parametrize(
    ("budgets", "victims"),
    [
        pytest.param(({"minAvailable": 1}, None), "b", id="first-protected"),
        pytest.param((None, {"maxUnavailable": 0}), "a", id="second-protected"),
        pytest.param(({"minAvailable": 1}, {"maxUnavailable": 1}), "b", id="one-can-be-spared"),
    ],
)
def test_preemption_prefers_victims_without_violations(
    budgets: tuple[dict[str, Any] | None, dict[str, Any] | None], victims: str
) -> None:
    """Of two equal victims, the one whose budget allows a disruption."""
    first, second = budgets
    _, decisions = _played(
        priorityClasses=[{"name": "high", "value": 1000}],
        workloads=[
            _service("a", first),
            _service("b", second),
            {
                "name": "urgent",
                "pods": {"at": ["5m"]},
                "requests": {"cpu": 2},
                "priorityClassName": "high",
            },
        ],
    )
    evicted = [each["victims"] for each in decisions if each.get("victims")]
    assert [[f"default/{victims}-00001"]] == evicted


def test_drains_wait_for_replacements() -> None:
    """Both nodes are drained together; the service always has a pod."""
    report, decisions = _played(
        nodes=[
            {"name": "old", "count": 2, "allocatable": {"cpu": 2}},
            {"name": "new", "count": 2, "at": "4m", "allocatable": {"cpu": 2}},
        ],
        workloads=[
            {
                "name": "web",
                "deployment": {"replicas": 2},
                "requests": {"cpu": 2},
                "disruptionBudget": {"maxUnavailable": 1},
            }
        ],
        events=[{"at": "2m", "drain": {"names": ["old-*"]}}],
    )
    assert 0 == report.totals.disrupted
    running = next(each for each in report.series if each.name == "running")
    # From the first minute on one of two is always there.
    assert min(running.values.means[30:]) >= 1
    bound = [each["node"] for each in decisions if each["what"] == "bound"]
    assert ["new-0", "new-1"] == sorted(node for node in bound if node.startswith("new"))


@pytest.mark.parametrize("own", [{}, {"app": "shop", "tier": "web"}])
def test_budgets_are_those_of_the_workloads_pods(own: dict[str, str]) -> None:
    """Also if the pods have another label `app`, which those of other workloads have too."""
    report, _ = _played(
        workloads=[
            {**_service("web", {"minAvailable": 1}), "labels": own},
            {**_service("db", None), "labels": {"app": "shop", "tier": "db"}},
        ],
        events=[{"at": "5m", "drain": {}}],
    )
    assert 1 == report.totals.drained
