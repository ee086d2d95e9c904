"""Recordings of simulated histories, replayed."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from kubesched.app import replay
from kubesched.config.feature_gates import FeatureGates
from kubesched.config.types import Configuration
from kubesched.explain.shadow_report import ReplayReport
from kubesched.inputs.recording_input import RecordingInput
from kubesched.plugins.registry import in_tree_registry, in_tree_setup
from kubesched.scheduler.decision_recorder import DecisionRecorder, RecordedBy
from kubesched.simulator import virtual_loop
from kubesched.simulator.run import simulate
from kubesched.simulator.scenario_loading import load_scenario
from tests.simulation.scenarios import PLANS, scenario
from tests.simulator.clusters import configuration_of

Json = dict[str, Any]

WITHOUT_EXTENDERS = tuple(name for name, faults in PLANS.items() if "extender" not in faults)


def recorded(file: Path, given: Json) -> Path:
    """Simulate a scenario, and return its recording."""
    with file.open("wb") as stream:
        recorder = DecisionRecorder(RecordedBy.SIMULATE, stream.write, lambda item: item)
        simulate(load_scenario(given), in_tree_registry(), checks=False, recording=recorder)
        recorder.end()
    return file


def replayed(
    file: Path,
    configuration: Configuration | None = None,
    may_continue: Callable[[], bool] = lambda: True,
) -> ReplayReport:
    """Replay a recording."""

    async def main() -> ReplayReport:
        gates = FeatureGates()
        with RecordingInput(file) as recording:
            setup = in_tree_setup(gates, configuration)
            recorded_by = recording.header.recorded_by
            assert recorded_by is not None
            return await replay.replayed(recorded_by, setup, 7, recording.events(), may_continue)

    return virtual_loop.run(main())


def configured(**profile: Any) -> Configuration:
    """Return a configuration with one profile."""
    return configuration_of(profiles=[{"schedulerName": "default-scheduler", **profile}])


@pytest.mark.slow
@pytest.mark.parametrize("plan", WITHOUT_EXTENDERS)
@pytest.mark.parametrize("seed", [1, 2])
def test_replaying_a_recording_of_kubesched(seed: int, plan: str, tmp_path: Path) -> None:
    """All decisions are equal, also with failures, evictions and undone bindings."""
    report = replayed(recorded(tmp_path / "run.jsonl", scenario(seed, plan)))
    assert report.judged > 0
    assert (report.judged, 0) == (report.same + report.ties, report.different), report


def small(**fields: Any) -> Json:
    """Return a scenario with a small and a large node, and a pod that fits on both."""
    return {
        "version": 1,
        "duration": "1m",
        "nodes": [
            {"name": name, "count": 1, "allocatable": {"cpu": cpu, "memory": "16Gi"}}
            for name, cpu in (("small", 4), ("large", 8))
        ],
        "workloads": [
            {
                "name": "web",
                "deployment": {"replicas": 1},
                "requests": {"cpu": "1", "memory": "1Gi"},
                **fields,
            }
        ],
    }


def test_another_configuration_differs(tmp_path: Path) -> None:
    """The scores of both nodes are shown by plugin; the recorded decision takes effect."""
    strategy = {"scoringStrategy": {"type": "MostAllocated"}}
    packing = configured(pluginConfig=[{"name": "NodeResourcesFit", "args": strategy}])
    report = replayed(recorded(tmp_path / "run.jsonl", small()), packing)
    (found,) = report.disagreements
    assert (1, 1, 0, 0) == (
        report.judged,
        report.different,
        report.no_longer_placed,
        report.now_placed,
    )
    assert ("large-0", "small-0") == (found.their_node, found.our_node)
    assert "bound to large-0, which scores lower than small-0: " in found.sentence
    assert "NodeResourcesFit" in [each.plugin for each in found.scores]


def test_a_pod_that_would_have_a_node_now(tmp_path: Path) -> None:
    """The plugin that rejected the pod is disabled."""
    large = small(requests={"cpu": "32"})
    plugins = {"filter": {"disabled": [{"name": "NodeResourcesFit"}]}}
    report = replayed(recorded(tmp_path / "run.jsonl", large), configured(plugins=plugins))
    assert (1, 1, 0) == (report.different, report.now_placed, report.no_longer_placed)
    (found,) = report.disagreements
    assert found.sentence.startswith("left pending (0/2 nodes are available: ")
    assert found.sentence.endswith(f"; kubesched chooses {found.our_node}")


def test_partial_searches_are_replayed(tmp_path: Path) -> None:
    """Of 300 nodes half are evaluated, from where the last search ended."""
    many = small()
    many["nodes"] = [{"name": "n", "count": 300, "allocatable": {"cpu": "4", "memory": "16Gi"}}]
    many["workloads"][0]["deployment"]["replicas"] = 9
    profile = {"schedulerName": "default-scheduler", "percentageOfNodesToScore": 50}
    many["scheduler"] = {
        "configuration": {
            "apiVersion": "kubescheduler.config.k8s.io/v1",
            "kind": "KubeSchedulerConfiguration",
            "profiles": [profile],
        }
    }
    report = replayed(
        recorded(tmp_path / "run.jsonl", many), configured(percentageOfNodesToScore=50)
    )
    assert (9, 0, 0) == (report.same + report.ties, report.sampled, report.different)


def test_stopping(tmp_path: Path) -> None:
    """The report is partial."""
    file = recorded(tmp_path / "run.jsonl", small())
    answers = iter([True] * 3 + [False])
    report = replayed(file, may_continue=lambda: next(answers))
    assert (True, 0) == (report.partial, report.judged)
