"""DisruptionBudgetController counts how many pods of each budget may be disrupted now.

Evictions granted in the meantime are in the budget's status.

Upstream: pkg/controller/disruption/disruption.go (v1.36)
Reads:    pod.metadata.labels, deletionTimestamp, ownerReferences; the Ready condition; the budgets'
          spec and status.disruptedPods
Differs:  replica sets, replication controllers, deployments and stateful sets have a scale, other
          kinds do not; a DisruptionTarget condition that is stale is left alone.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
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
from kubesched.cluster.controllers.controller import (
    Controller,
    Pause,
    controller_of_plain,
    scaled,
    seconds_of,
    short_pause,
)
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
_LABEL_SETS_KEPT: Final = 10_000
_Labels = tuple[str, frozenset[tuple[str, str]]]


class _UnknownScaleError(Exception):
    """The scale of a pod's controller is not known."""


class BudgetedPods:
    """The pods that a budget selects, counted as they come and go.

    Attributes:
        key: Where the budget is stored.
        selector: The budget's.
        pods: The pods by name; all are in the budget's namespace.
        healthy: How many of them are ready and not being deleted.
        controllers: How many of them each controller has; None for pods without one.
    """

    def __init__(self, key: Key, selector: CompiledSelector) -> None:
        self.key = key
        self.selector = selector
        self.pods: dict[str, Pod] = {}
        self.healthy = 0
        self.controllers: Counter[OwnerReference | None] = Counter()

    def put(self, pod: Pod) -> None:
        """Count a pod as it is now."""
        self.remove(pod.metadata.name)
        self.pods[pod.metadata.name] = pod
        self.healthy += _is_healthy(pod)
        self.controllers[controller_of(pod.metadata)] += 1

    def remove(self, name: str) -> None:
        """Stop counting a pod."""
        pod = self.pods.pop(name, None)
        if pod is None:
            return
        self.healthy -= _is_healthy(pod)
        controller = controller_of(pod.metadata)
        self.controllers[controller] -= 1
        if not self.controllers[controller]:
            del self.controllers[controller]


class BudgetIndex:
    """The budgets of a cluster by the pods that they select; broken selectors select none."""

    def __init__(self) -> None:
        self._by_namespace: dict[str, dict[str, BudgetedPods]] = {}
        # Many pods share few sets of labels.
        self._by_labels: dict[_Labels, tuple[BudgetedPods, ...]] = {}

    def put(self, key: Key, budget: PodDisruptionBudget, pods: Iterable[Pod] = ()) -> None:
        """Add or replace a budget, and count those of the pods that it selects."""
        self._by_labels.clear()
        try:
            found = BudgetedPods(key, compile_label_selector(budget.spec.selector))
        except SelectorError:
            self.remove(key)
            return
        self._by_namespace.setdefault(key.namespace, {})[key.name] = found
        for pod in pods:
            metadata = pod.metadata
            if metadata.namespace == key.namespace and found.selector.matches(metadata.labels):
                found.put(pod)

    def remove(self, key: Key) -> None:
        """Forget a budget, if it is there."""
        self._by_labels.clear()
        self._by_namespace.get(key.namespace, {}).pop(key.name, None)

    def get(self, key: Key) -> BudgetedPods | None:
        """Return the pods of a budget, None if it selects none or is not there."""
        return self._by_namespace.get(key.namespace, {}).get(key.name)

    def of(self, pod: Pod) -> tuple[BudgetedPods, ...]:
        """Return the budgets that select a pod, whether or not they count it."""
        metadata = pod.metadata
        budgets = self._by_namespace.get(metadata.namespace)
        if not budgets:
            return ()
        labels = metadata.namespace, frozenset(metadata.labels.items())
        found = self._by_labels.get(labels)
        if found is None:
            if len(self._by_labels) >= _LABEL_SETS_KEPT:
                self._by_labels.clear()
            found = tuple(one for one in budgets.values() if one.selector.matches(metadata.labels))
            self._by_labels[labels] = found
        return found

    def pod_changed(self, before: Pod | None, after: Pod | None) -> Iterable[BudgetedPods]:
        """Count a pod as it is after a change; return the budgets that select it, or did."""
        old = () if before is None else self.of(before)
        new = () if after is None else self.of(after)
        if before is not None:
            for one in old:
                one.remove(before.metadata.name)
        if after is not None:
            for one in new:
                one.put(after)
        return dict.fromkeys((*old, *new))


class DisruptionBudgetController(Controller):
    """Reconciles PodDisruptionBudgets."""

    def __init__(self, server: Server, pause: Pause = short_pause) -> None:
        super().__init__(server, pause)
        self._budgets = BudgetIndex()
        self._pods = server.watch(Pod, self._pod_changed)
        self._followed: list[Subscription] = [
            server.watch(PodDisruptionBudget, self._budget_changed)
        ]

    def _follow_pods(self) -> None:
        """Watch pods once there is a budget."""
        if self._pods not in self._followed:
            self._followed.append(self._pods)
            self._pods.start()

    def _budget_changed(
        self, key: Key, before: PodDisruptionBudget | None, after: PodDisruptionBudget | None
    ) -> None:
        if after is None:
            self._budgets.remove(key)
            return
        if before is None or before.spec != after.spec or before.metadata.uid != after.metadata.uid:
            self._budgets.put(key, after, self._pods.known.values())
        if self._budgets.get(key) is not None:
            self._enqueue_soon(key)
            self._follow_pods()

    def _pod_changed(self, _key: Key, before: Pod | None, after: Pod | None) -> None:
        for budget in self._budgets.pod_changed(before, after):
            self._enqueue_soon(budget.key)

    def _reconcile(self, key: Key) -> None:
        # The latest version: evictions that were granted meanwhile must not be granted again.
        budget = self.server.read(PodDisruptionBudget, key.namespace, key.name)
        known = self._budgets.get(key)
        if budget is None or known is None:
            return
        status = self._status_of(budget, known)
        if status != budget.status:
            self.server.patch_status(key, plain_status(status))
        if status.disrupted_pods:
            first = min(map(seconds_of, status.disrupted_pods.values()))
            self._enqueue_after(key, first + _DELETION_TIMEOUT_SECONDS - self.server.now())

    def _status_of(
        self, budget: PodDisruptionBudget, selected: BudgetedPods
    ) -> PodDisruptionBudgetStatus:
        now, namespace = self.server.timestamp(), budget.metadata.namespace
        try:
            wanted = wanted_pods(
                budget.spec, len(selected.pods), lambda: self._expected(namespace, selected)
            )
        except _UnknownScaleError as error:
            none = replace(budget.status, disruptions_allowed=0)
            none = replace(none, observed_generation=budget.metadata.generation)
            return with_allowed_condition(none, now, str(error))
        disrupted = _awaited(budget, selected.pods, self.server.now())
        awaited = sum(_is_healthy(selected.pods[name]) for name in disrupted)
        return counted_status(budget, selected.healthy - awaited, wanted, now, disrupted)

    def _expected(self, namespace: str, selected: BudgetedPods) -> int:
        """Return how many pods the controllers of the pods want together."""
        scales: dict[str, int] = {}
        for owner in filter(None, selected.controllers):
            found = self._scaled_object(namespace, owner)
            if found is None:
                pods = selected.pods.items()
                name = next(name for name, pod in pods if controller_of(pod.metadata) == owner)
                raise _UnknownScaleError(f'found no controllers for pod "{name}"')
            scales[found["metadata"]["uid"]] = found["spec"].get("replicas", 1)
        return sum(scales.values())

    def _scaled_object(self, namespace: str, owner: OwnerReference) -> Plain | None:
        """Return the object whose replicas count: a replica set's deployment, if it has one."""
        kind = _SCALES.get(owner.kind)
        found = None if kind is None else self.server.find(kind, namespace, owner.name)
        if found is None or found["metadata"]["uid"] != owner.uid:
            return None
        above = controller_of_plain(found)
        if above is None or above["kind"] not in _SCALES:
            return found
        return self._scaled_object(namespace, msgspec.convert(above, OwnerReference))


def wanted_pods(
    spec: PodDisruptionBudgetSpec, selected: int, expected: Callable[[], int]
) -> tuple[int, int]:
    """Return how many pods a budget expects, and how many of them should be healthy.

    `selected` is how many it selects; `expected` returns how many their controllers want together.
    """
    if spec.max_unavailable is not None:
        number = expected()
        return number, max(number - scaled(spec.max_unavailable, number), 0)
    if isinstance(spec.min_available, int):
        return selected, spec.min_available
    if spec.min_available is not None:
        number = expected()
        return number, scaled(spec.min_available, number)
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
    return with_allowed_condition(status, now)


def _is_healthy(pod: Pod) -> bool:
    return not pod.metadata.deletion_timestamp and is_ready(pod)


def _awaited(
    budget: PodDisruptionBudget, pods: Mapping[str, Pod], now: float
) -> dict[str, str | None]:
    """Return the pods whose eviction was granted and that are not deleted yet."""
    return {
        name: since
        for name, since in budget.status.disrupted_pods.items()
        if name in pods
        and not pods[name].metadata.deletion_timestamp
        and since is not None
        and seconds_of(since) + _DELETION_TIMEOUT_SECONDS > now
    }
