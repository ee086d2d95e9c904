"""DisruptionBudgetController counts how many pods of each budget may be disrupted now.

Evictions granted in the meantime are in the budget's status.

Upstream: pkg/controller/disruption/disruption.go (v1.36)
Reads:    pod.metadata.labels, deletionTimestamp, ownerReferences; the Ready condition; the budgets'
          spec and status.disruptedPods
Differs:  replica sets, replication controllers, deployments and stateful sets have a scale, other
          kinds do not; a DisruptionTarget condition that is stale is left alone.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from math import ceil
from typing import Final

import msgspec
from msgspec.structs import replace

from kubesched.api.core import Pod
from kubesched.api.meta import OwnerReference, controller_of
from kubesched.api.policy import (
    PodDisruptionBudget,
    PodDisruptionBudgetSpec,
    PodDisruptionBudgetStatus,
)
from kubesched.api.requirements import CompiledSelector, SelectorError
from kubesched.api.selectors import compile_label_selector
from kubesched.cluster.controllers.indexes import controller_of_plain
from kubesched.cluster.controllers.owner_controller import seconds_of
from kubesched.cluster.controllers.work_queue import Following, Pause, WorkQueue, short_pause
from kubesched.cluster.eviction import is_ready, plain_status, with_allowed_condition
from kubesched.cluster.server import Plain, Server, Subscription
from kubesched.cluster.store import Key

_SCALES: Final = {
    "ReplicaSet": "replicasets.apps",
    "Deployment": "deployments.apps",
    "ReplicationController": "replicationcontrollers",
    "StatefulSet": "statefulsets.apps",
}
_DELETION_TIMEOUT_SECONDS: Final = 120.0
"""A pod whose eviction was granted and that is still there after this time counts again."""


class _UnknownScaleError(Exception):
    """The scale of a pod's controller is not known."""


class _Budget:
    """The selector of a budget, and the pods that it selects."""

    def __init__(self, selector: CompiledSelector) -> None:
        self.selector = selector
        self.pods: dict[Key, Pod] = {}


class DisruptionBudgetController(Following):
    """Reconciles PodDisruptionBudgets."""

    def __init__(self, server: Server, pause: Pause = short_pause) -> None:
        """Set up; nothing happens before `start`."""
        self._server = server
        self._queue = WorkQueue(self._reconcile, pause)
        self._budgets: dict[Key, _Budget] = {}
        self._pods: dict[Key, Pod] = {}
        self._followed: list[Subscription] = [
            server.watch(PodDisruptionBudget, self._budget_changed)
        ]

    def _follow_pods(self) -> None:
        """Watch pods once there is a budget."""
        if len(self._followed) == 1:
            self._followed.append(self._server.watch(Pod, self._pod_changed))
            self._followed[1].start()

    def _budget_changed(
        self, key: Key, before: PodDisruptionBudget | None, after: PodDisruptionBudget | None
    ) -> None:
        if after is None:
            self._budgets.pop(key, None)
            return
        if before is None or before.spec != after.spec or before.metadata.uid != after.metadata.uid:
            try:
                found = _Budget(compile_label_selector(after.spec.selector))
            except SelectorError:
                self._budgets.pop(key, None)
                return
            found.pods = {at: pod for at, pod in self._pods.items() if _selects(key, found, pod)}
            self._budgets[key] = found
        if key in self._budgets:
            self._queue.add_soon(key)
        self._follow_pods()

    def _pod_changed(self, key: Key, _before: Pod | None, after: Pod | None) -> None:
        if after is None:
            self._pods.pop(key, None)
        else:
            self._pods[key] = after
        for budget_key, budget in self._budgets.items():
            was_in = budget.pods.pop(key, None) is not None
            is_in = after is not None and _selects(budget_key, budget, after)
            if is_in and after is not None:
                budget.pods[key] = after
            if is_in or was_in:
                self._queue.add_soon(budget_key)

    def _reconcile(self, key: Key) -> None:
        # The latest version: evictions that were granted meanwhile must not be granted again.
        budget = self._server.read(PodDisruptionBudget, key.namespace, key.name)
        known = self._budgets.get(key)
        if budget is None or known is None:
            return
        status = self._status_of(budget, known.pods.values())
        if status != budget.status:
            self._server.patch_status(key, plain_status(status))
        if status.disrupted_pods:
            self._queue.add_after(key, _DELETION_TIMEOUT_SECONDS)

    def _status_of(
        self, budget: PodDisruptionBudget, pods: Collection[Pod]
    ) -> PodDisruptionBudgetStatus:
        now = self._server.timestamp()
        try:
            expected, desired = wanted_pods(budget.spec, len(pods), lambda: self._expected(pods))
        except _UnknownScaleError as error:
            none = replace(budget.status, disruptions_allowed=0)
            none = replace(none, observed_generation=budget.metadata.generation)
            return with_allowed_condition(none, budget, now, str(error))
        disrupted = _awaited(budget, pods, self._server.now())
        healthy = sum(
            not pod.metadata.deletion_timestamp
            and pod.metadata.name not in disrupted
            and is_ready(pod)
            for pod in pods
        )
        return counted_status(budget, healthy, (expected, desired), now, disrupted)

    def _expected(self, pods: Collection[Pod]) -> int:
        """Return how many pods the controllers of the pods want together."""
        scales: dict[str, int] = {}
        seen: dict[str, None] = {}
        for pod in pods:
            owner = controller_of(pod.metadata)
            if owner is None or owner.uid in seen:
                continue
            seen[owner.uid] = None
            found = self._scaled_object(pod.metadata.namespace, owner)
            if found is None:
                name = pod.metadata.name
                raise _UnknownScaleError(f'found no controllers for pod "{name}"')
            scales[found["metadata"]["uid"]] = found["spec"].get("replicas", 1)
        return sum(scales.values())

    def _scaled_object(self, namespace: str, owner: OwnerReference) -> Plain | None:
        """Return the object whose replicas count: a replica set's deployment, if it has one."""
        kind = _SCALES.get(owner.kind)
        found = None if kind is None else self._server.find(kind, namespace, owner.name)
        if found is None or found["metadata"]["uid"] != owner.uid:
            return None
        above = controller_of_plain(found)
        if above is None or above["kind"] not in _SCALES:
            return found
        return self._scaled_object(namespace, msgspec.convert(above, OwnerReference))


def wanted_pods(
    spec: PodDisruptionBudgetSpec, selected: int, expected: Callable[[], int]
) -> tuple[int, int]:
    """Return the expected and the desired healthy number of pods of a budget that selects so many.

    `expected` returns how many pods the controllers of these want together.
    """
    if spec.max_unavailable is not None:
        number = expected()
        return number, max(number - _scaled(spec.max_unavailable, number), 0)
    if isinstance(spec.min_available, int):
        return selected, spec.min_available
    if spec.min_available is not None:
        number = expected()
        return number, _scaled(spec.min_available, number)
    return 0, 0


def counted_status(
    budget: PodDisruptionBudget,
    healthy: int,
    wanted: tuple[int, int],
    now: str,
    disrupted: dict[str, str | None] | None = None,
) -> PodDisruptionBudgetStatus:
    """Return the status of a budget with so many healthy pods.

    `wanted` is how many pods there should be, and how many of them healthy; `disrupted` has the
    pods whose eviction was granted, and when.
    """
    expected, desired = wanted
    status = PodDisruptionBudgetStatus(
        observed_generation=budget.metadata.generation,
        disrupted_pods=disrupted or {},
        disruptions_allowed=max(healthy - desired, 0) if expected > 0 else 0,
        current_healthy=healthy,
        desired_healthy=desired,
        expected_pods=expected,
        conditions=budget.status.conditions,
    )
    return with_allowed_condition(status, budget, now)


def _selects(key: Key, budget: _Budget, pod: Pod) -> bool:
    metadata = pod.metadata
    return key.namespace == metadata.namespace and budget.selector.matches(metadata.labels)


def _awaited(
    budget: PodDisruptionBudget, pods: Collection[Pod], now: float
) -> dict[str, str | None]:
    """Return the pods whose eviction was granted and that are not deleted yet."""
    granted = budget.status.disrupted_pods
    return {
        name: since
        for pod in pods
        if not pod.metadata.deletion_timestamp
        and (name := pod.metadata.name) in granted
        and (since := granted[name]) is not None
        and seconds_of(since) + _DELETION_TIMEOUT_SECONDS >= now
    }


def _scaled(amount: int | str, total: int) -> int:
    """Return a number of pods; a percentage of all is rounded up."""
    return amount if isinstance(amount, int) else ceil(int(amount.removesuffix("%")) * total / 100)
