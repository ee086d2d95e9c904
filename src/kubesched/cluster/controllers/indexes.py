"""Indexes of objects: pods by owner and by node, and objects of any other kind by owner.

Upstream: pkg/controller/controller_ref_manager.go (v1.36)
Invariants: objects that a controller creates or deletes through an index count immediately, so none
            is created twice.
Differs:  objects without an owner are not adopted, and none are released.
"""

from __future__ import annotations

from collections.abc import Callable

from kubesched.api.core import Pod
from kubesched.api.meta import OwnerReference, controller_of
from kubesched.cluster.controllers.work_queue import WorkQueue
from kubesched.cluster.server import AnyKindServer, OnChange, Plain, Server, Watching, key_of_plain
from kubesched.cluster.store import Key

OnOwnedChange = Callable[[str, str, Pod | None, Pod | None], None]
"""Receives namespace and name of an owner, and one of its pods before and after a change."""

PODS = "pods"


class OwnedPods(Watching):
    """All pods that have a controller."""

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

    def create(self, owner: Plain, pod: Plain) -> Pod:
        """Create a pod of an owner; raises ApiError if it is refused."""
        created = self._server.create_pod(with_owner(owner, pod))
        self._by_owner.setdefault(owner["metadata"]["uid"], {})[created.metadata.uid] = created
        return created

    def delete(self, pod: Pod) -> None:
        """Delete a pod, which may be gone already; raises ApiError if it is refused."""
        metadata = pod.metadata
        if self._current(pod) is not None:
            self._server.delete(Key(PODS, metadata.namespace, metadata.name), metadata.uid)
        owner = controller_of(metadata)
        assert owner is not None, "owned pods have an owner"
        current = self._current(pod)
        if current is None:
            self._drop(owner, metadata.uid)
        else:
            self._by_owner.setdefault(owner.uid, {})[metadata.uid] = current

    def _current(self, pod: Pod) -> Pod | None:
        metadata = pod.metadata
        found = self._server.read(Pod, metadata.namespace, metadata.name)
        return found if found is not None and found.metadata.uid == metadata.uid else None

    def _drop(self, owner: OwnerReference, uid: str) -> Pod | None:
        pods = self._by_owner.get(owner.uid, {})
        dropped = pods.pop(uid, None)
        if not pods:
            self._by_owner.pop(owner.uid, None)
        return dropped

    def _changed(self, _key: Key, before: Pod | None, after: Pod | None) -> None:
        old = None if before is None else controller_of(before.metadata)
        new = None if after is None else controller_of(after.metadata)
        is_same = uid_of(before) == uid_of(after) and old == new
        if before is not None and old is not None and not is_same:
            self._report(before, old, self._drop(old, before.metadata.uid), None)
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
    given = {
        **obj["metadata"],
        "namespace": metadata["namespace"],
        "ownerReferences": [reference],
    }
    return {**obj, "metadata": given}


# Other kinds, as plain objects.


class OwnedKind(Watching):
    """The objects of a kind by their owners, such as the ReplicaSets of Deployments."""

    def __init__(
        self, server: AnyKindServer, kind: str, owners: str, owner_kind: str, queue: WorkQueue
    ) -> None:
        """Set up.

        `kind` and `owners` name the objects and their owners as the store does, `owner_kind` as
        objects do. The queue gets the owners of objects that change.
        """
        self._server = server
        self._kind = kind
        self._owners = owners
        self._owner_kind = owner_kind
        self._queue = queue
        self._followed = [server.follow(kind, self._changed)]

    def of(self, owner: Plain) -> list[Plain]:
        """Return the objects of an owner, oldest first."""
        metadata = owner["metadata"]
        found = self._server.list(self._kind, metadata["namespace"])
        return [one for one in found if _owner_uid(one) == metadata["uid"]]

    def create(self, owner: Plain, obj: Plain) -> Plain:
        """Create an object of an owner; raises ApiError if it is refused."""
        return self._server.create(self._kind, with_owner(owner, obj))

    def delete(self, obj: Plain) -> None:
        """Delete an object; raises ApiError if it is refused."""
        self._server.delete(key_of_plain(self._kind, obj), obj["metadata"]["uid"])

    def _changed(self, key: Key, before: Plain | None, after: Plain | None) -> None:
        for obj in (before, after):
            owner = None if obj is None else controller_of_plain(obj)
            if owner is not None and owner["kind"] == self._owner_kind:
                self._queue.add_soon(Key(self._owners, key.namespace, owner["name"]))


def controller_of_plain(obj: Plain) -> Plain | None:
    """Return the reference to the owner that is an object's controller, None if none is."""
    owners: list[Plain] = obj["metadata"].get("ownerReferences", [])
    return next((owner for owner in owners if owner.get("controller")), None)


def _owner_uid(obj: Plain) -> str:
    owner = controller_of_plain(obj)
    return "" if owner is None else str(owner["uid"])


# Pods by node.


class PodsByNode(Watching):
    """One watch on pods for all controllers that need them by node."""

    def __init__(self, server: Server) -> None:
        self._keys: dict[str, dict[Key, None]] = {}
        self._subscribers: list[OnChange[Pod]] = []
        self._followed = [server.watch(Pod, self._changed)]

    def subscribe(self, on_change: OnChange[Pod]) -> None:
        """Report changes to pods that were or are bound."""
        self._subscribers.append(on_change)

    def on(self, node_name: str) -> tuple[Key, ...]:
        """Return the pods of a node, in the order in which they were bound."""
        return tuple(self._keys.get(node_name, ()))

    def _changed(self, key: Key, before: Pod | None, after: Pod | None) -> None:
        old, new = node_name_of(before), node_name_of(after)
        if old and old != new:
            keys = self._keys[old]
            del keys[key]
            if not keys:
                del self._keys[old]
        if new:
            self._keys.setdefault(new, {})[key] = None
        if old or new:
            for on_change in self._subscribers:
                on_change(key, before, after)


def node_name_of(pod: Pod | None) -> str:
    """Return the node that a pod is bound to, "" if it is bound to none or gone."""
    return "" if pod is None else pod.spec.node_name


def uid_of(pod: Pod | None) -> str:
    """Return the uid of a pod, "" if it is gone."""
    return "" if pod is None else pod.metadata.uid
