from __future__ import annotations

import asyncio
from functools import cache
from random import Random

import pytest
from prometheus_client.parser import text_string_to_metric_families

from kubesched.app.metrics.family import ABSENT, FAMILIES, MetricType
from kubesched.testing.builders import make_node, make_pod
from tests.loops import on_virtual_time

from .scripted import (
    Families,
    families_of,
    measured,
    page_of_recorded_run,
    recorded_families,
    recorded_run,
)

OWN = "scheduler_"
PLUGIN_SECONDS = "scheduler_plugin_execution_duration_seconds"
POINT_SECONDS = "scheduler_framework_extension_point_duration_seconds"
SIGN = tuple(
    sorted({"extension_point": "Sign", "profile": "default-scheduler", "status": "Success"}.items())
)
OTHERWISE = {POINT_SECONDS: {SIGN: "4"}}
"""Values that are not the record's: a template is signed once, and not before its first cycle."""


@cache
def ours() -> Families:
    """Return the families of the page after the recorded run."""
    return families_of(page_of_recorded_run())


def recorded_own() -> list[str]:
    """Return the names of the scheduler's own families in the record."""
    return [name for name in recorded_families() if name.startswith(OWN)]


def test_every_recorded_family_is_there_or_accounted_for() -> None:
    """The scheduler's own families are on the page, or in the table of those that are not."""
    there = {name for name in ours() if name.startswith(OWN)}
    assert set(recorded_own()) - set(ABSENT) == there
    assert not there & set(ABSENT)


def test_families_are_all_of_upstreams() -> None:
    """A family is declared, or absent."""
    assert not FAMILIES.keys() & ABSENT.keys()
    assert set(recorded_own()) <= FAMILIES.keys() | ABSENT.keys()


@pytest.mark.parametrize("name", [name for name in recorded_own() if name not in ABSENT])
def test_family_as_recorded(name: str) -> None:
    """Type, help, label names and bucket bounds are those of kube-scheduler."""
    family, record = ours()[name], recorded_families()[name]
    assert (record["type"], record["help"]) == (family["type"], family["help"])
    assert record.get("buckets", []) == family["buckets"]
    names = {tuple(sorted(series["labels"])) for series in record["series"]}
    assert names == {tuple(label for label, _ in series) for series in family["series"]}


@pytest.mark.parametrize(
    "name", [name for name in recorded_own() if name not in ABSENT and name != PLUGIN_SECONDS]
)
def test_values_as_recorded(name: str) -> None:
    """After the recorded run every counter, gauge and count of observations is as recorded."""
    expected = {
        tuple(sorted(series["labels"].items())): str(series.get("value", series.get("count")))
        for series in recorded_families()[name]["series"]
    }
    assert OTHERWISE.get(name, {}).keys() <= expected.keys()
    assert expected | OTHERWISE.get(name, {}) == ours()[name]["series"]


def test_plugins_are_timed_by_upstreams_labels() -> None:
    """Plugin durations of the record have a counterpart, but for rows."""
    # A filter here answers for all rows at once: its status is that of the best of them.
    recorded = {
        tuple(sorted(series["labels"].items()))
        for series in recorded_families()[PLUGIN_SECONDS]["series"]
        if series["labels"]["extension_point"] != "Filter"
    }
    assert recorded <= set(ours()[PLUGIN_SECONDS]["series"])


def test_declared_families_match_their_kind() -> None:
    """Histograms have bounds in ascending order, others have none; counters end in _total."""
    for family in FAMILIES.values():
        assert (family.kind is MetricType.HISTOGRAM) == bool(family.bounds)
        assert list(family.bounds) == sorted(set(family.bounds))
        assert (family.kind is MetricType.COUNTER) == family.name.endswith("_total")


@on_virtual_time
async def test_first_page_has_what_the_recorded_first_page_has() -> None:
    """Before the first pod the same families are there, all zero."""
    first = {name for name in recorded_families(0) if name.startswith(OWN)}
    # The record's first page has seen nodes and a bound pod come.
    first -= {"scheduler_event_handling_duration_seconds"}
    async with measured() as found:
        page = found.page()
    families = families_of(page)
    assert first == {name for name in families if name.startswith(OWN)}
    for name in first:
        assert {"0"} == set(families[name]["series"].values())


def test_page_is_read_by_prometheus() -> None:
    """prometheus_client's own parser reads the page."""
    read = {each.name for each in text_string_to_metric_families(page_of_recorded_run())}
    assert {name.removesuffix("_total") for name in ours()} == read


@on_virtual_time
async def test_reset_clears_counters_and_keeps_gauges() -> None:
    """DELETE resets counters and histograms, not gauges."""
    async with measured() as found:
        await recorded_run(found)
        found.pages.metrics.reset()
        page = found.page()
    families = families_of(page)
    assert "scheduler_schedule_attempts_total" not in families
    assert {"0"} == set(families["scheduler_plugin_evaluation_total"]["series"].values())
    assert "3" == families["scheduler_cache_size"]["series"][(("type", "nodes"),)]


@on_virtual_time
async def test_counting_goes_on_after_a_reset() -> None:
    """What is observed after a reset is on the page."""
    async with measured() as found:
        found.api.create(make_node("a"), make_pod("p"))
        await asyncio.sleep(1)
        found.pages.metrics.reset()
        found.api.create(make_pod("q"))
        await asyncio.sleep(1)
        page = found.page()
    assert (
        'scheduler_schedule_attempts_total{profile="default-scheduler",result="scheduled"} 1'
        in page
    )
    point = 'extension_point="Filter",profile="default-scheduler",status="Success"'
    assert f"framework_extension_point_duration_seconds_count{{{point}}} 1" in page


@on_virtual_time
async def test_durations_are_the_loops() -> None:
    """A pod's latency is counted from its first attempt, over failed ones."""
    async with measured() as found:
        found.api.create(make_node("small", allocatable={"cpu": "1"}))
        found.api.create(make_pod("p", requests={"cpu": "2"}))
        await asyncio.sleep(5)
        found.api.create(make_node("large", allocatable={"cpu": "4"}))
        await asyncio.sleep(1)
        page = found.page()
    name = "scheduler_pod_scheduling_sli_duration_seconds"
    assert f'{name}_bucket{{attempts="2",le="2.56"}} 0' in page
    assert f'{name}_bucket{{attempts="2",le="5.12"}} 1' in page
    assert 'scheduler_pod_scheduling_attempts_bucket{le="2"} 1' in page


@on_virtual_time
async def test_refused_binding_is_an_error() -> None:
    """An attempt whose binding fails counts as an error, and its undoing is timed."""
    async with measured() as found:
        found.api.refused.add("p")
        found.api.create(make_node("a"), make_pod("p"))
        await asyncio.sleep(0.5)
        page = found.page()
    assert 'schedule_attempts_total{profile="default-scheduler",result="error"} 1' in page
    for point, status in (("Bind", "Error"), ("Unreserve", "Success")):
        labels = f'extension_point="{point}",profile="default-scheduler",status="{status}"'
        assert f"framework_extension_point_duration_seconds_count{{{labels}}} 1" in page


@on_virtual_time
async def test_pod_without_any_node_is_unschedulable() -> None:
    """An empty cluster counts as upstream counts it."""
    expected = 'schedule_attempts_total{profile="default-scheduler",result="unschedulable"} 1'
    async with measured() as found:
        found.api.create(make_pod("p"))
        await asyncio.sleep(0.5)
        page = found.page()
    assert expected in page


@on_virtual_time
async def test_plugins_are_timed_in_a_sample_of_cycles() -> None:
    """About one cycle in ten times its plugins; phases are timed in all of them."""
    async with measured(Random(7).random) as found:
        found.api.create(make_node("a", allocatable={"pods": "500"}), make_node("b"))
        for number in range(100):
            found.api.create(make_pod(f"p{number}"))
        await asyncio.sleep(1)
        page = found.page()
    families = families_of(page)
    plugins = families[PLUGIN_SECONDS]["series"]
    bound = plugins[
        (("extension_point", "Reserve"), ("plugin", "VolumeBinding"), ("status", "Success"))
    ]
    assert 2 <= int(bound) <= 30
    points = families["scheduler_framework_extension_point_duration_seconds"]["series"]
    key = (("extension_point", "Reserve"), ("profile", "default-scheduler"), ("status", "Success"))
    assert "100" == points[key]
