"""ReplicaSetController keeps as many pods as each replica set asks for.

Upstream: pkg/controller/replicaset (v1.36)
Differs:  which pods go first follows from their node, phase, readiness, deletion cost and age only.
"""

from __future__ import annotations

from contextlib import suppress
from typing import Final

from kubesched.apiserver.controllers.owned_objects import OwnedObjects
from kubesched.apiserver.controllers.owner_controller import (
    OwnerController,
    is_active,
    pod_of,
    ready_since,
)
from kubesched.apiserver.local_client import LocalClient
from kubesched.apiserver.plain import Plain
from kubesched.cluster.store import Key

# So many pods are created or deleted before others have their turn.
_BURST: Final = 50
_COST: Final = "controller.kubernetes.io/pod-deletion-cost"
_PHASES: Final = {"Pending": 0, "Unknown": 1, "Running": 2}


class ReplicaSetController(OwnerController):
    """Looks after all replica sets."""

    def __init__(self, client: LocalClient, pods: OwnedObjects) -> None:
        super().__init__(client, "replicasets.apps", "ReplicaSet", pods)

    def reconcile(self, key: Key, owner: Plain) -> None:
        """Create or delete pods, and count them."""
        wanted = owner["spec"].get("replicas", 1)
        active = [pod for pod in self.owned.of(owner) if is_active(pod)]
        try:
            if self._scale(owner, active, wanted):
                self.queue.add(key)
        finally:
            self._count(key, owner)

    def _scale(self, owner: Plain, active: list[Plain], wanted: int) -> bool:
        """Do a part of what is to be done; return whether there is more."""
        missing = wanted - len(active)
        pod = pod_of(owner["spec"]["template"], owner["metadata"]["name"])
        for _ in range(min(missing, _BURST)):
            self.owned.create(owner, pod)
        if missing < 0:
            for one in sorted(active, key=_rank)[: min(-missing, _BURST)]:
                self.owned.delete(one)
        return abs(missing) > _BURST

    def _count(self, key: Key, owner: Plain) -> None:
        spec = owner["spec"]
        pods = [pod for pod in self.owned.of(owner) if is_active(pod)]
        labels = (spec["template"].get("metadata", {}).get("labels") or {}).items()
        waits = [self.unavailable_seconds(pod, spec.get("minReadySeconds", 0)) for pod in pods]
        ready = [wait for wait in waits if wait is not None]
        soonest = min((wait for wait in ready if wait), default=None)
        if soonest is not None:
            self.queue.add_after(key, soonest)
        self.write_status(
            key,
            {
                "replicas": len(pods),
                "fullyLabeledReplicas": sum(
                    labels <= (pod["metadata"].get("labels") or {}).items() for pod in pods
                ),
                "readyReplicas": len(ready),
                "availableReplicas": ready.count(0.0),
            },
        )


def _rank(pod: Plain) -> tuple[int, int, int, int, str, float]:
    """Return what decides who goes first: the smallest does."""
    phase = pod.get("status", {}).get("phase", "")
    since = ready_since(pod)
    cost = 0
    with suppress(ValueError):
        cost = int(pod["metadata"].get("annotations", {}).get(_COST, "0"))
    age = "" if since is None else since.isoformat()
    return (
        int(bool(pod["spec"].get("nodeName"))),
        _PHASES.get(phase, 0),
        int(since is not None),
        cost,
        # Of those that are equal so far, the youngest.
        "".join(chr(0x10FFFF - ord(letter)) for letter in age),
        -int(pod["metadata"].get("resourceVersion", "0")),
    )
