"""OwnedObjects knows the objects of a kind by the controller that owns them.

Upstream: pkg/controller/controller_ref_manager.go (v1.36)
Invariants: what an owner has created through it is there at once, so that nothing is created twice.
Differs:  objects without an owner are not adopted, nor are others released.
"""

from __future__ import annotations

from collections.abc import Callable

from kubesched.apiserver.follower import Follower
from kubesched.apiserver.local_client import LocalClient, key_of
from kubesched.apiserver.plain import Plain
from kubesched.cluster.store import Key

OnChange = Callable[[str, str], None]
"""Is told the namespace and the name of an owner of which an object changed."""


class OwnedObjects:
    """The objects of one kind."""

    def __init__(self, client: LocalClient, kind: str) -> None:
        """Take what to know.

        Args:
            client: Where objects are.
            kind: As the store names it.
        """
        self._client = client
        self._kind = kind
        self._by_owner: dict[str, dict[Key, None]] = {}
        self._told: dict[str, list[OnChange]] = {}
        self._follower = Follower(client.store, kind, self._changed)

    def start(self) -> None:
        """Follow from now on."""
        self._follower.start()

    def stop(self) -> None:
        """Follow no more."""
        self._follower.stop()

    def tell(self, owner_kind: str, on_change: OnChange) -> None:
        """Tell of changes to what owners of a kind, such as `ReplicaSet`, have."""
        self._told.setdefault(owner_kind, []).append(on_change)

    def of(self, owner: Plain) -> list[Plain]:
        """Return what an owner has now, oldest first."""
        uid = owner["metadata"]["uid"]
        found = (self._client.find(*key) for key in self._by_owner.get(uid, ()))
        return [one for one in found if one is not None and _owner_uid(one) == uid]

    def create(self, owner: Plain, obj: Plain) -> Plain:
        """Create an object that an owner has.

        Raises:
            ApiError: It is refused.
        """
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
        created = self._client.create(self._kind, {**obj, "metadata": given})
        self._note(metadata["uid"], key_of(self._kind, created))
        return created

    def delete(self, obj: Plain) -> None:
        """Delete an object.

        Raises:
            ApiError: It is refused.
        """
        self._client.delete(key_of(self._kind, obj), obj["metadata"]["uid"])

    def _note(self, uid: str, key: Key) -> None:
        self._by_owner.setdefault(uid, {})[key] = None

    def _changed(self, key: Key, before: Plain | None, after: Plain | None) -> None:
        old, new = controller_of(before), controller_of(after)
        if new is not None:
            self._note(new["uid"], key)
        if old is not None and (new is None or new["uid"] != old["uid"]):
            keys = self._by_owner.get(old["uid"], {})
            keys.pop(key, None)
            if not keys:
                self._by_owner.pop(old["uid"], None)
            self._tell(key.namespace, old)
        if new is not None:
            self._tell(key.namespace, new)

    def _tell(self, namespace: str, owner: Plain) -> None:
        for told in self._told.get(owner["kind"], ()):
            told(namespace, owner["name"])


def controller_of(obj: Plain | None) -> Plain | None:
    """Return the reference to the owner that looks after an object, None if there is none."""
    if obj is None:
        return None
    owners: list[Plain] = obj["metadata"].get("ownerReferences", [])
    return next((owner for owner in owners if owner.get("controller")), None)


def _owner_uid(obj: Plain) -> str:
    owner = controller_of(obj)
    return "" if owner is None else str(owner["uid"])
