"""LocalClient is for those who live in the process of the server: kubelets and controllers.

Upstream: none; there they ask over the network.
Differs:  what it writes does not say who manages its fields, except for what it creates.
"""

from __future__ import annotations

from functools import cache

from kubesched.apiserver import defaults
from kubesched.apiserver.clock import Clock
from kubesched.apiserver.deletion import DeleteOptions, delete
from kubesched.apiserver.operation import Operation
from kubesched.apiserver.plain import Plain, deep_copy
from kubesched.apiserver.registry import Registry
from kubesched.apiserver.request import Request, User
from kubesched.apiserver.resource import Resource
from kubesched.apiserver.store import Key, Store
from kubesched.apiserver.stored_object import StoredObject

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
        self.resource = cache(self._resource)

    def _resource(self, kind: str) -> Resource:
        """Return the resource of a kind of the store, such as `replicasets.apps`."""
        plural, _, group = kind.partition(".")
        found = self._registry.resources.find(group, "v1", plural)
        assert found is not None, f"{kind} are served"
        return found

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
        resource = self.resource(kind)
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

    def _operation(self, method: str, key: Key) -> Operation:
        headers = {"user-agent": self._agent}
        request = Request(method, "", headers=headers, user=self._user)
        return Operation(request, self.resource(key.kind), key.namespace, key.name)


def key_of(kind: str, plain: Plain) -> Key:
    """Return where an object of a kind is kept."""
    metadata = plain["metadata"]
    return Key(kind, metadata.get("namespace", ""), metadata["name"])
