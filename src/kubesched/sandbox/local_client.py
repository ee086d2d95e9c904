"""LocalClient reads and writes for kubelets and controllers in the process of the API server.

Upstream: none; there they use the network.
Differs:  managed fields are recorded only for objects that it creates.
"""

from __future__ import annotations

from kubesched.api.core import Pod
from kubesched.apiserver import defaults
from kubesched.apiserver.deletion import DeleteOptions, delete
from kubesched.apiserver.plain import Plain, deep_copy
from kubesched.apiserver.registry import ObjectRegistry
from kubesched.apiserver.request import ApiRequest, Operation, User
from kubesched.apiserver.resources import GroupVersion, Resource
from kubesched.apiserver.stored_object import StoredObject
from kubesched.apiserver.times import Clock
from kubesched.cluster.server import AnyKindServer, Typed
from kubesched.cluster.store import Key, Store

_MASTERS = ("system:masters", "system:authenticated")


class LocalClient(AnyKindServer):
    """Reads and writes in a registry, as one user."""

    keeps_statuses = True

    def __init__(self, registry: ObjectRegistry, user_name: str) -> None:
        self.store: Store[StoredObject] = registry.store
        self.clock: Clock = registry.clock
        self._registry = registry
        self._user = User(user_name, _MASTERS)
        self._agent = user_name.rpartition(":")[2]
        self._served: tuple[GroupVersion, ...] = ()
        self._by_kind: dict[str, Resource] = {}

    @property
    def _resources(self) -> dict[str, Resource]:
        """The resources that can be deleted, by their kind in the store."""
        served = self._registry.resources.group_versions
        if served is not self._served:
            self._served = served
            self._by_kind = {}
            for resource in (one for group in served for one in group.resources):
                if "delete" in resource.verbs:
                    self._by_kind.setdefault(resource.storage_kind, resource)
        return self._by_kind

    def now(self) -> float:
        """Return the seconds since the Unix epoch."""
        return self.clock.now().timestamp()

    def timestamp(self) -> str:
        """Return the time as Kubernetes writes it."""
        return self.clock.timestamp()

    def _typed(self, stored: StoredObject, type_: type[Typed]) -> Typed:
        return stored.typed(type_)

    def _plain(self, stored: StoredObject) -> Plain:
        return stored.plain

    def create_pod(self, pod: Plain) -> Pod:
        """Create a pod and return it; raises ApiError if it is refused."""
        return self._created("pods", pod).typed(Pod)

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

    def create(self, kind: str, obj: Plain) -> Plain:
        """Create an object as any client would, and return it; raises ApiError if it is refused."""
        return self._created(kind, obj).plain

    def _created(self, kind: str, obj: Plain) -> StoredObject:
        resource = self._resources[kind]
        whole = {"kind": resource.kind, "apiVersion": resource.api_version, **deep_copy(obj)}
        namespace = whole["metadata"].get("namespace", "")
        operation = self._operation("POST", Key(kind, namespace, ""))
        return self._registry.create(operation, defaults.with_defaults(resource, whole))

    def write(self, key: Key, plain: Plain) -> Plain:
        """Store a new state of an existing object, without validation."""
        return self._registry.write(key, plain).plain

    def delete(
        self, key: Key, uid: str = "", grace_seconds: int | None = None, policy: str = "Background"
    ) -> None:
        """Delete an object, or begin to; `policy` says what happens to its dependents."""
        options = DeleteOptions(grace_seconds, policy, preconditions={"uid": uid} if uid else None)
        delete(self._registry, self._operation("DELETE", key), options)

    def _operation(self, method: str, key: Key) -> Operation:
        headers = {"user-agent": self._agent}
        request = ApiRequest(method, "", headers=headers, user=self._user)
        return Operation(request, self._resources[key.kind], key.namespace, key.name)
