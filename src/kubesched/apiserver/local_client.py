"""LocalClient is for those who live in the process of the server: kubelets and controllers.

Upstream: none; there they ask over the network.
Differs:  what it writes does not say who manages its fields, except for what it creates.
"""

from __future__ import annotations

from kubesched.apiserver import defaults
from kubesched.apiserver.deletion import DeleteOptions, delete
from kubesched.apiserver.operation import Operation
from kubesched.apiserver.plain import Plain, deep_copy
from kubesched.apiserver.registry import Registry
from kubesched.apiserver.request import Request, User
from kubesched.apiserver.resources import GroupVersion, Resource
from kubesched.apiserver.stored_object import StoredObject
from kubesched.apiserver.times import Clock
from kubesched.cluster.store import Key, Store

_MASTERS = ("system:masters", "system:authenticated")


class LocalClient:
    """Reads and writes as one user.

    Attributes:
        store: What is read.
        clock: The present.
    """

    def __init__(self, registry: Registry, user_name: str) -> None:
        """Take where objects are, and the name under which they are written."""
        self.store: Store[StoredObject] = registry.store
        self.clock: Clock = registry.clock
        self._registry = registry
        self._user = User(user_name, _MASTERS)
        self._agent = user_name.rpartition(":")[2]
        self._served: tuple[GroupVersion, ...] = ()
        self._by_kind: dict[str, Resource] = {}

    @property
    def _resources(self) -> dict[str, Resource]:
        """What can be deleted, by the kind that the store knows it under."""
        served = self._registry.resources.group_versions
        if served is not self._served:
            self._served = served
            self._by_kind = {}
            for resource in (one for group in served for one in group.resources):
                if "delete" in resource.verbs:
                    self._by_kind.setdefault(resource.storage_kind, resource)
        return self._by_kind

    def kinds(self, *, only_namespaced: bool = False) -> list[str]:
        """Return the kinds that the store may hold."""
        return [
            kind
            for kind, resource in self._resources.items()
            if resource.is_namespaced or not only_namespaced
        ]

    def is_namespaced(self, kind: str) -> bool:
        """Whether the objects of a kind live in namespaces."""
        return self._resources[kind].is_namespaced

    def kind_of(self, api_version: str, kind: str) -> str | None:
        """Return where the store keeps a kind, None if it is not served."""
        found = self._registry.resources.find_kind(api_version, kind)
        return None if found is None else found.storage_kind

    def find(self, kind: str, namespace: str, name: str) -> Plain | None:
        """Return an object, None if there is none."""
        found = self.store.find(Key(kind, namespace, name))
        return None if found is None else found.plain

    def list(self, kind: str, namespace: str | None = None) -> list[Plain]:
        """Return the objects of a kind, of one namespace or of all."""
        return [stored.plain for stored in self.store.list(kind, namespace).items]

    def create(self, kind: str, obj: Plain) -> Plain:
        """Create an object as any client would; return it.

        Raises:
            ApiError: It is refused.
        """
        resource = self._resources[kind]
        whole = {"kind": resource.kind, "apiVersion": resource.api_version, **deep_copy(obj)}
        namespace = whole["metadata"].get("namespace", "")
        operation = self._operation("POST", Key(kind, namespace, ""))
        return self._registry.create(operation, defaults.with_defaults(resource, whole)).plain

    def write(self, key: Key, plain: Plain) -> Plain:
        """Keep a new state of an object that is there; nobody is asked whether it is valid."""
        return self._registry.write(key, plain).plain

    def delete(
        self, key: Key, uid: str = "", grace_seconds: int | None = None, policy: str = "Background"
    ) -> None:
        """Delete an object, or begin to.

        Args:
            key: Of the object.
            uid: The identity it must have; "" for any.
            grace_seconds: How long it may take; None for what the object says.
            policy: What becomes of its dependents.

        Raises:
            ApiError: It is not there, or it is another one.
        """
        options = DeleteOptions(grace_seconds, policy, preconditions={"uid": uid} if uid else None)
        delete(self._registry, self._operation("DELETE", key), options)

    def release(self, key: Key, finalizer: str) -> None:
        """Take a finalizer off an object; it goes if that was the last thing that held it."""
        plain = self.find(*key)
        if plain is None or finalizer not in plain["metadata"].get("finalizers", ()):
            return
        metadata = dict(plain["metadata"])
        metadata["finalizers"] = [one for one in metadata["finalizers"] if one != finalizer]
        if not metadata["finalizers"]:
            del metadata["finalizers"]
        written = self.write(key, {**plain, "metadata": metadata})
        is_held = "finalizers" in metadata or metadata.get("deletionGracePeriodSeconds")
        if metadata.get("deletionTimestamp") and not is_held:
            self.store.delete(key, int(written["metadata"]["resourceVersion"]))

    def _operation(self, method: str, key: Key) -> Operation:
        headers = {"user-agent": self._agent}
        request = Request(method, "", headers=headers, user=self._user)
        return Operation(request, self._resources[key.kind], key.namespace, key.name)


def key_of(kind: str, plain: Plain) -> Key:
    """Return where an object of a kind is kept."""
    metadata = plain["metadata"]
    return Key(kind, metadata.get("namespace", ""), metadata["name"])
