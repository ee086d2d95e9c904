"""BudgetStatuses keeps the status of disruption budgets up to date, with every write to a pod.

Upstream: pkg/controller/disruption/disruption.go (v1.36)
Differs:  the status follows at once; where a controller's scale is not known, the expected number
          of pods is the recorded one, or that of the selected pods; a running pod without a Ready
          condition, as in a manifest, counts as healthy.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, TypeAlias

from msgspec.structs import replace

from kubesched.answers.workload_pods import replicas_of
from kubesched.api.apps import Deployment, ReplicaSet, StatefulSet
from kubesched.api.core import FINISHED, Pod, PodCondition, ReplicationController
from kubesched.api.errors import ApiError
from kubesched.api.meta import OwnerReference, controller_of
from kubesched.api.policy import PodDisruptionBudget
from kubesched.cluster.controllers.disruption_budgets import (
    BudgetedPods,
    BudgetIndex,
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


class BudgetStatuses:
    """The budgets of a cluster, and the pods that each selects; finished ones do not count."""

    def __init__(self, server: InstantServer) -> None:
        """Look at all budgets and their pods, and write the statuses."""
        self._server = server
        self._budgets = BudgetIndex()
        self._add(server.all(PodDisruptionBudget))

    def _add(self, budgets: Sequence[PodDisruptionBudget]) -> None:
        """Count the pods of new budgets, and write their statuses."""
        for budget in budgets:
            self._budgets.put(key_of(budget), budget)
        for pod in self._server.all(Pod) if budgets else ():
            self._budgets.pod_changed(None, _unfinished(self._with_condition(pod)))
        for budget in budgets:
            selected = self._budgets.get(key_of(budget))
            if selected is not None:
                self._write(selected)

    def _with_condition(self, pod: Pod) -> Pod:
        """Return a pod; one from a manifest gets the Ready condition that it lacks."""
        if not self._budgets.of(pod) or not _runs_without_condition(pod):
            return pod
        conditions = (*pod.status.conditions, PodCondition(type="Ready", status="True"))
        status = replace(pod.status, phase="Running", conditions=conditions)
        return self._server.update(replace(pod, status=status))

    def changed(self, before: Pod | None, after: Pod | None) -> None:
        """Follow a write to a pod; None before its creation and after its end."""
        if before is None or after is None or _counted(before) != _counted(after):
            for selected in self._budgets.pod_changed(_unfinished(before), _unfinished(after)):
                self._write(selected)

    def budget_changed(self, budget: PodDisruptionBudget, *, is_gone: bool) -> None:
        """Follow a write to a budget's spec."""
        self._budgets.remove(key_of(budget))
        if not is_gone:
            self._add([budget])

    def _write(self, selected: BudgetedPods) -> None:
        found = self._find(selected)
        wanted = wanted_pods(
            found.spec, len(selected.pods), lambda: self._expected(found, selected)
        )
        status = counted_status(found, selected.healthy, wanted, self._server.timestamp())
        if status != found.status:
            self._server.update(replace(found, status=status))

    def _find(self, selected: BudgetedPods) -> PodDisruptionBudget:
        key = selected.key
        return self._server.get(PodDisruptionBudget, key.namespace, key.name)

    def _expected(self, budget: PodDisruptionBudget, selected: BudgetedPods) -> int:
        """Return how many pods the controllers of a budget's pods want together."""
        scales: dict[Key, int] = {}
        for owner in selected.controllers:
            found = None if owner is None else self._scaled_object(selected.key.namespace, owner)
            if found is None:
                return budget.status.expected_pods or len(selected.pods)
            scales[key_of(found)] = replicas_of(found)
        return sum(scales.values())

    def _scaled_object(self, namespace: str, owner: OwnerReference) -> _Scaled | None:
        """Return the object whose replicas count: the topmost controller that has a scale."""
        kind = _SCALES.get(owner.kind)
        found = None if kind is None else self._server.find(kind, namespace, owner.name)
        above = None if found is None else controller_of(found.metadata)
        return found if above is None else self._scaled_object(namespace, above) or found

    def covering(self, pod: Pod) -> list[PodDisruptionBudget]:
        """Return the budgets that select a pod, with their statuses."""
        return [self._find(selected) for selected in self._budgets.of(pod)]

    def protects(self, pod: Pod) -> bool:
        """Return whether a budget needs a healthy pod, and has not granted its eviction."""
        statuses = [one.status for one in self.covering(pod)] if is_ready(pod) else []
        name = pod.metadata.name
        return any(not (one.disruptions_allowed or name in one.disrupted_pods) for one in statuses)

    def admit_eviction(self, pod: Pod) -> bool:
        """Return whether the budgets of a pod allow its eviction now; if so, charge them for it."""
        try:
            charged = grant(pod, self.covering(pod), self._server.timestamp())
        except ApiError:
            return False
        if charged is not None:
            self._server.update(charged)
        return True


def _unfinished(pod: Pod | None) -> Pod | None:
    return None if pod is None or pod.status.phase in FINISHED else pod


def _counted(pod: Pod) -> tuple[object, ...]:
    metadata = pod.metadata
    return metadata.labels, metadata.deletion_timestamp, pod.status.phase, is_ready(pod)


def _runs_without_condition(pod: Pod) -> bool:
    return (
        bool(pod.spec.node_name)
        and pod.status.phase in ("", "Running")
        and all(one.type != "Ready" for one in pod.status.conditions)
    )
