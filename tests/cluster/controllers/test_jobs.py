"""Indexes and deadlines of Jobs; what is expected was seen with kube-controller-manager 1.36."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from kubesched.cluster.store import Key
from kubesched.sandbox.pod_reports import RUN_SECONDS
from tests.cluster.sandbox_world import Json, World
from tests.cluster.test_controllers import ONCE, change, controlled, running, status_of, workload

KIND = "jobs.batch"
INDEX = "batch.kubernetes.io/job-completion-index"
FAILURES = "batch.kubernetes.io/job-index-failure-count"


def add_job(world: World, pod: Json = ONCE, seconds: int = 2, **spec: Any) -> None:
    """Create a Job whose pods run for some seconds."""
    kind, job = workload(KIND, pod=pod, **spec)
    job["spec"]["template"]["metadata"]["annotations"] = {RUN_SECONDS: str(seconds)}
    world.client.create(kind, job)


def add_indexed(world: World, completions: int, **spec: Any) -> None:
    """Create an indexed Job whose pods all run at a time."""
    spec = {"completionMode": "Indexed", "parallelism": completions, **spec}
    add_job(world, completions=completions, **spec)


def indexes(pods: list[Json]) -> list[int]:
    """Return the indexes of pods."""
    return sorted(int(pod["metadata"]["labels"][INDEX]) for pod in pods)


def pod_at(world: World, index: int) -> Key:
    """Return the key of the last pod with an index."""
    names = [pod["metadata"]["name"] for pod in world.client.list("pods")]
    return Key("pods", "default", [one for one in names if one.startswith(f"w-{index}-")][-1])


def end_of(world: World) -> tuple[str, str, str]:
    """Return the last condition of the Job."""
    condition = status_of(world, KIND)["conditions"][-1]
    return condition["type"], condition["reason"], condition["message"]


@controlled
async def test_an_indexed_job_has_a_pod_for_each_index(world: World) -> None:
    """Two at a time, the lowest indexes first."""
    add_indexed(world, 5, parallelism=2)
    seen = []
    for _ in range(200):
        await asyncio.sleep(0.1)
        seen += [one for one in [indexes(running(world))] if one and one not in seen]
    status = status_of(world, KIND)
    assert [[0, 1], [2, 3], [4]] == [one for one in seen if len(one) == 2 or one == [4]]
    assert ("0-4", 5) == (status["completedIndexes"], status["succeeded"])
    assert ("Complete", "CompletionsReached") == end_of(world)[:2]
    assert [0, 1, 2, 3, 4] == indexes(world.client.list("pods"))


@controlled
async def test_a_pod_of_an_indexed_job_knows_its_index(world: World) -> None:
    """By its name, host name, label, annotation and the environment of containers."""
    own = {"name": "JOB_COMPLETION_INDEX", "value": "own"}
    containers = [{"name": "c", "image": "i"}, {"name": "d", "image": "i", "env": [own]}]
    init = [{"name": "e", "image": "i", "env": [{"name": "A", "value": "b"}]}]
    add_indexed(world, 2, pod={**ONCE, "containers": containers, "initContainers": init})
    await asyncio.sleep(1)
    [_, pod] = world.client.list("pods")
    metadata, spec = pod["metadata"], pod["spec"]
    assert ("w-1-", "w-1") == (metadata["generateName"], spec["hostname"])
    assert ("1", "1") == (metadata["annotations"][INDEX], metadata["labels"][INDEX])
    reference = {"apiVersion": "v1", "fieldPath": f"metadata.labels['{INDEX}']"}
    added = {"name": "JOB_COMPLETION_INDEX", "valueFrom": {"fieldRef": reference}}
    assert [[added], [own]] == [one["env"] for one in spec["containers"]]
    assert [{"name": "A", "value": "b"}, added] == spec["initContainers"][0]["env"]


@pytest.mark.parametrize(
    ("succeeded", "text"),
    [
        pytest.param([0], "0", id="one"),
        pytest.param([0, 1], "0,1", id="two"),
        pytest.param([1, 2, 3, 5], "1-3,5", id="three-and-one"),
    ],
)
@controlled
async def test_completed_indexes_are_written_as_ranges(
    world: World, succeeded: list[int], text: str
) -> None:
    """Of two neighbours both are written."""
    add_indexed(world, 6, seconds=100)
    await asyncio.sleep(2)
    for index in succeeded:
        world.client.patch_status(pod_at(world, index), {"phase": "Succeeded"})
    await asyncio.sleep(1)
    assert text == status_of(world, KIND)["completedIndexes"]


@controlled
async def test_a_lost_pod_is_replaced_by_one_of_its_index(world: World) -> None:
    """One that has failed, one that is deleted, and one whose index is there twice."""
    add_indexed(world, 3, seconds=100)
    await asyncio.sleep(2)
    world.client.patch_status(pod_at(world, 0), {"phase": "Failed"})
    world.client.delete(pod_at(world, 1))
    twin = world.get("pods", pod_at(world, 2).name)
    metadata = {**twin["metadata"], "name": "twin", "resourceVersion": ""}
    world.client.create("pods", {"metadata": metadata, "spec": twin["spec"]})
    await asyncio.sleep(5)
    assert [0, 1, 2] == indexes(running(world))
    assert 1 == status_of(world, KIND)["failed"]


@controlled
async def test_an_indexed_job_shrinks_to_its_lowest_indexes(world: World) -> None:
    """Pods whose index is too high are deleted, even if they are the oldest."""
    add_indexed(world, 4, seconds=100)
    await asyncio.sleep(2)
    world.client.delete(pod_at(world, 0))
    await asyncio.sleep(3)
    change(world, KIND, completions=2, parallelism=2)
    await asyncio.sleep(3)
    assert [0, 1] == indexes(running(world))
    change(world, KIND, completions=3, parallelism=3)
    await asyncio.sleep(3)
    assert [0, 1, 2] == indexes(running(world))


@pytest.mark.parametrize(
    ("most", "end"),
    [
        pytest.param({}, ("FailedIndexes", "Job has failed indexes"), id="all-have-ended"),
        pytest.param(
            {"maxFailedIndexes": 0},
            (
                "MaxFailedIndexesExceeded",
                "Job has exceeded the specified maximal number of failed indexes",
            ),
            id="too-many",
        ),
    ],
)
@controlled
async def test_an_index_fails_after_its_own_limit(
    world: World, most: Json, end: tuple[str, str]
) -> None:
    """The Job fails when the other indexes have ended, or when too many have failed."""
    add_indexed(world, 3, seconds=4, backoffLimitPerIndex=1, **most)
    await asyncio.sleep(2)
    assert "" == status_of(world, KIND)["failedIndexes"]
    for failures in ("0", "1"):
        key = pod_at(world, 1)
        assert failures == world.get("pods", key.name)["metadata"]["annotations"][FAILURES]
        world.client.patch_status(key, {"phase": "Failed"})
        await asyncio.sleep(1)
    await asyncio.sleep(5)
    status = status_of(world, KIND)
    assert ("1", ("Failed", *end)) == (status["failedIndexes"], end_of(world))
    assert ("0,2" if not most else None) == status.get("completedIndexes")


@pytest.mark.parametrize("is_suspended", [False, True])
@controlled
async def test_a_job_fails_at_its_deadline(world: World, is_suspended: bool) -> None:
    """The time counts from its start or resumption; its pods are deleted and have failed."""
    add_job(world, seconds=100, activeDeadlineSeconds=5, parallelism=2, suspend=is_suspended)
    if is_suspended:
        await asyncio.sleep(8)
        change(world, KIND, suspend=False)
    await asyncio.sleep(3)
    assert 2 == len(running(world))
    await asyncio.sleep(4)
    words = "Job was active longer than specified deadline"
    assert ("Failed", "DeadlineExceeded", words) == end_of(world)
    assert ([], 2) == (world.client.list("pods"), status_of(world, KIND)["failed"])


@controlled
async def test_a_job_that_ends_before_its_deadline_is_complete(world: World) -> None:
    """It stays complete."""
    add_job(world, activeDeadlineSeconds=6)
    await asyncio.sleep(10)
    assert "Complete" == end_of(world)[0]


@pytest.mark.parametrize(
    ("manager", "pods"), [("kubernetes.io/job-controller", 1), ("example.com/queue", 0)]
)
@controlled
async def test_a_job_that_another_controller_manages_is_left_alone(
    world: World, manager: str, pods: int
) -> None:
    """It gets neither pods nor a status."""
    add_job(world, managedBy=manager)
    await asyncio.sleep(1)
    assert pods == len(world.client.list("pods"))
    assert bool(pods) is bool(world.get(KIND, "w").get("status"))
