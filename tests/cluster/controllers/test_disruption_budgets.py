"""Disruption budgets: their status, evictions and drains."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from msgspec.structs import replace

from kubesched.api.apps import ReplicaSet, ReplicaSetSpec
from kubesched.api.core import Pod, PodTemplateSpec
from kubesched.api.errors import ApiError, TooManyRequestsError
from kubesched.api.meta import LabelSelector, ObjectMeta, controller_of
from kubesched.api.policy import (
    PodDisruptionBudget,
    PodDisruptionBudgetSpec,
    PodDisruptionBudgetStatus,
)
from kubesched.simulator.node_life import evict
from kubesched.simulator.world import World
from kubesched.testing.builders import make_node, make_pod
from tests.simulator.worlds import in_world


def _budget(world: World, **spec: Any) -> None:
    spec.setdefault("selector", LabelSelector(match_labels={"app": "web"}))
    world.server.create(
        PodDisruptionBudget(
            metadata=ObjectMeta(name="web", namespace="default"),
            spec=PodDisruptionBudgetSpec(**spec),
        )
    )


def _status(world: World) -> PodDisruptionBudgetStatus:
    return world.server.all(PodDisruptionBudget)[0].status


def _numbers(world: World) -> tuple[int, int, int, int]:
    """Return expected, desired and healthy pods, and allowed disruptions."""
    status = _status(world)
    return (
        status.expected_pods,
        status.desired_healthy,
        status.current_healthy,
        status.disruptions_allowed,
    )


def _web(world: World, count: int, node: str = "node-1") -> list[Pod]:
    """Create bound pods without a controller."""
    pods = []
    first = int(asyncio.get_running_loop().time())
    for number in range(first, first + count):
        pod = world.server.create(make_pod(f"web-{number}", uid="", labels={"app": "web"}))
        pods.append(world.server.bind("default", pod.metadata.name, pod.metadata.uid, node))
    return pods


def _replica_set(world: World, replicas: int) -> None:
    template = PodTemplateSpec(metadata=ObjectMeta(labels={"app": "web"}))
    world.server.create(
        ReplicaSet(
            metadata=ObjectMeta(name="web", namespace="default"),
            spec=ReplicaSetSpec(replicas=replicas, template=template),
        )
    )


def _bind_all(world: World, node: str) -> None:
    """Bind all pods, in place of a scheduler."""
    for pod in world.server.all(Pod):
        if not pod.spec.node_name:
            metadata = pod.metadata
            world.server.bind(metadata.namespace, metadata.name, metadata.uid, node)


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        pytest.param({"min_available": 3}, (4, 3, 4, 1), id="min"),
        pytest.param({"min_available": 5}, (4, 5, 4, 0), id="min-too-many"),
        pytest.param({"min_available": "30%"}, (4, 2, 4, 2), id="min-percent-rounds-up"),
        pytest.param({"max_unavailable": 1}, (4, 3, 4, 1), id="max"),
        pytest.param({"max_unavailable": 9}, (4, 0, 4, 4), id="max-more-than-all"),
        pytest.param({"max_unavailable": "30%"}, (4, 2, 4, 2), id="max-percent-rounds-up"),
        pytest.param({"max_unavailable": "0%"}, (4, 4, 4, 0), id="max-none"),
    ],
)
@in_world
async def test_status_of_a_budget_for_a_replica_set(
    world: World, spec: dict[str, Any], expected: tuple[int, ...]
) -> None:
    """Of four pods: expected, desired, healthy, allowed."""
    _replica_set(world, 4)
    await asyncio.sleep(1)
    _bind_all(world, "node-1")
    _budget(world, **spec)
    await asyncio.sleep(10)
    assert expected == _numbers(world)
    assert 1 == _status(world).observed_generation
    reason = "SufficientPods" if expected[3] else "InsufficientPods"
    assert [reason] == [condition.reason for condition in _status(world).conditions]


@in_world
async def test_missing_and_pending_pods_are_not_healthy(world: World) -> None:
    """Both are expected."""
    _budget(world, max_unavailable=1)
    _replica_set(world, 4)
    await asyncio.sleep(10)
    assert (4, 3, 0, 0) == _numbers(world)
    _bind_all(world, "node-1")
    await asyncio.sleep(10)
    assert (4, 3, 4, 1) == _numbers(world)


@in_world
async def test_a_budget_without_pods_allows_nothing(world: World) -> None:
    """Not even if no pod is desired."""
    _budget(world, min_available=0)
    await asyncio.sleep(10)
    assert (0, 0, 0, 0) == _numbers(world)


@in_world
async def test_a_budget_on_pods_without_a_scale_allows_nothing(world: World) -> None:
    """A Job has none, so a percentage of its pods is unknown."""
    template = PodTemplateSpec(metadata=ObjectMeta(labels={"app": "web"}))
    world.workloads.add_run("web", "default", template, "web-0")
    _bind_all(world, "node-1")
    _budget(world, max_unavailable=1)
    await asyncio.sleep(10)
    (condition,) = _status(world).conditions
    assert ("False", "SyncFailed") == (condition.status, condition.reason)
    assert 'found no controllers for pod "web-0-1"' == condition.message
    assert 0 == _status(world).disruptions_allowed


@in_world
async def test_evictions_update_the_budget_at_once(world: World) -> None:
    """Before the controller has seen them; and nothing is given back too early."""
    first, second, third = _web(world, 3)
    _budget(world, min_available=2)
    await asyncio.sleep(10)
    assert (3, 2, 3, 1) == _numbers(world)
    evict(world.server, first)
    assert 0 == _status(world).disruptions_allowed
    assert [first.metadata.name] == list(_status(world).disrupted_pods)
    with pytest.raises(TooManyRequestsError, match="violate the pod's disruption budget"):
        evict(world.server, second)
    await asyncio.sleep(0.5)
    gone = world.server.pod("default", first.metadata.name)
    assert gone is not None
    assert "EvictionByEvictionAPI" in [each.reason for each in gone.status.conditions]
    assert (3, 2, 2, 0) == _numbers(world)
    assert {} == _status(world).disrupted_pods
    await asyncio.sleep(20)
    assert (2, 2, 2, 0) == _numbers(world)
    _web(world, 1)
    await asyncio.sleep(10)
    assert (3, 2, 3, 1) == _numbers(world)
    evict(world.server, third)


@in_world
async def test_each_pod_that_was_not_deleted_counts_again_after_two_minutes(world: World) -> None:
    """From its own eviction on, not from the time when another one counted again."""
    first, second, _ = _web(world, 3)
    _budget(world, min_available=1)
    await asyncio.sleep(10)
    granted = {
        first.metadata.name: "2026-01-01T00:00:10Z",
        second.metadata.name: "2026-01-01T00:01:10Z",
    }
    [budget] = world.server.all(PodDisruptionBudget)
    status = replace(budget.status, disrupted_pods=granted)
    world.server.update(replace(budget, status=status))
    await asyncio.sleep(125)
    assert [second.metadata.name] == list(_status(world).disrupted_pods)
    await asyncio.sleep(60)
    assert {} == _status(world).disrupted_pods
    assert (3, 1, 3, 2) == _numbers(world)


@pytest.mark.parametrize(
    ("policy", "desired", "allowed"),
    [
        pytest.param(None, 1, True, id="if-healthy-budget-is-met"),
        pytest.param(None, 2, False, id="if-healthy-budget-is-not-met"),
        pytest.param("IfHealthyBudget", 2, False, id="said-aloud"),
        pytest.param("AlwaysAllow", 2, True, id="always"),
    ],
)
@in_world
async def test_unhealthy_pods_may_be_evicted(
    world: World, policy: str | None, desired: int, *, allowed: bool
) -> None:
    """If the others are enough, or the policy allows it."""
    well, ill = _web(world, 2)
    _budget(world, min_available=desired, unhealthy_pod_eviction_policy=policy)
    await asyncio.sleep(10)
    current = world.server.pod("default", ill.metadata.name)
    assert current is not None
    world.server.set_phase(current, "Unknown")
    await asyncio.sleep(1)
    if allowed:
        evict(world.server, ill)
        assert {} == _status(world).disrupted_pods
    else:
        with pytest.raises(TooManyRequestsError):
            evict(world.server, ill)
    assert world.server.pod("default", well.metadata.name) is not None


@in_world
async def test_pending_pods_may_be_evicted(world: World) -> None:
    """Whatever the budget."""
    pod = world.server.create(make_pod("web-0", uid="", labels={"app": "web"}))
    _budget(world, min_available=1)
    evict(world.server, pod)
    assert world.server.pod("default", "web-0") is None


@in_world
async def test_pods_with_two_budgets_cannot_be_evicted(world: World) -> None:
    """The subresource refuses them."""
    (pod,) = _web(world, 1)
    _budget(world, min_available=0)
    second = world.server.all(PodDisruptionBudget)[0]
    world.server.create(
        PodDisruptionBudget(metadata=ObjectMeta(name="more", namespace="default"), spec=second.spec)
    )
    await asyncio.sleep(10)
    with pytest.raises(ApiError, match="more than one PodDisruptionBudget") as refusal:
        evict(world.server, pod)
    assert 500 == refusal.value.code


@in_world
async def test_a_granted_eviction_expires(world: World) -> None:
    """The controller drops it after two minutes."""
    _web(world, 2)
    _budget(world, min_available=1)
    await asyncio.sleep(10)
    budget = world.server.all(PodDisruptionBudget)[0]
    # Granted and never carried out, as when the API server stops in between.
    status = budget.status
    status = type(status)(
        observed_generation=1,
        disrupted_pods={"web-0": "2026-01-01T00:00:10Z"},
        disruptions_allowed=0,
        current_healthy=2,
        desired_healthy=1,
        expected_pods=2,
        conditions=status.conditions,
    )
    world.server.update(
        PodDisruptionBudget(metadata=budget.metadata, spec=budget.spec, status=status)
    )
    await asyncio.sleep(60)
    assert (2, 1, 1, 0) == _numbers(world)
    await asyncio.sleep(70)
    assert (2, 1, 2, 1) == _numbers(world)


@in_world
async def test_drains_respect_budgets(world: World) -> None:
    """Of two nodes that are drained at once; no more pods are missing than allowed at any time."""
    _replica_set(world, 6)
    await asyncio.sleep(1)
    for at, pod in enumerate(world.server.all(Pod)):
        metadata = pod.metadata
        node = f"node-{at % 2 + 1}"
        world.server.bind(metadata.namespace, metadata.name, metadata.uid, node)
    world.nodes.add(make_node("node-3"))
    _budget(world, max_unavailable=2)
    await asyncio.sleep(10)
    world.nodes.drain("node-1")
    world.nodes.drain("node-2")
    least = 6
    for _ in range(400):
        await asyncio.sleep(0.25)
        _bind_all(world, "node-3")
        healthy = sum(
            any(each.type == "Ready" and each.status == "True" for each in pod.status.conditions)
            and not pod.metadata.deletion_timestamp
            for pod in world.server.all(Pod)
        )
        least = min(least, healthy)
    assert 4 == least
    assert ["node-3"] * 6 == [pod.spec.node_name for pod in world.server.all(Pod)]
    assert world.nodes.refused_evictions > 0
    owners = [controller_of(pod.metadata) for pod in world.server.all(Pod)]
    assert None not in owners


@in_world
async def test_uncordoning_ends_a_drain(world: World) -> None:
    """Pods that the budget has kept stay."""
    _web(world, 3)
    _budget(world, min_available=3)
    await asyncio.sleep(10)
    world.nodes.drain("node-1")
    await asyncio.sleep(20)
    assert 3 == len(world.server.all(Pod))
    world.nodes.cordon("node-1", on=False)
    refused = world.nodes.refused_evictions
    _web(world, 3)
    await asyncio.sleep(60)
    assert 6 == len(world.server.all(Pod))
    assert refused == world.nodes.refused_evictions


@in_world
async def test_drains_without_eviction_ignore_budgets(world: World) -> None:
    """Like `kubectl drain --disable-eviction`."""
    _web(world, 3)
    _budget(world, min_available=3)
    await asyncio.sleep(10)
    world.nodes.drain("node-1", evicts=False)
    await asyncio.sleep(20)
    assert () == world.server.all(Pod)
