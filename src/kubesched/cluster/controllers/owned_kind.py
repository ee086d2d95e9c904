"""OwnedKind tracks the objects of a kind by their controller, as plain objects.

Upstream: pkg/controller/controller_ref_manager.go (v1.36)
Differs:  objects without an owner are not adopted, nor are others released.
"""

from __future__ import annotations

from kubesched.cluster.controllers.owned_pods import with_owner
from kubesched.cluster.controllers.work_queue import WorkQueue
from kubesched.cluster.server import Plain, Server, key_of_plain
from kubesched.cluster.store import Key


class OwnedKind:
    """For example, the ReplicaSets of Deployments."""

    def __init__(
        self, server: Server, kind: str, owners: str, owner_kind: str, queue: WorkQueue
    ) -> None:
        """Set up; nothing happens before `start`.

        Args:
            server: Where objects are.
            kind: Of the objects, as the store names it.
            owners: The kind of their owners, in the same way.
            owner_kind: The same, as objects name it.
            queue: Gets the owners of objects that change.
        """
        self._server = server
        self._kind = kind
        self._owners = owners
        self._owner_kind = owner_kind
        self._queue = queue
        self._objects = server.follow(kind, self._changed)

    def start(self) -> None:
        """Watch objects from now on."""
        self._objects.start()

    def stop(self) -> None:
        """Stop watching."""
        self._objects.stop()

    def of(self, owner: Plain) -> list[Plain]:
        """Return the objects of an owner, oldest first."""
        metadata = owner["metadata"]
        found = self._server.list(self._kind, metadata["namespace"])
        return [one for one in found if _owner_uid(one) == metadata["uid"]]

    def create(self, owner: Plain, obj: Plain) -> Plain:
        """Create an object of an owner.

        Raises:
            ApiError: It is refused.
        """
        return self._server.create(self._kind, with_owner(owner, obj))

    def delete(self, obj: Plain) -> None:
        """Delete an object.

        Raises:
            ApiError: It is refused.
        """
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
