"""What is counted and timed of pod groups, on the page of a running scheduler."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

import pytest
from msgspec.structs import replace

from kubesched.api.core import Node, Pod
from kubesched.api.scheduling import PodGroup
from kubesched.app.metrics.family import FAMILIES, MetricType
from kubesched.config.feature_gates import FeatureGates
from kubesched.simulator.virtual_loop import run
from kubesched.testing.builders import make_node, make_pod
from tests.scheduler.running import GANGS, make_group, make_member

from .scripted import Families, families_of, measured

TOPOLOGY = {**GANGS, "TopologyAwareWorkloadScheduling": True}
ATTEMPTS = "scheduler_podgroup_schedule_attempts_total"
ATTEMPT_SECONDS = "scheduler_podgroup_scheduling_attempt_duration_seconds"
ALGORITHM_SECONDS = "scheduler_podgroup_scheduling_algorithm_duration_seconds"
POINT_SECONDS = "scheduler_framework_extension_point_duration_seconds"
PLUGIN_SECONDS = "scheduler_plugin_execution_duration_seconds"
OWN = {ATTEMPTS, ATTEMPT_SECONDS, ALGORITHM_SECONDS}
MILLISECONDS = [f"{0.001 * 2**at:g}" for at in range(15)]

Item = Node | Pod | PodGroup


def page_after(
    *items: Item, gates: Mapping[str, bool] = GANGS, roll: float = 0.0, seconds: float = 0.3
) -> Families:
    """Return the page some time after objects were created; plugins are timed below 0.1."""

    async def main() -> str:
        async with measured(lambda: roll, FeatureGates(dict(gates))) as found:
            found.api.create(*items)
            await asyncio.sleep(seconds)
            return found.page()

    return families_of(run(main()))


def counts(families: Families, name: str, label: str) -> dict[str, str]:
    """Return the value of a label -> count."""
    series = families[name]["series"] if name in families else {}
    return {dict(labels)[label]: value for labels, value in series.items()}


def node(name: str, zone: str = "a", cpu: int = 2) -> Node:
    """Return a node of a zone."""
    return make_node(name, labels={"zone": zone}, allocatable={"cpu": cpu})


def members(*names: str, priority: int = 9) -> tuple[Pod, ...]:
    """Return pods of the gang that ask for a whole cpu each."""
    return tuple(make_member(name, priority=priority) for name in names)


def bound(name: str, node_name: str) -> Pod:
    """Return a member of the gang that has its node."""
    pod = make_member(name)
    return replace(pod, spec=replace(pod.spec, node_name=node_name))


VICTIM = make_pod("victim", requests={"cpu": "1"}, node_name="n", priority=1)


@pytest.mark.parametrize(
    ("items", "gates", "expected"),
    [
        pytest.param((node("n"), make_group(min_count=2)), GANGS, "scheduled", id="scheduled"),
        pytest.param(
            (node("n", cpu=1), make_group(min_count=2)), GANGS, "unschedulable", id="too small"
        ),
        pytest.param(
            (node("n"), VICTIM, make_group(min_count=2)),
            GANGS,
            "waiting_on_preemption",
            id="has to preempt",
        ),
        pytest.param(
            (
                node("n", zone="a"),
                node("m", zone="b"),
                make_group(min_count=2, key="zone"),
                bound("x", "n"),
                bound("y", "m"),
            ),
            TOPOLOGY,
            "error",
            id="in two zones already",
        ),
    ],
)
def test_a_cycle_of_a_group_counts_once(
    items: tuple[Item, ...], gates: Mapping[str, bool], expected: str
) -> None:
    """It is counted by its result, for any number of pods."""
    page = page_after(*items, *members("p", "q"), gates=gates)
    assert {expected: "1"} == counts(page, ATTEMPTS, "result")
    assert {expected: "1"} == counts(page, ATTEMPT_SECONDS, "result")
    assert {"default-scheduler"} == set(counts(page, ATTEMPTS, "profile"))
    assert {(): "1"} == page[ALGORITHM_SECONDS]["series"]


def test_trials_of_preemption_are_no_attempts() -> None:
    """Preemption for a whole group tries it several times within one cycle."""
    group = make_group(min_count=2, priority=9)
    gates = {**GANGS, "WorkloadAwarePreemption": True}
    page = page_after(node("n"), VICTIM, group, *members("p", "q"), gates=gates)
    assert {"waiting_on_preemption": "1"} == counts(page, ATTEMPTS, "result")
    assert {(): "1"} == page[ALGORITHM_SECONDS]["series"]


def test_single_pods_are_no_group() -> None:
    """A pod that belongs to no group counts as a pod only."""
    page = page_after(node("n"), make_pod("p"))
    assert {"scheduled": "1"} == counts(page, "scheduler_schedule_attempts_total", "result")
    assert {} == counts(page, ATTEMPTS, "result")
    assert {(): "0"} == page[ALGORITHM_SECONDS]["series"]


def test_families_come_with_the_feature() -> None:
    """The families are on the page with GenericWorkload only, as upstream."""
    assert not OWN & set(page_after(node("n"), gates={}))
    page = page_after(node("n"), make_group(min_count=1), *members("p"))
    for name in OWN:
        assert FAMILIES[name].help.startswith("[ALPHA] ")
        assert FAMILIES[name].help == page[name]["help"]
        if FAMILIES[name].kind is MetricType.HISTOGRAM:
            assert [*MILLISECONDS, "+Inf"] == page[name]["buckets"]


def test_placements_are_phases() -> None:
    """To divide the nodes is one, to rate those that are fit another, if there are several."""
    gang = make_group(min_count=2, key="zone")
    page = page_after(node("n"), node("m", zone="b"), gang, *members("p", "q"), gates=TOPOLOGY)
    points = counts(page, POINT_SECONDS, "extension_point")
    assert ("1", "1") == (points["PlacementGenerate"], points["PlacementScore"])
    assert "0" == counts(page, "scheduler_goroutines", "operation")["PlacementScore"]
    page = page_after(node("n"), gang, *members("p", "q"), gates=TOPOLOGY)
    points = counts(page, POINT_SECONDS, "extension_point")
    assert "1" == points["PlacementGenerate"]
    assert "PlacementScore" not in points
    assert "PlacementScore" not in counts(page, "scheduler_goroutines", "operation")


def test_without_topology_there_are_no_placements() -> None:
    """The phase is not timed for a group without topology constraints."""
    page = page_after(node("n"), make_group(min_count=1), *members("p"))
    points = counts(page, POINT_SECONDS, "extension_point")
    assert not {"PlacementGenerate", "PlacementScore"} & set(points)


@pytest.mark.parametrize(
    ("items", "expected"),
    [
        pytest.param((), "Unschedulable", id="no nodes of a zone"),
        pytest.param(
            (node("n"), node("m", zone="b"), bound("x", "n"), bound("y", "m")),
            "Error",
            id="in two zones already",
        ),
    ],
)
def test_a_phase_tells_its_outcome(items: tuple[Item, ...], expected: str) -> None:
    """Nodes that cannot be divided are the status of the phase."""
    gang = make_group(min_count=1, key="zone")
    plain = make_node("plain", labels={"other": "label"})
    page = page_after(plain, *items, gang, *members("p"), gates=TOPOLOGY)
    outcomes = {
        dict(labels)["status"]: value
        for labels, value in page[POINT_SECONDS]["series"].items()
        if dict(labels)["extension_point"] == "PlacementGenerate"
    }
    assert {expected: "1"} == outcomes


def test_plugins_of_placements_are_always_timed() -> None:
    """Outside the sample, and only they."""
    gang = make_group(min_count=2, key="zone")
    items: tuple[Item, ...] = (node("n"), node("m", zone="b"), gang, *members("p", "q"))
    page = page_after(*items, gates=TOPOLOGY, roll=0.9)
    timed = {
        tuple(dict(labels).values()): v for labels, v in page[PLUGIN_SECONDS]["series"].items()
    }
    assert {
        ("PlacementGenerate", "TopologyPlacementGenerator", "Success"): "1",
        ("PlacementScore", "NodeResourcesFit", "Success"): "2",
        ("PlacementScore", "PodGroupPodsCount", "Success"): "2",
        ("PlacementScoreExtensionNormalize", "PodGroupPodsCount", "Success"): "1",
    } == timed
