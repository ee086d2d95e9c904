"""DisruptionBudgetController counts how many pods of each budget may be disturbed now.

Upstream: pkg/controller/disruption/disruption.go (v1.36)
Differs:  only replica sets, deployments and jobs have a scale; a pod that was to be evicted and
          is still there after two minutes counts again without a word.
"""

from __future__ import annotations

from math import ceil
from typing import Final

import msgspec

from kubesched.api.meta import LabelSelector
from kubesched.api.selectors import CompiledSelector, SelectorError, compile_label_selector
from kubesched.apiserver.controllers.following import Following
from kubesched.apiserver.controllers.owned_objects import controller_of
from kubesched.apiserver.controllers.owner_controller import ready_since, with_conditions
from kubesched.apiserver.controllers.work_queue import WorkQueue
from kubesched.apiserver.follower import Follower
from kubesched.apiserver.local_client import LocalClient
from kubesched.apiserver.plain import Plain
from kubesched.apiserver.times import moment_of
from kubesched.cluster.store import Key

_BUDGETS: Final = "poddisruptionbudgets.policy"
_SCALES: Final = {"ReplicaSet": "replicasets.apps", "Deployment": "deployments.apps"}
_GONE_SECONDS: Final = 120.0
# Pods that change at once are counted once.
_PAUSE_SECONDS: Final = 0.05


class DisruptionBudgetController(Following):
    """Looks after all budgets."""

    def __init__(self, client: LocalClient) -> None:
        """Prepare; nothing happens before `start`."""
        self._client = client
        self._queue = WorkQueue(self._reconcile)
        self._selectors: dict[Key, CompiledSelector] = {}
        self._followers = (
            Follower(client.store, _BUDGETS, self._budget_changed),
            Follower(client.store, "pods", self._pod_changed),
        )

    def _budget_changed(self, key: Key, _before: Plain | None, after: Plain | None) -> None:
        self._selectors.pop(key, None)
        if after is not None:
            selector = after["spec"].get("selector")
            wanted = None if selector is None else msgspec.convert(selector, LabelSelector)
            try:
                self._selectors[key] = compile_label_selector(wanted)
            except SelectorError:
                return
            self._queue.add(key)

    def _pod_changed(self, key: Key, before: Plain | None, after: Plain | None) -> None:
        for budget, selector in self._selectors.items():
            if budget.namespace == key.namespace and any(
                pod is not None and selector.matches(pod["metadata"].get("labels") or {})
                for pod in (before, after)
            ):
                self._queue.add_after(budget, _PAUSE_SECONDS)

    def _reconcile(self, key: Key) -> None:
        budget = self._client.find(*key)
        selector = self._selectors.get(key)
        if budget is None or selector is None:
            return
        pods = [
            pod
            for pod in self._client.list("pods", key.namespace)
            if selector.matches(pod["metadata"].get("labels") or {})
        ]
        disrupted = self._disrupted(key, budget, pods)
        healthy = sum(
            ready_since(pod) is not None
            and not pod["metadata"].get("deletionTimestamp")
            and pod["metadata"]["name"] not in disrupted
            for pod in pods
        )
        expected, desired = self._amounts(budget["spec"], pods)
        allowed = max(healthy - desired, 0) if expected > 0 else 0
        now = self._client.clock.timestamp()
        generation = budget["metadata"].get("generation", 0)
        conditions = with_conditions(budget.get("status", {}), [_condition(allowed)], now)
        status: Plain = {
            "currentHealthy": healthy,
            "desiredHealthy": desired,
            "disruptionsAllowed": allowed,
            "expectedPods": expected,
            "observedGeneration": generation,
            "conditions": [_observed(one, generation) for one in conditions],
        }
        if disrupted:
            status["disruptedPods"] = disrupted
        if budget.get("status") != status:
            self._client.write(key, {**budget, "status": status})

    def _disrupted(self, key: Key, budget: Plain, pods: list[Plain]) -> Plain:
        """Return the pods that are to be evicted and have not yet begun to go."""
        known = budget.get("status", {}).get("disruptedPods", {})
        waiting = {
            pod["metadata"]["name"] for pod in pods if not pod["metadata"].get("deletionTimestamp")
        }
        now = self._client.clock.now()
        kept = {}
        for name, since in known.items():
            left = _GONE_SECONDS - (now - moment_of(since)).total_seconds()
            if name in waiting and left > 0:
                kept[name] = since
                self._queue.add_after(key, left)
        return kept

    def _amounts(self, spec: Plain, pods: list[Plain]) -> tuple[int, int]:
        """Return how many pods there should be, and how many of them must be healthy."""
        least = spec.get("minAvailable")
        if isinstance(least, int):
            return len(pods), least
        expected = self._expected(pods)
        if least is not None:
            return expected, _part(least, expected)
        return expected, max(expected - _part(spec.get("maxUnavailable", 0), expected), 0)

    def _expected(self, pods: list[Plain]) -> int:
        """Return how many pods the owners of these want."""
        scales: dict[str, int] = {}
        for pod in pods:
            owner = controller_of(pod)
            if owner is not None:
                self._put_scale(scales, pod["metadata"]["namespace"], owner)
        return sum(scales.values())

    def _put_scale(self, scales: dict[str, int], namespace: str, owner: Plain) -> None:
        kind = _SCALES.get(owner["kind"])
        found = None if kind is None else self._client.find(kind, namespace, owner["name"])
        if found is None or found["metadata"]["uid"] != owner["uid"]:
            return
        above = controller_of(found)
        if above is not None and above["kind"] in _SCALES:
            self._put_scale(scales, namespace, above)
        else:
            scales[owner["uid"]] = found["spec"].get("replicas", 1)


def _part(amount: int | str, whole: int) -> int:
    if isinstance(amount, str):
        return ceil(int(amount.removesuffix("%")) * whole / 100)
    return amount


def _observed(condition: Plain, generation: int) -> Plain:
    kept = {name: value for name, value in condition.items() if name != "lastUpdateTime"}
    return {**kept, "observedGeneration": generation}


def _condition(allowed: int) -> Plain:
    return {
        "type": "DisruptionAllowed",
        "status": "True" if allowed else "False",
        "reason": "SufficientPods" if allowed else "InsufficientPods",
        "message": "",
    }
