"""BudgetStatuses keeps the status of disruption budgets up to date, with every write to a pod.

Upstream: pkg/controller/disruption/disruption.go (v1.36)
Differs:  the status follows at once; where a controller's scale is not known, the expected number
          of pods is the recorded one, or that of the selected pods; a running pod without a Ready
          condition, as in a manifest, counts as healthy.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from msgspec.structs import replace

from kubesched.api.apps import Deployment, ReplicaSet, StatefulSet
from kubesched.api.core import Pod, PodCondition, ReplicationController
from kubesched.api.meta import controller_of
from kubesched.api.policy import PodDisruptionBudget
from kubesched.api.selectors import CompiledSelector, SelectorError, compile_label_selector
from kubesched.cluster.controllers.disruption_budgets import counted_status, wanted_pods
from kubesched.cluster.eviction import is_ready
from kubesched.cluster.kubelets import FINISHED
from kubesched.cluster.server import kind_name
from kubesched.cluster.store import Key
from kubesched.simulator.instant_server import InstantServer
from kubesched.simulator.object_server import key_of
from kubesched.snapshot.pod_info import uid_of

_SCALES: Final = {
    kind.__name__: kind for kind in (ReplicaSet, Deployment, ReplicationController, StatefulSet)
}
_LabelKey = tuple[str, frozenset[tuple[str, str]]]


class _Selected:
    """The pods of a budget: uid -> pod."""

    def __init__(self, selector: CompiledSelector) -> None:
        self.selector = selector
        self.pods: dict[str, Pod] = {}


class BudgetStatuses:
    """The budgets of a cluster, and the pods that each selects."""

    def __init__(self, server: InstantServer) -> None:
        """Look at all budgets and their pods, and write the statuses."""
        self._server = server
        self._selected: dict[str, dict[str, _Selected]] = {}
        self._matching: dict[_LabelKey, tuple[_Selected, ...]] = {}
        for budget in server.all(PodDisruptionBudget):
            self._add(budget)
        if self._selected:
            for pod in server.all(Pod):
                for selected in self._budgets_of(pod):
                    selected.pods[uid_of(pod)] = pod
            self._assume_ready()
            self._write_all()

    def _add(self, budget: PodDisruptionBudget) -> None:
        try:
            found = _Selected(compile_label_selector(budget.spec.selector))
        except SelectorError:
            return
        metadata = budget.metadata
        self._selected.setdefault(metadata.namespace, {})[metadata.name] = found

    def _assume_ready(self) -> None:
        """Add the condition that manifests of running pods lack."""
        for namespace in self._selected.values():
            for selected in namespace.values():
                for uid, pod in selected.pods.items():
                    if _runs_without_condition(pod):
                        ready = PodCondition(type="Ready", status="True")
                        conditions = (*pod.status.conditions, ready)
                        status = replace(pod.status, phase="Running", conditions=conditions)
                        selected.pods[uid] = self._server.update(replace(pod, status=status))

    def _write_all(self) -> None:
        for namespace, budgets in self._selected.items():
            for name in budgets:
                self._write(namespace, name)

    def changed(self, before: Pod | None, after: Pod | None) -> None:
        """Follow a write to a pod; None before its creation and after its end."""
        pod = after or before
        assert pod is not None, "a write has an object"
        budgets = self._selected.get(pod.metadata.namespace)
        if not budgets:
            return
        old = () if before is None else self._budgets_of(before)
        new = () if after is None else self._budgets_of(after)
        for selected in old:
            selected.pods.pop(uid_of(pod), None)
        for selected in new:
            selected.pods[uid_of(pod)] = pod
        if before is not None and after is not None and _counts_alike(before, after):
            return
        for name, selected in budgets.items():
            if selected in old or selected in new:
                self._write(pod.metadata.namespace, name)

    def budget_changed(self, budget: PodDisruptionBudget, *, is_gone: bool) -> None:
        """Follow a write to a budget's spec."""
        metadata = budget.metadata
        self._selected.get(metadata.namespace, {}).pop(metadata.name, None)
        self._matching.clear()
        if not is_gone:
            self._add(budget)
            found = self._selected[metadata.namespace][metadata.name]
            for pod in self._server.all(Pod):
                if found in self._budgets_of(pod):
                    found.pods[uid_of(pod)] = pod
            self._assume_ready()
            self._write(metadata.namespace, metadata.name)

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

    def _write(self, namespace: str, name: str) -> None:
        found = self._server.store.find(Key(kind_name(PodDisruptionBudget), namespace, name))
        if not isinstance(found, PodDisruptionBudget):
            return
        pods = self._selected[namespace][name].pods.values()
        alive = [pod for pod in pods if pod.status.phase not in FINISHED]
        healthy = sum(not pod.metadata.deletion_timestamp and is_ready(pod) for pod in alive)
        wanted = wanted_pods(found.spec, len(alive), lambda: self._expected(found, alive))
        status = counted_status(found, healthy, wanted, self._server.timestamp())
        if status != found.status:
            self._server.update(replace(found, status=status))

    def _expected(self, budget: PodDisruptionBudget, pods: Iterable[Pod]) -> int:
        """Return how many pods the controllers of a budget's pods want together."""
        scales: dict[Key, int] = {}
        selected = 0
        is_known = True
        for pod in pods:
            selected += 1
            scale = self._scale_of(pod)
            if scale is None:
                is_known = False
            else:
                scales[scale[0]] = scale[1]
        if is_known and scales:
            return sum(scales.values())
        return budget.status.expected_pods or selected

    def _scale_of(self, pod: Pod) -> tuple[Key, int] | None:
        """Return the object whose replicas count, and their number."""
        metadata, found = pod.metadata, None
        while (owner := controller_of(metadata)) is not None and owner.kind in _SCALES:
            kind = kind_name(_SCALES[owner.kind])
            above = self._server.store.find(Key(kind, pod.metadata.namespace, owner.name))
            if above is None:
                break
            found, metadata = above, above.metadata
        if found is None:
            return None
        replicas = getattr(getattr(found, "spec", None), "replicas", None)
        return key_of(found), 1 if replicas is None else int(replicas)

    def covering(self, pod: Pod) -> list[PodDisruptionBudget]:
        """Return the budgets that select a pod, with their statuses."""
        metadata = pod.metadata
        wanted = self._budgets_of(pod)
        return [
            budget
            for budget in self._server.all(PodDisruptionBudget)
            if budget.metadata.namespace == metadata.namespace
            and self._selected.get(metadata.namespace, {}).get(budget.metadata.name) in wanted
        ]


def _counts_alike(before: Pod, after: Pod) -> bool:
    return _counted(before) == _counted(after)


def _counted(pod: Pod) -> tuple[object, ...]:
    metadata = pod.metadata
    return metadata.labels, metadata.deletion_timestamp, pod.status.phase, is_ready(pod)


def _runs_without_condition(pod: Pod) -> bool:
    return (
        bool(pod.spec.node_name)
        and pod.status.phase in ("", "Running")
        and all(one.type != "Ready" for one in pod.status.conditions)
    )
