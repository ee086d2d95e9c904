"""ReplicaSetController keeps the number of pods that each ReplicaSet specifies.

ReplicationControllers have the same fields, and the same is done for them.

Upstream: pkg/controller/{replicaset,replication} (v1.36)
Differs:  which pods are deleted first depends on node, phase, readiness, cost and age only.
"""

from __future__ import annotations

from contextlib import suppress
from typing import ClassVar, Final

from kubesched.api.core import FINISHED, Pod
from kubesched.api.meta import controller_of
from kubesched.api.requirements import CompiledSelector
from kubesched.api.selectors import selector_from_set
from kubesched.cluster.controllers.controller import (
    BURST,
    PodsController,
    is_active,
    pod_of,
    ready_since,
)
from kubesched.cluster.server import Plain
from kubesched.cluster.store import Key

_COST: Final = "controller.kubernetes.io/pod-deletion-cost"
_PHASES: Final = {"Pending": 0, "Unknown": 1, "Running": 2}


class ReplicaSetController(PodsController):
    """Reconciles ReplicaSets."""

    kind = "replicasets.apps"
    owner_kind = "ReplicaSet"
    written_zeros = ("replicas", "terminatingReplicas")
    counts_terminating: ClassVar = True

    def reconcile(self, key: Key, owner: Plain) -> None:
        """Create or delete pods, and update the status."""
        wanted = owner["spec"].get("replicas", 1)
        active = [pod for pod in self.claim(owner) if is_active(pod)]
        try:
            if self._scale(owner, active, wanted):
                self._enqueue(key)
        finally:
            if self.server.keeps_statuses:
                self._count(key, owner)

    def is_own(self, _owner: Plain, pod: Pod, is_selected: bool) -> bool:
        """Whether an owner adopts or keeps a pod; one that has ended stays what it is."""
        return is_selected if is_active(pod) else controller_of(pod.metadata) is not None

    def _scale(self, owner: Plain, active: list[Pod], wanted: int) -> bool:
        """Create or delete a batch of pods; return whether more is to be done."""
        missing = wanted - len(active)
        if missing > 0:
            pod = pod_of(owner["spec"]["template"], owner["metadata"]["name"])
            for _ in range(min(missing, BURST)):
                self.pods.create(owner, pod)
        elif missing < 0:
            # Among equal pods, the youngest is deleted first.
            surplus = self._current(active)[::-1]
            surplus.sort(key=deletion_rank)
            for one in surplus[: min(-missing, BURST)]:
                self.pods.delete(one)
        return abs(missing) > BURST

    def _current(self, pods: list[Pod]) -> list[Pod]:
        """Return pods as they are now: one may have been bound meanwhile."""
        found = (self.server.read(Pod, pod.metadata.namespace, pod.metadata.name) for pod in pods)
        return [now or known for now, known in zip(found, pods, strict=True)]

    def _count(self, key: Key, owner: Plain) -> None:
        unfinished = [pod for pod in self.pods.of(owner) if pod.status.phase not in FINISHED]
        pods = [pod for pod in unfinished if is_active(pod)]
        labels = (owner["spec"]["template"].get("metadata", {}).get("labels") or {}).items()
        waits = self.all_unavailable_seconds(key, owner, pods)
        counts = {}
        if self.counts_terminating:
            counts["terminatingReplicas"] = len(unfinished) - len(pods)
        self.update_status(
            key,
            {
                **counts,
                "replicas": len(pods),
                "fullyLabeledReplicas": sum(labels <= pod.metadata.labels.items() for pod in pods),
                "readyReplicas": sum(wait is not None for wait in waits),
                "availableReplicas": waits.count(0.0),
            },
        )


class ReplicationControllerController(ReplicaSetController):
    """Reconciles ReplicationControllers."""

    kind = "replicationcontrollers"
    owner_kind = "ReplicationController"
    counts_terminating = False

    def selector_of(self, owner: Plain) -> CompiledSelector:
        """Return the selector of an owner's objects."""
        return selector_from_set(owner["spec"]["selector"])


def deletion_rank(pod: Pod) -> tuple[bool, int, bool, int, float]:
    """Return the sort key of deletions: the pod with the smallest key is deleted first."""
    since = ready_since(pod)
    cost = 0
    with suppress(ValueError):
        cost = int(pod.metadata.annotations.get(_COST, "0"))
    return (
        bool(pod.spec.node_name),
        _PHASES.get(pod.status.phase, 0),
        since is not None,
        cost,
        -(since or 0.0),
    )
