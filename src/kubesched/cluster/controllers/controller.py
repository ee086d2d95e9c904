"""Bases of controllers: with a queue, for owners of pods, and for owners of other objects.

Upstream: staging/src/k8s.io/client-go/util/workqueue, pkg/controller,
          pkg/controller/controller_ref_manager.go (v1.36)
Invariants: an object that is enqueued while it is reconciled is reconciled again; pods that a
            controller creates or deletes count immediately, so none is created twice.
Differs:  failures are retried after a second, without backoff; in simulations, no pods are adopted
          or released.
"""

from __future__ import annotations

import asyncio
import logging
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping
from math import ceil, floor
from typing import ClassVar, Final, Generic, TypeVar

import msgspec

from kubesched.api.conditions import find_condition
from kubesched.api.core import FINISHED, Pod
from kubesched.api.errors import ApiError
from kubesched.api.meta import LabelSelector, OwnerReference, controller_of
from kubesched.api.requirements import CompiledSelector
from kubesched.api.selectors import compile_label_selector
from kubesched.api.times import parse_time
from kubesched.cluster.server import (
    AnyKindServer,
    Plain,
    Server,
    Subscription,
    Watching,
    key_of_plain,
    since_changed,
)
from kubesched.cluster.store import Key

log = logging.getLogger(__name__)

_RETRY_SECONDS: Final = 1.0
# The number of objects that are reconciled before other tasks run.
_BATCH: Final = 50
_PAUSE_SECONDS: Final = 0.05

Pause = Callable[[], float]
T = TypeVar("T")


def short_pause() -> float:
    """Return the seconds between a change and its reconciliation."""
    return _PAUSE_SECONDS


class Controller(Watching, ABC):
    """Reconciles objects from `start` to `stop`, each once for many changes.

    Subclasses set what is watched, and enqueue the keys of objects to reconcile.
    """

    def __init__(self, server: Server, pause: Pause = short_pause) -> None:
        """Set up; `pause` draws the seconds from a change to the controller's reaction."""
        self.server = server
        self._pause = pause
        # In the order in which they were added.
        self._keys: dict[Key, None] = {}
        self._soon: dict[Key, asyncio.TimerHandle] = {}
        self._timers: dict[Key, asyncio.TimerHandle] = {}
        self._is_due = False
        self._is_stopped = False

    @abstractmethod
    def _reconcile(self, key: Key) -> None:
        """Bring an object closer to the state it should have; called again after an ApiError."""

    def _enqueue(self, key: Key) -> None:
        """Reconcile an object as soon as the loop is free."""
        self._keys[key] = None
        if not self._is_due:
            self._is_due = True
            asyncio.get_running_loop().call_soon(self._work)

    def _enqueue_soon(self, key: Key) -> None:
        """Reconcile an object after the pause; calls in between have no effect."""
        if key not in self._soon:
            loop = asyncio.get_running_loop()
            self._soon[key] = loop.call_later(self._pause(), self._fall_due, self._soon, key)

    def _enqueue_after(self, key: Key, seconds: float) -> None:
        """Reconcile an object after some seconds, or at an earlier time that is set already."""
        loop = asyncio.get_running_loop()
        timer = self._timers.get(key)
        if timer is not None:
            if timer.when() <= loop.time() + seconds:
                return
            timer.cancel()
        self._timers[key] = loop.call_later(seconds, self._fall_due, self._timers, key)

    def stop(self) -> None:
        """Stop watching and reconciling; stopping twice is fine."""
        super().stop()
        self._is_stopped = True
        for timer in (*self._timers.values(), *self._soon.values()):
            timer.cancel()

    def _fall_due(self, timers: dict[Key, asyncio.TimerHandle], key: Key) -> None:
        del timers[key]
        self._enqueue(key)

    def _work(self) -> None:
        self._is_due = False
        if self._is_stopped:
            return
        for key in tuple(self._keys)[:_BATCH]:
            del self._keys[key]
            try:
                self._reconcile(key)
            except ApiError as error:
                log.info("%s %s/%s: %s", *key, error)
                self._enqueue_after(key, _RETRY_SECONDS)
        if self._keys and not self._is_due:
            self._is_due = True
            asyncio.get_running_loop().call_soon(self._work)


class KeyIndex(Generic[T]):
    """Keys of objects by something that they have in common, in the order of their addition."""

    def __init__(self) -> None:
        self._keys: dict[T, dict[Key, None]] = {}

    def of(self, common: T) -> tuple[Key, ...]:
        """Return the keys of the objects that have this in common."""
        return tuple(self._keys.get(common, ()))

    def add(self, common: T, key: Key) -> None:
        """Add an object; adding it twice is fine."""
        self._keys.setdefault(common, {})[key] = None

    def drop(self, common: T, key: Key) -> None:
        """Remove an object if it is there."""
        keys = self._keys.get(common, {})
        keys.pop(key, None)
        if not keys:
            self._keys.pop(common, None)


# Owners.

BURST: Final = 50
"""The number of objects that are created or deleted before other tasks run."""
_NANOSECONDS: Final = 1_000_000_000


class OwnerController(Controller):
    """Reconciles the owners of one kind.

    The store knows them by `kind`, the objects that they own by `owner_kind`.
    """

    kind: ClassVar[str]
    owner_kind: ClassVar[str]
    written_zeros: ClassVar[tuple[str, ...]] = ()
    """The numbers that a status has even if they are 0, as the API writes it."""

    def __init__(self, server: Server, pause: Pause = short_pause) -> None:
        super().__init__(server, pause)
        self._followed: list[Subscription] = [server.follow(self.kind, self._owner_changed)]

    def _owner_changed(self, key: Key, _before: Plain | None, after: Plain | None) -> None:
        if after is not None:
            self._enqueue_soon(key)

    def _reconcile(self, key: Key) -> None:
        owner = self.server.find(*key)
        if owner is not None and not owner["metadata"].get("deletionTimestamp"):
            self.reconcile(key, owner)

    def selector_of(self, owner: Plain) -> CompiledSelector:
        """Return the selector of an owner's objects."""
        return compile_label_selector(msgspec.convert(owner["spec"]["selector"], LabelSelector))

    def enqueue_selecting(self, namespace: str, labels: Mapping[str, str]) -> None:
        """Reconcile the owners that may adopt an object with these labels."""
        for owner in self.server.list(self.kind, namespace):
            if self.selector_of(owner).matches(labels):
                self._enqueue_soon(key_of_plain(self.kind, owner))

    @abstractmethod
    def reconcile(self, key: Key, owner: Plain) -> None:
        """Take the next step for an owner; after an ApiError it is called again."""

    def update_status(self, key: Key, fields: Plain) -> None:
        """Set fields of an owner's status, and the generation that they are about."""
        owner = self.server.find(*key)
        if owner is not None:
            generation = owner["metadata"].get("generation", 0)
            before = owner.get("status", {})
            self.write_status(key, {**before, **fields, "observedGeneration": generation})

    def write_status(self, key: Key, status: Plain) -> None:
        """Replace an owner's status if it has changed; nothing happens if the owner is gone."""
        owner = self.server.find(*key)
        status = {
            name: value
            for name, value in status.items()
            if value != 0 or name in self.written_zeros
        }
        if owner is not None and owner.get("status", {}) != status:
            self.server.patch_status(key, status)


class ObjectsController(OwnerController):
    """Reconciles owners of objects of a kind `owned`, such as the ReplicaSets of Deployments."""

    owned: ClassVar[str]
    server: AnyKindServer

    def __init__(self, server: AnyKindServer) -> None:
        super().__init__(server)
        self._followed.append(server.follow(self.owned, self._owned_changed))

    def owned_by(self, owner: Plain) -> list[Plain]:
        """Return the objects of an owner, oldest first."""
        metadata = owner["metadata"]
        found = self.server.list(self.owned, metadata["namespace"])
        owners = ((one, controller_of_plain(one)) for one in found)
        return [one for one, owner in owners if owner and owner["uid"] == metadata["uid"]]

    def create_owned(self, owner: Plain, obj: Plain) -> Plain:
        """Create an object of an owner; raises ApiError if it is refused."""
        return self.server.create(self.owned, with_owner(owner, obj))

    def delete_owned(self, obj: Plain) -> None:
        """Delete an object; raises ApiError if it is refused."""
        self.server.delete(key_of_plain(self.owned, obj), obj["metadata"]["uid"])

    def _owned_changed(self, key: Key, before: Plain | None, after: Plain | None) -> None:
        for obj in filter(None, (before, after)):
            owner = controller_of_plain(obj)
            if owner is not None and owner["kind"] == self.owner_kind:
                self._enqueue_soon(Key(self.kind, key.namespace, owner["name"]))


def controller_of_plain(obj: Plain) -> Plain | None:
    """Return the reference to the owner that is an object's controller, None if none is."""
    owners: list[Plain] = obj["metadata"].get("ownerReferences", [])
    return next((owner for owner in owners if owner.get("controller")), None)


# Owners of pods.

OnOwnedChange = Callable[[str, str, Pod | None, Pod | None], None]
"""Receives namespace and name of an owner, and one of its pods before and after a change."""
NOBODY: Final = ""
"""The kind of owner of the pods without a controller."""


class OwnedPods(Watching):
    """All pods, by their controller."""

    def __init__(self, server: Server) -> None:
        self._server = server
        self._by_owner: dict[str, dict[str, Pod]] = {}
        self._subscribers: dict[str, list[OnOwnedChange]] = {}
        self._followed = [server.watch(Pod, self._changed)]

    def subscribe(self, owner_kind: str, on_change: OnOwnedChange) -> None:
        """Report changes to the pods of owners of a kind, such as `ReplicaSet`."""
        self._subscribers.setdefault(owner_kind, []).append(on_change)

    def of(self, owner: Plain) -> list[Pod]:
        """Return the pods of an owner, oldest first."""
        return list(self._by_owner.get(owner["metadata"]["uid"], {}).values())

    def claim(
        self, server: AnyKindServer, owner: Plain, is_own: Callable[[Pod], bool]
    ) -> list[Pod]:
        """Adopt the own pods that have no controller, release the others; return the pods then."""
        uid, nobody = owner["metadata"]["uid"], _nobody_in(owner["metadata"]["namespace"]).uid
        for pod in self.of(owner):
            if not is_own(pod) and self._current(pod) is not None:
                server.disown(_key_of(pod), uid)
                self._drop(uid, pod.metadata.uid)
        for pod in filter(is_own, tuple(self._by_owner.get(nobody, {}).values())):
            found = None if pod.metadata.deletion_timestamp else server.find(*_key_of(pod))
            # The watch may not have reported yet that another owner has adopted it.
            if found is not None and controller_of_plain(found) is None:
                server.write(_key_of(pod), with_owner(owner, found))
                self._drop(nobody, pod.metadata.uid)
                self._refresh(uid, pod)
        return self.of(owner)

    def create(self, owner: Plain, pod: Plain) -> Pod:
        """Create a pod of an owner; raises ApiError if it is refused."""
        created = self._server.create_pod(with_owner(owner, pod))
        self._by_owner.setdefault(owner["metadata"]["uid"], {})[created.metadata.uid] = created
        return created

    def delete(self, pod: Pod) -> None:
        """Delete a pod, which may be gone already; raises ApiError if it is refused."""
        metadata = pod.metadata
        if self._current(pod) is not None:
            self._server.delete(_key_of(pod), metadata.uid)
        self._refresh(_owner_of(pod).uid, pod)

    def _refresh(self, owner_uid: str, pod: Pod) -> None:
        """Record a pod of an owner as it is now."""
        current = self._current(pod)
        if current is None:
            self._drop(owner_uid, pod.metadata.uid)
        else:
            self._by_owner.setdefault(owner_uid, {})[pod.metadata.uid] = current

    def _current(self, pod: Pod) -> Pod | None:
        metadata = pod.metadata
        found = self._server.read(Pod, metadata.namespace, metadata.name)
        return found if found is not None and found.metadata.uid == metadata.uid else None

    def _drop(self, owner_uid: str, uid: str) -> Pod | None:
        pods = self._by_owner.get(owner_uid, {})
        dropped = pods.pop(uid, None)
        if not pods:
            self._by_owner.pop(owner_uid, None)
        return dropped

    def _changed(self, _key: Key, before: Pod | None, after: Pod | None) -> None:
        old = None if before is None else _owner_of(before)
        new = None if after is None else _owner_of(after)
        is_same_pod = before and after and before.metadata.uid == after.metadata.uid
        if before is not None and old is not None and not (is_same_pod and old == new):
            self._report(before, old, self._drop(old.uid, before.metadata.uid), None)
        if after is not None and new is not None:
            pods = self._by_owner.setdefault(new.uid, {})
            known = pods.get(after.metadata.uid)
            # Writes through this object are recorded before the watch reports them.
            if known is None or known is before or _version(known) <= _version(after):
                pods[after.metadata.uid] = after
                self._report(after, new, known, after)

    def _report(
        self, pod: Pod, owner: OwnerReference, before: Pod | None, after: Pod | None
    ) -> None:
        for on_change in self._subscribers.get(owner.kind, ()):
            on_change(pod.metadata.namespace, owner.name, before, after)


def _version(pod: Pod) -> int:
    return int(pod.metadata.resource_version)


def _key_of(pod: Pod) -> Key:
    return Key("pods", pod.metadata.namespace, pod.metadata.name)


def _nobody_in(namespace: str) -> OwnerReference:
    return OwnerReference(kind=NOBODY, uid=f"/{namespace}")


def _owner_of(pod: Pod) -> OwnerReference:
    return controller_of(pod.metadata) or _nobody_in(pod.metadata.namespace)


def with_owner(owner: Plain, obj: Plain) -> Plain:
    """Return an object with the owner as its controller, in the owner's namespace."""
    metadata = owner["metadata"]
    reference = {
        "apiVersion": owner["apiVersion"],
        "kind": owner["kind"],
        "name": metadata["name"],
        "uid": metadata["uid"],
        "controller": True,
        "blockOwnerDeletion": True,
    }
    owners = [*obj["metadata"].get("ownerReferences", ()), reference]
    given = {**obj["metadata"], "namespace": metadata["namespace"], "ownerReferences": owners}
    return {**obj, "metadata": given}


class PodsController(OwnerController):
    """Reconciles owners of pods."""

    def __init__(self, server: Server, pods: OwnedPods, pause: Pause = short_pause) -> None:
        super().__init__(server, pause)
        self.pods = pods
        pods.subscribe(self.owner_kind, self._pod_changed)
        if isinstance(server, AnyKindServer):
            pods.subscribe(NOBODY, self._free_pod_changed)

    def claim(self, owner: Plain) -> list[Pod]:
        """Adopt and release pods; return those of an owner then, oldest first."""
        if not isinstance(self.server, AnyKindServer):
            return self.pods.of(owner)
        selector = self.selector_of(owner)

        def is_own(pod: Pod) -> bool:
            return self.is_own(owner, pod, selector.matches(pod.metadata.labels))

        return self.pods.claim(self.server, owner, is_own)

    def is_own(self, _owner: Plain, _pod: Pod, is_selected: bool) -> bool:
        """Whether an owner adopts or keeps a pod."""
        return is_selected

    def _free_pod_changed(
        self, namespace: str, _name: str, before: Pod | None, after: Pod | None
    ) -> None:
        labels = None if before is None else before.metadata.labels
        if after is not None and after.metadata.labels != labels:
            self.enqueue_selecting(namespace, after.metadata.labels)

    def _pod_changed(
        self, namespace: str, name: str, before: Pod | None, after: Pod | None
    ) -> None:
        # Without statuses, only lost pods matter.
        if self.server.keeps_statuses or self.is_loss(before, after):
            self._enqueue_soon(Key(self.kind, namespace, name))

    def is_loss(self, before: Pod | None, after: Pod | None) -> bool:
        """Whether an owner lacks a pod after a change."""
        was_active = before is not None and is_active(before)
        return was_active and (after is None or not is_active(after))

    def unavailable_seconds(self, owner: Plain, pod: Pod) -> float | None:
        """Return how long until a pod counts as available; 0 for now, None if it is not ready."""
        since, seconds = ready_since(pod), owner["spec"].get("minReadySeconds", 0)
        return None if since is None else max(0.0, since + seconds - self.server.now())

    def all_unavailable_seconds(
        self, key: Key, owner: Plain, pods: Iterable[Pod]
    ) -> list[float | None]:
        """Return how long until each pod counts as available, and reconcile the owner then."""
        waits = [self.unavailable_seconds(owner, pod) for pod in pods]
        soonest = min((wait for wait in waits if wait), default=None)
        if soonest is not None:
            self._enqueue_after(key, soonest)
        return waits


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
