"""BudgetController keeps the status of disruption budgets: how many pods may be disturbed now.

It hears of pods and budgets as everybody does, and answers after a while; what the eviction
subresource has granted in the meantime stands in the budget itself.

Upstream: pkg/controller/disruption/disruption.go (v1.36)
Reads:    pod.metadata.labels, deletionTimestamp, ownerReferences; the Ready condition; the budgets'
          spec and status.disruptedPods
Differs:  only replica sets have a scale; a DisruptionTarget condition that is stale is left alone.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection
from math import ceil
from typing import Final

from msgspec.structs import replace

from kubesched.api.core import Pod
from kubesched.api.meta import OwnerReference, controller_of
from kubesched.api.policy import PodDisruptionBudget, PodDisruptionBudgetStatus
from kubesched.simulator.eviction_api import is_ready, selects, with_allowed_condition
from kubesched.simulator.object_server import ObjectServer, key_of
from kubesched.simulator.timestamps import seconds_of
from kubesched.snapshot.objects import KubernetesObject

_DELETION_TIMEOUT_SECONDS: Final = 120.0
"""A pod that was granted to be evicted and is still there then counts again."""

ScaleOf = Callable[[OwnerReference], "int | None"]


class _UnknownScaleError(Exception):
    """A pod's controller does not say how many pods it wants."""


class _Budget:
    """One budget, and the pods that it selects, by uid."""

    def __init__(self, budget: PodDisruptionBudget) -> None:
        self.budget = budget
        self.pods: dict[str, Pod] = {}
        self.is_due = False


class BudgetController:
    """Writes statuses; is told of pods and budgets."""

    def __init__(
        self,
        server: ObjectServer,
        scale_of: ScaleOf,
        latency: Callable[[], float],
        follow_pods: Callable[[BudgetController], None],
    ) -> None:
        """Start without budgets.

        Args:
            server: Where objects are.
            scale_of: Tells how many pods a controller wants; None if it does not say.
            latency: Draws the seconds that an answer takes.
            follow_pods: Begins to tell of pods; asked for with the first budget, as nobody else
                needs them.
        """
        self._follow_pods = follow_pods
        self._follows_pods = False
        self._server = server
        self._scale_of = scale_of
        self._latency = latency
        self._budgets: dict[str, _Budget] = {}
        self._pods: dict[str, Pod] = {}

    # What it hears.

    def added(self, item: KubernetesObject) -> None:
        """A pod or budget came."""
        if isinstance(item, PodDisruptionBudget):
            self._budget_is(item)
            if not self._follows_pods:
                self._follows_pods = True
                self._follow_pods(self)
        elif isinstance(item, Pod):
            self._pod_is(None, item)

    def updated(self, old: KubernetesObject, new: KubernetesObject) -> None:
        """A pod or budget changed."""
        if isinstance(old, Pod) and isinstance(new, Pod):
            self._pod_is(old, new)
        else:
            self.added(new)

    def deleted(self, item: KubernetesObject, *, is_final_state_known: bool = True) -> None:
        """A pod or budget is gone."""
        if isinstance(item, PodDisruptionBudget):
            self._budgets.pop(_name_of(item), None)
        elif isinstance(item, Pod):
            self._pod_is(item, None)

    def _budget_is(self, item: PodDisruptionBudget) -> None:
        known = self._budgets.get(_name_of(item))
        if known is None or known.budget.spec != item.spec:
            known = self._budgets[_name_of(item)] = _Budget(item)
            known.pods = {uid: pod for uid, pod in self._pods.items() if selects(item, pod)}
        known.budget = item
        self._sync_soon(known)

    def _pod_is(self, old: Pod | None, new: Pod | None) -> None:
        if old is not None:
            self._pods.pop(old.metadata.uid, None)
        if new is not None:
            self._pods[new.metadata.uid] = new
        for known in self._budgets.values():
            is_in = new is not None and selects(known.budget, new)
            was_in = old is not None and known.pods.pop(old.metadata.uid, None) is not None
            if is_in and new is not None:
                known.pods[new.metadata.uid] = new
            if is_in or was_in:
                self._sync_soon(known)

    # What it does.

    def _sync_soon(self, known: _Budget) -> None:
        if not known.is_due:
            known.is_due = True
            asyncio.get_running_loop().call_later(self._latency(), self._sync, known)

    def _sync(self, known: _Budget) -> None:
        known.is_due = False
        # The latest version: what was granted meanwhile must not be granted again.
        budget = self._server.store.find(key_of(known.budget))
        if not isinstance(budget, PodDisruptionBudget):
            return
        now = asyncio.get_running_loop().time()
        status = self._status_of(budget, known.pods.values(), now)
        if status != budget.status:
            self._server.update(replace(budget, status=status))
        if status.disrupted_pods:
            loop = asyncio.get_running_loop()
            loop.call_later(_DELETION_TIMEOUT_SECONDS, self._sync_soon, known)

    def _status_of(
        self, budget: PodDisruptionBudget, pods: Collection[Pod], now: float
    ) -> PodDisruptionBudgetStatus:
        try:
            expected, desired = self._wanted(budget, pods)
        except _UnknownScaleError as error:
            none = replace(budget.status, disruptions_allowed=0)
            none = replace(none, observed_generation=budget.metadata.generation)
            return with_allowed_condition(none, budget, now, str(error))
        disrupted = _awaited(budget, pods, now)
        healthy = sum(
            not pod.metadata.deletion_timestamp
            and pod.metadata.name not in disrupted
            and is_ready(pod)
            for pod in pods
        )
        status = PodDisruptionBudgetStatus(
            observed_generation=budget.metadata.generation,
            disrupted_pods=disrupted,
            disruptions_allowed=max(healthy - desired, 0) if expected > 0 else 0,
            current_healthy=healthy,
            desired_healthy=desired,
            expected_pods=expected,
            conditions=budget.status.conditions,
        )
        return with_allowed_condition(status, budget, now)

    def _wanted(self, budget: PodDisruptionBudget, pods: Collection[Pod]) -> tuple[int, int]:
        """Return how many pods there should be, and how many of them healthy."""
        spec = budget.spec
        if spec.max_unavailable is not None:
            expected = self._scale(pods)
            return expected, max(expected - _scaled(spec.max_unavailable, expected), 0)
        if isinstance(spec.min_available, int):
            return len(pods), spec.min_available
        if spec.min_available is not None:
            expected = self._scale(pods)
            return expected, _scaled(spec.min_available, expected)
        return 0, 0

    def _scale(self, pods: Collection[Pod]) -> int:
        """Return how many pods the controllers of the pods want together."""
        scales: dict[str, int] = {}
        for pod in pods:
            owner = controller_of(pod.metadata)
            if owner is None or owner.uid in scales:
                continue
            scale = self._scale_of(owner)
            if scale is None:
                raise _UnknownScaleError(f'found no controllers for pod "{pod.metadata.name}"')
            scales[owner.uid] = scale
        return sum(scales.values())


def _name_of(budget: PodDisruptionBudget) -> str:
    return f"{budget.metadata.namespace}/{budget.metadata.name}"


def _awaited(
    budget: PodDisruptionBudget, pods: Collection[Pod], now: float
) -> dict[str, str | None]:
    """Return the pods that were granted to be evicted and are still expected to go."""
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
