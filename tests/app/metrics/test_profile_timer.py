from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest

from kubesched.api.core import Pod
from kubesched.simulator.virtual_loop import run
from kubesched.testing.builders import make_node, make_pod
from tests.plugins.volume_objects import claim_volumes

from .scripted import families_of, measured

ATTEMPTS = "scheduler_batch_attempts_total"
HINTS = "scheduler_get_node_hint_duration_seconds"
POINTS = "scheduler_framework_extension_point_duration_seconds"
PLUGINS = "scheduler_plugin_execution_duration_seconds"
GOROUTINES = "scheduler_goroutines"
DIVIDED = {"InterPodAffinity", "PodTopologySpread"}


def series_after(pods: Sequence[Pod], nodes: int = 16, draw: float = 0.0) -> dict[str, Any]:
    """Return the series of each family after placing these pods one by one."""

    async def main() -> str:
        async with measured(lambda: draw) as found:
            found.api.create(*(make_node(f"n{number}") for number in range(nodes)))
            for pod in pods:
                found.api.create(pod)
                await asyncio.sleep(0.1)
            return found.page()

    return {name: family["series"] for name, family in families_of(run(main())).items()}


def of_profile(**labels: str) -> tuple[tuple[str, str], ...]:
    """Return the key of a series of the default profile."""
    return tuple(sorted({"profile": "default-scheduler", **labels}.items()))


def plain(*names: str) -> list[Pod]:
    """Pods of one template."""
    return [make_pod(name, requests={"cpu": "1"}) for name in names]


def spread(name: str) -> Pod:
    """A pod that is spread over hosts."""
    constraint = {
        "maxSkew": 1,
        "topologyKey": "kubernetes.io/hostname",
        "whenUnsatisfiable": "ScheduleAnyway",
        "labelSelector": {"matchLabels": {"app": "a"}},
    }
    return make_pod(name, labels={"app": "a"}, topology_spread_constraints=[constraint])


def lacking_claim(name: str) -> Pod:
    """A pod that VolumeBinding rejects in PreFilter, which only the plain path words."""
    return make_pod(name, volumes=claim_volumes("missing"))


@pytest.mark.parametrize(
    ("pods", "nodes", "expected"),
    [
        pytest.param(plain("a"), 16, {"no_hint": "1"}, id="first of its template"),
        pytest.param(
            plain("a", "b", "c", "d"), 16, {"no_hint": "2", "hint_used": "2"}, id="of one template"
        ),
        pytest.param(
            [*plain("a", "b"), make_pod("c"), *plain("d")],
            16,
            {"no_hint": "3", "hint_used": "1"},
            id="another template in between",
        ),
        pytest.param(
            plain("a", "b", "c"), 3, {"no_hint": "3"}, id="so few nodes that all are asked again"
        ),
        pytest.param(
            [lacking_claim("a"), lacking_claim("b"), lacking_claim("c")],
            16,
            {"no_hint": "2", "hint_not_used": "1"},
            id="left to the plain path",
        ),
    ],
)
def test_batch_attempts(pods: list[Pod], nodes: int, expected: dict[str, str]) -> None:
    """A cycle counts by whether a sibling's answers were there, and whether they did."""
    families = series_after(pods, nodes)
    assert {of_profile(result=name): times for name, times in expected.items()} == families[
        ATTEMPTS
    ]
    hinted = sum(int(times) for name, times in expected.items() if name != "no_hint")
    counts = {"hint": str(hinted), "no_hint": expected["no_hint"]}
    expected_series = {of_profile(hinted=name): n for name, n in counts.items() if n != "0"}
    assert expected_series == families[HINTS]


def test_nominated_pod_gets_no_hint() -> None:
    """A pod with a nominated node tries that one first: nothing is looked up."""
    pods = [*plain("a", "b", "c"), make_pod("d", requests={"cpu": "1"}, nominated_node_name="n1")]
    expected = {of_profile(result="no_hint"): "3", of_profile(result="hint_used"): "1"}
    assert expected == series_after(pods)[ATTEMPTS]


def test_hints_are_forgotten_and_counted_again() -> None:
    """DELETE sets attempts and durations back."""

    async def main() -> tuple[str, str]:
        async with measured() as found:
            found.api.create(*(make_node(f"n{number}") for number in range(16)), *plain("a", "b"))
            await asyncio.sleep(0.1)
            found.pages.metrics.reset()
            between = found.page()
            found.api.create(*plain("c"))
            await asyncio.sleep(0.1)
            return between, found.page()

    between, after = map(families_of, run(main()))
    assert not {ATTEMPTS, HINTS} & set(between)
    assert GOROUTINES not in between
    assert "0" == after[GOROUTINES]["series"][(("operation", "InterPodAffinity"),)]
    assert {of_profile(result="hint_used"): "1"} == after[ATTEMPTS]["series"]
    assert {of_profile(hinted="hint"): "1"} == after[HINTS]["series"]


def test_templates_are_signed_once_whatever_the_sample() -> None:
    """Signing is timed for each template, its plugins too, though no cycle is in the sample."""
    families = series_after([*plain("a", "b"), make_pod("c")], draw=0.9)
    assert "2" == families[POINTS][of_profile(extension_point="Sign", status="Success")]
    signed = {
        dict(key)["plugin"]: (dict(key)["status"], times)
        for key, times in families[PLUGINS].items()
        if dict(key)["extension_point"] == "Sign"
    }
    assert ("Success", "2") == signed["NodeResourcesFit"]
    assert ("Unschedulable", "2") == signed["PodTopologySpread"]
    assert not {"PrioritySort", "DefaultBinder", "SchedulingGates"} & set(signed)
    assert {"Sign"} == {dict(key)["extension_point"] for key in families[PLUGINS]}


@pytest.mark.parametrize(
    ("pods", "expected"),
    [
        pytest.param([], set(), id="no cycle"),
        pytest.param(plain("a"), {"InterPodAffinity"}, id="nothing to spread"),
        pytest.param(
            [spread("a")], {"InterPodAffinity", "PodTopologySpread"}, id="something to spread"
        ),
        pytest.param([lacking_claim("a")], set(), id="rejected before"),
    ],
)
def test_plugins_with_workers(pods: list[Pod], expected: set[str]) -> None:
    """Affinity is always added up, spreading with constraints; no workers during a scrape."""
    running = series_after(pods).get(GOROUTINES, {})
    plugins = {key: times for key, times in running.items() if key[0][1] in DIVIDED}
    assert {(("operation", name),): "0" for name in expected} == plugins
