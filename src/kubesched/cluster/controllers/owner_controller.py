"""OwnerController is the base of controllers of workloads.

Upstream: pkg/controller (v1.36)
Differs:  nothing.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from math import ceil, floor
from typing import ClassVar, Final

from kubesched.api.conditions import find_condition
from kubesched.api.core import FINISHED, Pod
from kubesched.api.times import parse_time
from kubesched.cluster.controllers.indexes import OwnedPods
from kubesched.cluster.controllers.work_queue import Following, Pause, WorkQueue, short_pause
from kubesched.cluster.server import Plain, Server, Subscription, since_changed
from kubesched.cluster.store import Key

BURST: Final = 50
"""The number of objects that are created or deleted before other tasks run."""
_NANOSECONDS: Final = 1_000_000_000


class OwnerController(Following, ABC):
    """Reconciles the owners of one kind.

    The store knows them by `kind`, the objects that they own by `owner_kind`.
    """

    kind: ClassVar[str]
    owner_kind: ClassVar[str]

    def __init__(self, server: Server, pause: Pause = short_pause) -> None:
        """Set up; `pause` draws the seconds from a change to the reaction."""
        self.server = server
        self._queue = WorkQueue(self._reconcile_key, pause)
        self._followed: list[Subscription] = [server.follow(self.kind, self._owner_changed)]

    def _owner_changed(self, key: Key, _before: Plain | None, after: Plain | None) -> None:
        if after is not None:
            self._queue.add_soon(key)

    def _reconcile_key(self, key: Key) -> None:
        owner = self.server.find(*key)
        if owner is not None and not owner["metadata"].get("deletionTimestamp"):
            self.reconcile(key, owner)

    @abstractmethod
    def reconcile(self, key: Key, owner: Plain) -> None:
        """Take the next step for an owner; after an ApiError it is called again."""

    def write_status(self, key: Key, status: Plain) -> None:
        """Write an owner's status if it has changed."""
        owner = self.server.find(*key)
        if owner is not None:
            generation = owner["metadata"].get("generation", 0)
            before = owner.get("status", {})
            after = {**before, **status, "observedGeneration": generation}
            if before != after:
                self.server.patch_status(key, after)


class PodsController(OwnerController):
    """Reconciles owners of pods."""

    def __init__(self, server: Server, pods: OwnedPods, pause: Pause = short_pause) -> None:
        super().__init__(server, pause)
        self.pods = pods
        pods.subscribe(self.owner_kind, self._pod_changed)

    def _pod_changed(
        self, namespace: str, name: str, before: Pod | None, after: Pod | None
    ) -> None:
        # Without statuses, only lost pods matter.
        if self.server.keeps_statuses or self.is_loss(before, after):
            self._queue.add_soon(Key(self.kind, namespace, name))

    def is_loss(self, before: Pod | None, after: Pod | None) -> bool:
        """Whether an owner lacks a pod after a change."""
        was_active = before is not None and is_active(before)
        return was_active and (after is None or not is_active(after))

    def unavailable_seconds(self, pod: Pod, min_ready_seconds: int) -> float | None:
        """Return how long until a pod counts as available; 0 for now, None if it is not ready."""
        since = ready_since(pod)
        return None if since is None else max(0.0, since + min_ready_seconds - self.server.now())


def pod_of(template: Plain, name: str) -> Plain:
    """Return a pod made from a template, with a generated name that begins as its owner's."""
    metadata = template.get("metadata", {})
    kept = {
        field: metadata[field]
        for field in ("labels", "annotations", "finalizers")
        if field in metadata
    }
    return {"metadata": {**kept, "generateName": f"{name}-"}, "spec": template["spec"]}


def is_active(pod: Pod) -> bool:
    """Whether a pod counts: it has not ended, and is not being deleted."""
    return pod.status.phase not in FINISHED and not pod.metadata.deletion_timestamp


def ready_since(pod: Pod) -> float | None:
    """Return when a pod became ready, in seconds since the epoch; None if it is not ready."""
    ready = find_condition(pod.status.conditions, "Ready")
    if ready is None or ready.status != "True":
        return None
    return seconds_of(ready.last_transition_time)


def seconds_of(time: str | None) -> float:
    """Return a time in seconds since the epoch; 0 if it is missing."""
    return parse_time(time) / _NANOSECONDS if time else 0.0


def scaled(amount: int | str, total: int, *, rounds_up: bool = True) -> int:
    """Return a number of pods, given as a number or as a percentage of all."""
    if isinstance(amount, int):
        return amount
    share = int(amount.removesuffix("%")) * total / 100
    return ceil(share) if rounds_up else floor(share)


def with_conditions(status: Plain, wanted: list[Plain], now: str) -> list[Plain]:
    """Return a workload's conditions; unchanged ones keep their times."""
    before = {one["type"]: one for one in status.get("conditions", ())}
    found = {one["type"]: since_changed(one, before.get(one["type"]), now) for one in wanted}
    for type_, one in found.items():
        old = before.pop(type_, {})
        is_same = all(old.get(name) == one[name] for name in ("status", "reason", "message"))
        one["lastUpdateTime"] = old.get("lastUpdateTime", now) if is_same else now
    return [*found.values(), *before.values()]
