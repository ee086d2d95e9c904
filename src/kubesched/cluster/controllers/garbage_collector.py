"""Controllers for objects without an owner, and for terminating namespaces and definitions.

Upstream: pkg/controller/garbagecollector, pkg/controller/namespace/deletion (v1.36)
Invariants: an object is deleted when none of its owners exists; one that waits for its dependents
            is deleted after the last dependent that blocks it.
Differs:  events are not collected; references to deleted owners stay while other owners exist;
          owners of kinds that are not served count as existing. No condition of the namespace lists
          its remaining objects.
"""

from __future__ import annotations

from contextlib import suppress
from typing import ClassVar, Final

from kubesched.api.errors import ApiError, NotFoundError
from kubesched.cluster.controllers.controller import Controller, KeyIndex
from kubesched.cluster.server import CLEANUP, AnyKindServer, Plain, Subscription, key_of_plain
from kubesched.cluster.store import Key

_FOREGROUND: Final = "foregroundDeletion"
_ORPHAN: Final = "orphan"
_NOT_OWNED: Final = ("events",)
_DEFINITIONS: Final = "customresourcedefinitions.apiextensions.k8s.io"


class GarbageCollector(Controller):
    """Deletes objects whose owners are gone, and dependents that a deletion waits for."""

    server: AnyKindServer

    def __init__(self, server: AnyKindServer) -> None:
        super().__init__(server)
        self._dependents: KeyIndex[str] = KeyIndex()
        self._kinds = [kind for kind in server.kinds() if kind not in _NOT_OWNED]
        self._followed: list[Subscription] = [
            server.follow(kind, self._changed) for kind in self._kinds
        ]
        if _DEFINITIONS in self._kinds:
            self._followed.append(server.follow(_DEFINITIONS, self._defined))

    # Watching.

    def _defined(self, key: Key, _before: Plain | None, after: Plain | None) -> None:
        """Follow the objects of an added kind, which are kept under its definition's name."""
        if after is not None and key.name not in self._kinds:
            self._kinds.append(key.name)
            added = self.server.follow(key.name, self._changed)
            self._followed.append(added)
            added.start()

    def _changed(self, key: Key, before: Plain | None, after: Plain | None) -> None:
        old, new = _owners(before), _owners(after)
        for uid in old:
            if uid not in new:
                self._dependents.drop(uid, key)
        for uid in new:
            self._dependents.add(uid, key)
        if after is None or (before is not None and _uid(before) != _uid(after)):
            assert before is not None, "what is gone was there"
            for dependent in self._dependents.of(_uid(before)):
                self._enqueue(dependent)
        if new or (after is not None and _is_waiting(after)):
            self._enqueue(key)
        # An owner that waits for its dependents may have waited for this one.
        if after is None or before is None or old != new:
            for reference in old.values():
                owner = self._key_of(reference, key.namespace)
                if owner is not None:
                    self._enqueue(owner)

    def _key_of(self, reference: Plain, namespace: str) -> Key | None:
        """Return where an owner is kept, None if that is unknown.

        Its kind may not be served, or need a namespace that its dependent does not have.
        """
        kind = self.server.kind_of(reference["apiVersion"], reference["kind"])
        if kind is None:
            return None
        is_namespaced = self.server.is_namespaced(kind)
        if is_namespaced and not namespace:
            return None
        return Key(kind, namespace if is_namespaced else "", reference["name"])

    # Reconciling.

    def _reconcile(self, key: Key) -> None:
        plain = self.server.find(*key)
        if plain is None:
            return
        finalizers = plain["metadata"].get("finalizers", ())
        if plain["metadata"].get("deletionTimestamp"):
            if _ORPHAN in finalizers:
                self._orphan(key, plain)
            elif _FOREGROUND in finalizers:
                self._delete_dependents(key, plain)
            return
        owners = _owners(plain)
        if owners and not any(self._is_there(one, key) for one in owners.values()):
            self.server.delete(key, _uid(plain))

    def _is_there(self, reference: Plain, dependent: Key) -> bool:
        """Whether an owner of this dependent exists."""
        owner_key = self._key_of(reference, dependent.namespace)
        if owner_key is None:
            # It may exist, so its dependents are kept.
            return True
        owner = self.server.find(*owner_key)
        return owner is not None and _uid(owner) == reference["uid"]

    def _orphan(self, key: Key, owner: Plain) -> None:
        for dependent in self._dependents.of(_uid(owner)):
            self.server.disown(dependent, _uid(owner))
        self.server.release(key, _ORPHAN)

    def _delete_dependents(self, key: Key, owner: Plain) -> None:
        is_blocked = False
        for dependent in self._dependents.of(_uid(owner)):
            plain = self.server.find(*dependent)
            reference = None if plain is None else _owners(plain).get(_uid(owner))
            if plain is None or reference is None:
                continue
            others = [one for uid, one in _owners(plain).items() if uid != _uid(owner)]
            if any(self._is_there(one, dependent) for one in others):
                self.server.disown(dependent, _uid(owner))
                continue
            if not plain["metadata"].get("deletionTimestamp"):
                self._delete(dependent, plain)
            reference = _owners(self.server.find(*dependent)).get(_uid(owner), {})
            is_blocked = is_blocked or bool(reference.get("blockOwnerDeletion"))
        if not is_blocked:
            self.server.release(key, _FOREGROUND)

    def _delete(self, key: Key, plain: Plain) -> None:
        own = [self.server.find(*one) for one in self._dependents.of(_uid(plain))]
        policy = "Foreground" if own else "Background"
        # It is gone, or is tried again with its owner.
        with suppress(ApiError):
            if any(one is not None and _is_waiting(one) for one in own):
                self._unblock(key, plain)
            self.server.delete(key, _uid(plain), policy=policy)

    def _unblock(self, key: Key, plain: Plain) -> None:
        """Do not let an object block its owners: in a cycle, each would wait for the others."""
        metadata = dict(plain["metadata"])
        metadata["ownerReferences"] = [
            {**one, "blockOwnerDeletion": False} for one in metadata["ownerReferences"]
        ]
        self.server.write(key, {**plain, "metadata": metadata})


def _uid(plain: Plain) -> str:
    return str(plain["metadata"]["uid"])


def _owners(plain: Plain | None) -> dict[str, Plain]:
    """Return the references to owners by uid."""
    if plain is None:
        return {}
    return {one["uid"]: one for one in plain["metadata"].get("ownerReferences", ())}


def _is_waiting(plain: Plain) -> bool:
    metadata = plain["metadata"]
    finalizers = metadata.get("finalizers", ())
    return bool(metadata.get("deletionTimestamp")) and (
        _FOREGROUND in finalizers or _ORPHAN in finalizers
    )


# The objects of terminating definitions and namespaces.

_FINALIZER: Final = "kubernetes"
_PAUSE_SECONDS: Final = 0.2


class _TerminatingController(Controller):
    """Reconciles objects of one kind that are being deleted."""

    kind: ClassVar[str]
    server: AnyKindServer

    def __init__(self, server: AnyKindServer) -> None:
        super().__init__(server)
        self._followed = (server.follow(self.kind, self._changed),)

    def _changed(self, key: Key, _before: Plain | None, after: Plain | None) -> None:
        if after is not None and after["metadata"].get("deletionTimestamp"):
            self._enqueue(key)


class DefinitionController(_TerminatingController):
    """Releases terminating CustomResourceDefinitions once they have no objects left."""

    kind = _DEFINITIONS

    def _reconcile(self, key: Key) -> None:
        if not self.server.list(key.name):
            self.server.release(key, CLEANUP)
        elif self.server.find(*key) is not None:
            self._enqueue_after(key, _PAUSE_SECONDS)


class NamespaceController(_TerminatingController):
    """Deletes the objects of terminating Namespaces, and then the Namespaces."""

    kind = "namespaces"

    def _reconcile(self, key: Key) -> None:
        namespace = self.server.find(*key)
        if namespace is None or not namespace["metadata"].get("deletionTimestamp"):
            return
        if self._empty(key.name):
            self._let_go(key, namespace)
        else:
            self._enqueue_after(key, _PAUSE_SECONDS)

    def _empty(self, name: str) -> bool:
        """Delete a namespace's pods, and then its other objects; return whether none is left."""
        if not self._clear("pods", name):
            return False
        kinds = self.server.kinds(only_namespaced=True)
        left = [kind for kind in kinds if not self._clear(kind, name)]
        return not left

    def _clear(self, kind: str, name: str) -> bool:
        """Delete a namespace's objects of a kind; return whether none is left."""
        if not self.server.store.count(kind):
            return True
        for plain in self.server.list(kind, name):
            if not plain["metadata"].get("deletionTimestamp"):
                self.server.delete(key_of_plain(kind, plain), plain["metadata"]["uid"])
        return not self.server.list(kind, name)

    def _let_go(self, key: Key, namespace: Plain) -> None:
        spec = dict(namespace.get("spec", {}))
        spec["finalizers"] = [one for one in spec.get("finalizers", []) if one != _FINALIZER]
        if not spec["finalizers"]:
            del spec["finalizers"]
        if spec != namespace.get("spec", {}):
            namespace = self.server.write(key, {**namespace, "spec": spec})
        if "finalizers" not in spec and not namespace["metadata"].get("finalizers"):
            with suppress(NotFoundError):
                self.server.delete(key, namespace["metadata"]["uid"])
