"""Pods that are rejected together, compared with single attempts."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from typing import Any, TypeVar
from unittest.mock import patch

import msgspec
import pytest

from kubesched.app.decision_ring import DecisionQuery, DecisionRing
from kubesched.plugins.registry import in_tree_registry
from kubesched.scheduler.loop import Scheduler
from kubesched.scheduler.repeated_rejections import RepeatedRejections
from kubesched.simulator.run import simulate
from kubesched.simulator.scenario_loading import load_scenario
from kubesched.simulator.timeline_report import TimelineReport
from kubesched.simulator.virtual_loop import run
from kubesched.testing.builders import make_node, make_pod
from tests.app.metrics.scripted import Families, families_of, measured
from tests.scheduler.running import FakeApi, running
from tests.simulation.scenarios import scenario

T = TypeVar("T")

_SPREAD = {
    "maxSkew": 1,
    "topologyKey": "topology.kubernetes.io/zone",
    "whenUnsatisfiable": "DoNotSchedule",
    "labelSelector": {"matchLabels": {"app": "spread"}},
}


@pytest.fixture(autouse=True)
def _no_slices(monkeypatch: pytest.MonkeyPatch) -> None:
    """Disable slices: other tasks run between two of them, and each slice would have other pods."""
    monkeypatch.setattr(Scheduler, "pods_per_slice", 1_000_000)


def _batch(name: str, **more: object) -> dict[str, object]:
    pods = {"perHour": 90, "runTime": {"exponential": "20m"}, "restart": True}
    return {"name": name, "pods": pods, "requests": {"cpu": 1, "memory": "1Gi"}, **more}


def _crowded(seed: int) -> dict[str, Any]:
    """Return a scenario with more pods of several templates than fit."""
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
    """Return the report without its log, and the log's lines without rejections."""
    lines: list[dict[str, Any]] = []

    def write(line: bytes) -> None:
        found = msgspec.json.decode(line)
        if found["what"] != "rejected":
            lines.append(found)

    report = simulate(load_scenario(dict(values)), in_tree_registry(), write_decision=write)
    return msgspec.structs.replace(report, decisions=0, decision_digest=""), lines


def _one_by_one(observe: Callable[[], T]) -> T:
    with patch.object(RepeatedRejections, "carry_out", lambda _self: None):
        return observe()


def _compare(values: Mapping[str, Any]) -> None:
    assert _one_by_one(lambda: _played(values)) == _played(values)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(2))
def test_rejections_together_change_no_figure(seed: int) -> None:
    """The report and all placements equal those of single attempts."""
    _compare(_crowded(seed))


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(12))
def test_rejections_together_in_random_scenarios(seed: int) -> None:
    """The scenarios are those of `make sim`."""
    _compare(scenario(seed, "none"))


async def _crowd(api: FakeApi) -> None:
    """Create a node and more pods than fit, and let some of them finish."""
    api.create(make_node("n1", allocatable={"cpu": "4", "pods": 100}))
    for number in range(16):
        api.create(make_pod(f"p{number}", uid=f"u{number}", requests={"cpu": "1"}))
    for _ in range(8):
        await asyncio.sleep(1.5)
        api.delete(min(name for name, pod in api.pods.items() if pod.spec.node_name))
    await asyncio.sleep(0.5)


def _records() -> tuple[list[str], list[str]]:
    """Return the events and the last decisions of a crowded cluster."""
    ring = DecisionRing(15, lambda: 0)

    async def main() -> list[str]:
        async with running(observers=(ring,)) as here:
            await _crowd(here.api)
            return here.api.events

    events = run(main())
    kept = [f"{each.pod} {each.outcome} {each.message}" for each in ring.newest(DecisionQuery())]
    return events, [str(ring.recorded), *kept]


def _counts() -> Families:
    """Return the counters of the metrics page of a crowded cluster."""

    async def main() -> str:
        async with measured(draw=lambda: 1.0) as here:
            await _crowd(here.api)
            return here.page()

    found = families_of(run(main()))
    return {name: family for name, family in found.items() if name.startswith("scheduler_")}


def test_each_attempt_has_its_event_and_record() -> None:
    """Events and /debug/decisions equal those of single attempts."""
    assert _one_by_one(_records) == _records()


def test_each_attempt_is_measured() -> None:
    """Counters, and the numbers of measured durations, equal those of single attempts."""
    assert _one_by_one(_counts) == _counts()


def test_equal_pods_are_rejected_in_one_step() -> None:
    """The decision log has one line for them, with their number."""
    values = _crowded(0)
    values["duration"] = "20m"
    lines: list[dict[str, Any]] = []
    report = simulate(
        load_scenario(values),
        in_tree_registry(),
        write_decision=lambda line: lines.append(msgspec.json.decode(line)),
    )
    decided = [each for each in lines if each["what"] in {"placed", "rejected"}]
    assert report.totals.attempts == sum(1 + each.get("followers", 0) for each in decided)
    assert len(decided) < report.totals.attempts / 2
