"""OwnerController is what controllers of workloads have in common: owners, and what these own.

Upstream: pkg/controller (v1.36)
Differs:  nothing.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from datetime import datetime
from typing import Final

from kubesched.apiserver.controllers.owned_objects import OwnedObjects
from kubesched.apiserver.controllers.work_queue import WorkQueue
from kubesched.apiserver.follower import Follower
from kubesched.apiserver.local_client import LocalClient
from kubesched.apiserver.plain import Plain
from kubesched.apiserver.times import moment_of
from kubesched.cluster.store import Key

FINISHED: Final = ("Succeeded", "Failed")
# What changes within so short a time is looked at once.
_PAUSE_SECONDS: Final = 0.05


class OwnerController(ABC):
    """Looks after the owners of one kind."""

    def __init__(self, client: LocalClient, kind: str, owner: str, owned: OwnedObjects) -> None:
        """Take whom to look after.

        Args:
            client: Where owners are.
            kind: Of owners, as the store names it.
            owner: The same, as objects say it.
            owned: What they own.
        """
        self.client = client
        self.kind = kind
        self.owned = owned
        self.queue = WorkQueue(self._reconcile_key)
        self._follower = Follower(client.store, kind, lambda key, _before, _after: self._look(key))
        owned.tell(owner, self._owned_changed)

    def start(self) -> None:
        """Look at all owners, and follow from now on."""
        self._follower.start()

    def stop(self) -> None:
        """Do nothing more."""
        self._follower.stop()
        self.queue.stop()

    def _look(self, key: Key) -> None:
        self.queue.add(key)

    def _owned_changed(self, namespace: str, name: str) -> None:
        self.queue.add_after(Key(self.kind, namespace, name), _PAUSE_SECONDS)

    def _reconcile_key(self, key: Key) -> None:
        owner = self.client.find(*key)
        if owner is not None and not owner["metadata"].get("deletionTimestamp"):
            self.reconcile(key, owner)

    @abstractmethod
    def reconcile(self, key: Key, owner: Plain) -> None:
        """Do what an owner needs next.

        Raises:
            ApiError: Something was refused; it is asked again later.
        """

    def write_status(self, key: Key, status: Plain) -> None:
        """Write an owner's status if it is another one."""
        owner = self.client.find(*key)
        if owner is not None:
            generation = owner["metadata"].get("generation", 0)
            status = {**status, "observedGeneration": generation}
            kept = {
                name: value for name, value in owner.get("status", {}).items() if name not in status
            }
            if owner.get("status") != {**kept, **status}:
                self.client.write(key, {**owner, "status": {**kept, **status}})

    def unavailable_seconds(self, pod: Plain, min_ready_seconds: int) -> float | None:
        """Return how long until a pod counts as available; 0 for now, None if it is not ready."""
        since = ready_since(pod)
        if since is None:
            return None
        waited = (self.client.clock.now() - since).total_seconds()
        return max(0.0, min_ready_seconds - waited)


def pod_of(template: Plain, name: str) -> Plain:
    """Return a pod made from a template, with a name that begins as its owner's."""
    metadata = template.get("metadata", {})
    kept = {
        field: metadata[field]
        for field in ("labels", "annotations", "finalizers")
        if field in metadata
    }
    return {"metadata": {**kept, "generateName": f"{name}-"}, "spec": template["spec"]}


def is_active(pod: Plain) -> bool:
    """Whether a pod counts: it has neither ended nor been deleted."""
    is_over = pod.get("status", {}).get("phase") in FINISHED
    return not is_over and not pod["metadata"].get("deletionTimestamp")


def ready_since(pod: Plain) -> datetime | None:
    """Return since when a pod is ready, None if it is not."""
    for condition in pod.get("status", {}).get("conditions", ()):
        if condition["type"] == "Ready" and condition["status"] == "True":
            return moment_of(condition["lastTransitionTime"])
    return None


def with_conditions(status: Plain, wanted: list[Plain], now: str) -> list[Plain]:
    """Return a workload's conditions; times move only where something differs."""
    before = {one["type"]: one for one in status.get("conditions", ())}
    found = []
    for one in wanted:
        old = before.pop(one["type"], None)
        times = {"lastTransitionTime": now, "lastUpdateTime": now}
        if old is not None and old["status"] == one["status"]:
            times["lastTransitionTime"] = old["lastTransitionTime"]
            if (old.get("reason"), old.get("message")) == (one["reason"], one["message"]):
                times["lastUpdateTime"] = old.get("lastUpdateTime", now)
        found.append({**one, **times})
    return [*found, *before.values()]
