"""What a recorder keeps of a simulation, compared with its report."""

from __future__ import annotations

from collections import Counter
from typing import Any

import msgspec
import pytest

from kubesched.plugins.registry import in_tree_registry
from kubesched.simulator.playback import Playback, PlaybackRecorder
from kubesched.simulator.run import simulate
from kubesched.simulator.scenario_loading import load_scenario
from kubesched.simulator.timeline_report import Totals
from tests.simulator.test_run import HARD


def _played(raw: Any) -> tuple[Totals, Playback]:
    recorder = PlaybackRecorder()
    report = simulate(load_scenario(raw), in_tree_registry(), recorder=recorder)
    return report.totals, recorder.playback(report.scenario, report.duration_seconds)


def _scenario(
    at: tuple[str, ...] = ("1m",), burst: int = 8, run_time: str = "20m", **fields: Any
) -> dict[str, Any]:
    """Return a scenario in which so many pods arrive at some times."""
    node = {"name": "node", "count": 2, "allocatable": {"cpu": 4, "memory": "8Gi"}}
    pods = {"at": at, "burst": burst, "runTime": {"fixed": run_time}}
    workload = {"name": "w", "pods": pods, "requests": {"cpu": 1}}
    base = {"version": 1, "duration": "30m", "nodes": [node], "workloads": [workload]}
    return {**base, **fields}


@pytest.mark.slow
def test_rows_of_the_record_add_up_to_the_report() -> None:
    """Under drains, failures, removals, preemption and injected failures."""
    totals, playback = _played(HARD)
    pods = playback.pods
    ends = Counter(playback.pod_ends[end] for end in pods.ends)
    bound = sum(at >= 0 for at in pods.bound)
    found = {
        "bound": bound,
        "finished": ends["finished"],
        "pending": sum(at < 0 and end < 0 for at, end in zip(pods.bound, pods.ended, strict=True)),
        "running": sum(at >= 0 and end < 0 for at, end in zip(pods.bound, pods.ended, strict=True)),
        "restarted": len(playback.restarted),
        "lost": len(playback.lost),
        "nodes": len(playback.nodes.names) - 1,
    }
    assert {name: getattr(totals, name) for name in found} == found
    assert min(ends[end] for end in ("preempted", "drained", "removed")) > 0


def test_pods_have_times_nodes_and_ends() -> None:
    """Eight pods arrive, four are drained and lost, and four finish."""
    event = {"at": "10m", "drain": {"names": ["node-0"]}}
    _, playback = _played(_scenario(events=[event]))
    pods, ends = playback.pods, [playback.pod_ends[end] for end in playback.pods.ends]
    assert [60.0] * 8 == list(pods.arrived)
    assert Counter({("drained", 0): 4, ("finished", 1): 4}) == Counter(
        zip(ends, pods.nodes, strict=True)
    )
    assert {600 <= end < 602 for end, why in zip(pods.ended, ends, strict=True) if why == "drained"}
    assert [row for row, end in enumerate(ends) if end == "drained"] == sorted(playback.lost)
    changes = playback.node_changes
    named = [playback.node_states[state] for state in changes.states]
    assert [(0.0, 0, "ready"), (0.0, 1, "ready"), (600.0, 0, "cordoned")] == list(
        zip(changes.at, changes.nodes, named, strict=True)
    )


def test_each_resource_is_a_column() -> None:
    """Amounts of nodes are in the order of the resources."""
    _, playback = _played(_scenario())
    assert ("cpu", "memory", "pods") == playback.resources
    assert ((4000, 4000), (8 << 30, 8 << 30), (110, 110)) == playback.nodes.allocatable
    assert ("", "") == playback.nodes.zones


def test_pods_belong_to_workloads() -> None:
    """Pods of one owner, priority and shape are one workload; without an owner, `app` counts."""
    deployment = {"name": "d", "deployment": {"replicas": 3}, "requests": {"memory": "1Gi"}}
    pods = {"name": "p", "pods": {"at": ["0s"], "burst": 2}, "requests": {"cpu": 1}}
    _, playback = _played(_scenario(workloads=[deployment, pods]))
    counts = Counter(playback.pods.workloads)
    asked = {
        (one.kind, one.name): (counts[row], one.requests)
        for row, one in enumerate(playback.workloads)
    }
    assert {
        ("ReplicaSet", "d"): (3, {"memory": 1 << 30}),
        ("Pod", "p"): (2, {"cpu": 1000}),
    } == asked


def test_reasons_of_pending_pods() -> None:
    """A reason is kept once while it does not change."""
    _, playback = _played(_scenario(("0s", "1m"), burst=9))
    assert ("Insufficient cpu",) == playback.reasons
    assert list(range(8, 18)) == sorted(playback.pod_reasons.pods)


def test_victims_have_their_preemptor() -> None:
    """The row of a victim has the preemptor's row."""
    classes = [{"name": "high", "value": 10}]
    low = {"at": ["0s"], "burst": 8}
    high = {"at": ["1m"], "burst": 1}
    workloads = [
        {"name": "low", "pods": low, "requests": {"cpu": 1}},
        {"name": "high", "pods": high, "requests": {"cpu": 1}, "priorityClassName": "high"},
    ]
    _, playback = _played(_scenario(workloads=workloads, priorityClasses=classes))
    pods = playback.pods
    assert (8,) == playback.preemptors
    rows = [pods.workloads[row] for row in (playback.preempted[0], 8)]
    assert [("low", 0), ("high", 10)] == [
        (playback.workloads[row].name, playback.workloads[row].priority) for row in rows
    ]
    assert ["preempted"] == [playback.pod_ends[pods.ends[row]] for row in playback.preempted]


@pytest.mark.parametrize(
    ("event", "expected"),
    [
        pytest.param({"fail": {"names": ["node-0"]}}, ["ready", "unreachable"], id="fail"),
        pytest.param({"remove": {"names": ["node-0"]}}, ["ready", "gone"], id="remove"),
        pytest.param(
            {"fail": {"names": ["node-0"], "duration": "1m"}},
            ["ready", "unreachable", "ready"],
            id="recover",
        ),
    ],
)
def test_changes_of_a_node(event: dict[str, Any], expected: list[str]) -> None:
    """They are in the order of time."""
    _, playback = _played(_scenario(events=[{"at": "10m", **event}]))
    changes = playback.node_changes
    found = zip(changes.nodes, changes.states, strict=True)
    assert expected == [playback.node_states[state] for node, state in found if node == 0]


def test_a_record_ends_at_its_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    """It ends when one pod too many arrives, and has nothing later."""
    monkeypatch.setattr("kubesched.simulator.playback.PODS_MAX", 3)
    _, playback = _played(_scenario(("1m", "5m"), 2, "5m"))
    assert (False, 300.0) == (playback.is_whole, playback.end_seconds)
    assert (-1.0, -1.0, -1.0) == playback.pods.ended
    assert 3 == len(playback.pods.names)


def test_recording_changes_no_decision() -> None:
    """The report is the same with and without a recorder."""
    raw = _scenario()
    reports = [
        simulate(load_scenario(raw), in_tree_registry(), recorder=recorder)
        for recorder in (None, PlaybackRecorder())
    ]
    assert msgspec.to_builtins(reports[0]) == msgspec.to_builtins(reports[1])
