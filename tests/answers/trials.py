"""Trials of small clusters as functions, and random clusters."""

from __future__ import annotations

from collections import Counter
from collections.abc import Awaitable, Callable, Iterable
from random import Random
from typing import Any, TypeVar, cast

from msgspec.structs import replace

from kubesched.answers.trial_cluster import TrialCluster
from kubesched.api.codec import decode_object
from kubesched.api.core import Node, Pod
from kubesched.api.meta import KubeObject, controller_of
from kubesched.api.policy import PodDisruptionBudget
from kubesched.api.selectors import matches_label_selector
from kubesched.cluster.eviction import is_ready
from kubesched.cluster.store import Change
from kubesched.config.feature_gates import FeatureGates
from kubesched.plugins.registry import in_tree_setup
from kubesched.simulator import virtual_loop
from kubesched.simulator.instant_server import InstantServer
from kubesched.simulator.rehearsal import Rehearsal
from kubesched.testing.builders import make_node, make_pod

T = TypeVar("T")
GATES = FeatureGates.parse("")


def rehearsed(objects: Iterable[KubeObject], ask: Callable[[Rehearsal], Awaitable[T]]) -> T:
    """Return the result of a function that works on a rehearsal of a cluster."""

    async def main() -> T:
        rehearsal = Rehearsal(in_tree_setup(GATES), seed=0)
        rehearsal.load(objects)
        result = await ask(rehearsal)
        rehearsal.scheduler.cache.check()
        rehearsal.scheduler.queue.check()
        return result

    return virtual_loop.run(main())


def tried(objects: Iterable[KubeObject], ask: Callable[[TrialCluster], Awaitable[T]]) -> T:
    """Return the result of a function that works on a trial of a cluster."""

    async def main(rehearsal: Rehearsal) -> T:
        return await ask(TrialCluster(rehearsal))

    return rehearsed(objects, main)


def node(name: str, cpu: str = "4", zone: str = "", **labels: str) -> Node:
    """Return a node with 32Gi of memory."""
    found = {"kubernetes.io/hostname": name, **labels}
    if zone:
        found["topology.kubernetes.io/zone"] = zone
    return make_node(name, allocatable={"cpu": cpu, "memory": "32Gi", "pods": 110}, labels=found)


def running(
    name: str,
    on: str,
    cpu: str = "1",
    *,
    owner: str = "",
    kind: str = "ReplicaSet",
    priority: int = 0,
    labels: dict[str, str] | None = None,
    **spec: object,
) -> Pod:
    """Return a pod that runs on a node and is ready, of an owner if one is given."""
    reference = {"apiVersion": "apps/v1", "kind": kind, "name": owner, "uid": f"uid-{owner}"}
    owners = [{**reference, "controller": True}] if owner else []
    return make_pod(
        name,
        node_name=on,
        requests={"cpu": cpu},
        priority=priority,
        labels=labels or {"app": owner or name},
        status={"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]},
        start_time="2026-01-01T00:00:00Z",
        metadata={"ownerReferences": owners},
        spec=spec,
    )


def owner_metadata(kind: str, name: str, **labels: str) -> dict[str, Any]:
    """Return the metadata of a pod with a controller."""
    owner = {"apiVersion": "v1", "kind": kind, "name": name, "uid": name, "controller": True}
    return {"ownerReferences": [owner], "labels": labels}


def random_cluster(seed: int, *, owned: bool) -> list[KubeObject]:
    """Return nodes, running pods as far as there is room, and pending pods.

    Args:
        seed: Of the random source.
        owned: Whether the pods have controllers.
    """
    random = Random(seed)
    names = [f"n-{at}" for at in range(random.randint(2, 5))]
    free = {name: random.randint(2, 6) for name in names}
    found: list[KubeObject] = [node(name, str(free[name]), random.choice("ab")) for name in names]
    for at in range(random.randint(2, 10)):
        cpu, name = random.randint(1, 2), random.choice(names)
        owner = f"w-{at % 3}" if owned else ""
        kind = random.choice(("ReplicaSet", "StatefulSet"))
        if free[name] >= cpu:
            free[name] -= cpu
            pod_name = f"w-{at % 3}-{at}"
            found.append(running(pod_name, name, str(cpu), owner=owner, kind=kind))
    for at in range(random.randint(0, 2)):
        requests = {"cpu": random.randint(1, 4)}
        metadata = owner_metadata("ReplicaSet", "late") if owned else {}
        found.append(make_pod(f"late-{at}", requests=requests, metadata=metadata))
    return found


def budget(name: str, app: str, **spec: int | str) -> PodDisruptionBudget:
    """Return a budget for the pods of an app."""
    raw = {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"selector": {"matchLabels": {"app": app}}, **spec},
    }
    return cast("PodDisruptionBudget", decode_object(raw))


def state_of(cluster: TrialCluster) -> dict[object, object]:
    """Return every object by its key, without versions."""
    found: dict[object, object] = {}
    for key, item in cluster.server.store.everything():
        metadata = replace(item.metadata, resource_version="")
        found[key] = replace(item, metadata=metadata)
    return found


def by_owner(pods: Iterable[Pod]) -> Counter[tuple[str, str]]:
    """Return how many pods each owner has on each node; "" for pending ones."""
    found: Counter[tuple[str, str]] = Counter()
    for pod in pods:
        owner = controller_of(pod.metadata)
        found[owner.name if owner else pod.metadata.name, pod.spec.node_name] += 1
    return found


def replace_by_hand(server: InstantServer, pods: Iterable[Pod]) -> None:
    """Delete pods, then create what their controllers would create."""
    leaving = list(pods)
    for pod in leaving:
        server.delete_pod(pod.metadata.namespace, pod.metadata.name)
    for pod in leaving:
        owner = controller_of(pod.metadata)
        if owner is not None:
            is_stateful = owner.kind == "StatefulSet"
            metadata = replace(
                pod.metadata,
                name=pod.metadata.name if is_stateful else "",
                generate_name=f"{owner.name}-",
                uid="",
            )
            spec = replace(pod.spec, node_name="")
            server.create(replace(make_pod("x"), metadata=metadata, spec=spec))


def by_name(pods: Iterable[Pod]) -> list[Pod]:
    """Return pods in the order in which they are listed."""
    return sorted(pods, key=lambda pod: pod.metadata.name)


def with_budgets(seed: int) -> list[KubeObject]:
    """Return a random cluster whose owners have budgets."""
    random = Random(seed)
    objects = random_cluster(seed, owned=True)
    for at in range(random.randint(1, 3)):
        amount = random.choice((0, 1, 2, 3, "50%"))
        kind = random.choice(("minAvailable", "maxUnavailable"))
        objects.append(budget(f"b-{at}", f"w-{at}", **{kind: amount}))
    return objects


class BudgetWatch:
    """Checks every budget after every write, by counting the pods again."""

    def __init__(self, cluster: TrialCluster) -> None:
        self.cluster = cluster
        self.least = {one.metadata.name: self._healthy(one) for one in self._budgets()}
        self.desired = {one.metadata.name: one.status.desired_healthy for one in self._budgets()}
        cluster.server.store.on_write.append(self._written)

    def stop(self) -> None:
        """End the checks."""
        self.cluster.server.store.on_write.remove(self._written)

    def _budgets(self) -> tuple[PodDisruptionBudget, ...]:
        return self.cluster.server.all(PodDisruptionBudget)

    def _healthy(self, found: PodDisruptionBudget) -> int:
        return sum(
            is_ready(pod)
            and not pod.metadata.deletion_timestamp
            and matches_label_selector(found.spec.selector, pod.metadata.labels)
            for pod in self.cluster.server.all(Pod)
        )

    def _written(self, _change: Change[KubeObject]) -> None:
        for found in self._budgets():
            name = found.metadata.name
            assert self._healthy(found) >= min(self.desired[name], self.least[name]), name
