"""BudgetStatuses keeps the status of disruption budgets up to date, with every write to a pod.

Upstream: pkg/controller/disruption/disruption.go (v1.36)
Differs:  the status follows at once; where a controller's scale is not known, the expected number
          of pods is the recorded one, or that of the selected pods; a running pod without a Ready
          condition, as in a manifest, counts as healthy.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, TypeAlias

from msgspec.structs import replace

from kubesched.api.apps import Deployment, ReplicaSet, StatefulSet
from kubesched.api.core import FINISHED, Pod, PodCondition, ReplicationController
from kubesched.api.errors import ApiError
from kubesched.api.meta import OwnerReference, controller_of
from kubesched.api.policy import PodDisruptionBudget
from kubesched.api.requirements import CompiledSelector, SelectorError
from kubesched.api.selectors import compile_label_selector
from kubesched.cluster.controllers.disruption_budgets import (
    BudgetedPods,
    counted_status,
    wanted_pods,
)
from kubesched.cluster.eviction import grant, is_ready
from kubesched.cluster.store import Key
from kubesched.simulator.instant_server import InstantServer
from kubesched.simulator.object_server import key_of

_Scaled: TypeAlias = ReplicaSet | Deployment | ReplicationController | StatefulSet
_SCALES: Final[Mapping[str, type[_Scaled]]] = {
    kind.__name__: kind for kind in (ReplicaSet, Deployment, ReplicationController, StatefulSet)
}
_LabelKey = tuple[str, frozenset[tuple[str, str]]]


class _Selected(BudgetedPods):
    """The pods of a budget that have not finished; `key` is where the budget is stored."""

    def __init__(self, key: Key, selector: CompiledSelector) -> None:
        super().__init__(selector)
        self.key = key


class BudgetStatuses:
    """The budgets of a cluster, and the pods that each selects."""

    def __init__(self, server: InstantServer) -> None:
        """Look at all budgets and their pods, and write the statuses."""
        self._server = server
        self._selected: dict[str, dict[str, _Selected]] = {}
        self._matching: dict[_LabelKey, tuple[_Selected, ...]] = {}
        for budget in server.all(PodDisruptionBudget):
            self._add(budget)
        self._count_all()
        for budgets in self._selected.values():
            for selected in budgets.values():
                self._write(selected)

    def _add(self, budget: PodDisruptionBudget) -> None:
        try:
            found = _Selected(key_of(budget), compile_label_selector(budget.spec.selector))
        except SelectorError:
            return
        metadata = budget.metadata
        self._selected.setdefault(metadata.namespace, {})[metadata.name] = found

    def _count_all(self) -> None:
        """Count the pods of all budgets; those from manifests get the Ready condition they lack."""
        if not self._selected:
            return
        for pod in self._server.all(Pod):
            budgets = self._budgets_of(pod)
            if budgets and _runs_without_condition(pod):
                ready = PodCondition(type="Ready", status="True")
                conditions = (*pod.status.conditions, ready)
                status = replace(pod.status, phase="Running", conditions=conditions)
                pod = self._server.update(replace(pod, status=status))  # noqa: PLW2901 - as stored
            if pod.status.phase not in FINISHED:
                for selected in budgets:
                    selected.put(pod)

    def changed(self, before: Pod | None, after: Pod | None) -> None:
        """Follow a write to a pod; None before its creation and after its end."""
        pod = after or before
        assert pod is not None, "a write has an object"
        budgets = self._selected.get(pod.metadata.namespace)
        if not budgets:
            return
        old = () if before is None else self._budgets_of(before)
        new = () if after is None else self._budgets_of(after)
        if before is not None and after is not None and _counted(before) == _counted(after):
            return
        for selected in old:
            selected.remove(pod.metadata.name)
        if pod.status.phase not in FINISHED:
            for selected in new:
                selected.put(pod)
        for selected in dict.fromkeys((*old, *new)):
            self._write(selected)

    def budget_changed(self, budget: PodDisruptionBudget, *, is_gone: bool) -> None:
        """Follow a write to a budget's spec."""
        metadata = budget.metadata
        self._selected.get(metadata.namespace, {}).pop(metadata.name, None)
        self._matching.clear()
        if not is_gone:
            self._add(budget)
            self._count_all()
            self._write(self._selected[metadata.namespace][metadata.name])

    def _budgets_of(self, pod: Pod) -> tuple[_Selected, ...]:
        metadata = pod.metadata
        budgets = self._selected.get(metadata.namespace)
        if not budgets:
            return ()
        key = (metadata.namespace, frozenset(metadata.labels.items()))
        found = self._matching.get(key)
        if found is None:
            found = tuple(one for one in budgets.values() if one.selector.matches(metadata.labels))
            self._matching[key] = found
        return found

    def _write(self, selected: _Selected) -> None:
        found = self._find(selected)
        if found is None:
            return
        wanted = wanted_pods(
            found.spec, len(selected.pods), lambda: self._expected(found, selected)
        )
        status = counted_status(found, selected.healthy, wanted, self._server.timestamp())
        if status != found.status:
            self._server.update(replace(found, status=status))

    def _find(self, selected: _Selected) -> PodDisruptionBudget | None:
        """Return a budget as stored, None if it is gone."""
        return self._server.find(PodDisruptionBudget, selected.key.namespace, selected.key.name)

    def _expected(self, budget: PodDisruptionBudget, selected: _Selected) -> int:
        """Return how many pods the controllers of a budget's pods want together."""
        scales: dict[Key, int] = {}
        for owner in selected.controllers:
            scale = None if owner is None else self._scale_of(selected.key.namespace, owner)
            if scale is None:
                return budget.status.expected_pods or len(selected.pods)
            scales[scale[0]] = scale[1]
        return sum(scales.values())

    def _scale_of(self, namespace: str, controller: OwnerReference) -> tuple[Key, int] | None:
        """Return the object whose replicas count, and their number."""
        found: _Scaled | None = None
        owner: OwnerReference | None = controller
        while owner is not None and owner.kind in _SCALES:
            above = self._server.find(_SCALES[owner.kind], namespace, owner.name)
            if above is None:
                break
            found, owner = above, controller_of(above.metadata)
        if found is None:
            return None
        replicas = found.spec.replicas
        return key_of(found), 1 if replicas is None else replicas

    def covering(self, pod: Pod) -> list[PodDisruptionBudget]:
        """Return the budgets that select a pod, with their statuses."""
        found = map(self._find, self._budgets_of(pod))
        return [budget for budget in found if budget is not None]

    def let_go(self, pod: Pod) -> bool:
        """Return whether the budgets of a pod allow its eviction now; if so, charge them for it."""
        try:
            granted = grant(pod, self.covering(pod), self._server.timestamp())
        except ApiError:
            return False
        if granted.budget is not None:
            self._server.update(granted.budget)
        return True


def _counted(pod: Pod) -> tuple[object, ...]:
    metadata = pod.metadata
    return metadata.labels, metadata.deletion_timestamp, pod.status.phase, is_ready(pod)


def _runs_without_condition(pod: Pod) -> bool:
    return (
        bool(pod.spec.node_name)
        and pod.status.phase in ("", "Running")
        and all(one.type != "Ready" for one in pod.status.conditions)
    )
