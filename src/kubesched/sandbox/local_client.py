"""LocalClient reads and writes for kubelets and controllers in the process of the API server.

Upstream: none; there they use the network.
Differs:  managed fields are recorded only for objects that it creates.
"""

from __future__ import annotations

from collections.abc import Sequence

from kubesched.api.core import Pod
from kubesched.apiserver import defaults
from kubesched.apiserver.deletion import DeleteOptions, delete
from kubesched.apiserver.plain import Plain, deep_copy
from kubesched.apiserver.registry import ObjectRegistry
from kubesched.apiserver.request import ApiRequest, Operation, User
from kubesched.apiserver.resources import GroupVersion, Resource
from kubesched.apiserver.stored_object import StoredObject
from kubesched.apiserver.times import Clock
from kubesched.cluster.server import Follower, OnChange, Typed, kind_name
from kubesched.cluster.store import Key, Store

_MASTERS = ("system:masters", "system:authenticated")


class LocalClient:
    """Reads and writes as one user; a `cluster.server.Server`."""

    keeps_statuses: bool = True

    def __init__(self, registry: ObjectRegistry, user_name: str) -> None:
        """Read and write in a registry, as a user of this name."""
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

    # Pods, nodes and disruption budgets.

    def watch(
        self, type_: type[Typed], on_change: OnChange[Typed]
    ) -> Follower[StoredObject, Typed]:
        """Return a subscription to the objects of a class; it has to be started."""
        kind = kind_name(type_)
        return Follower(self.store, kind, on_change, lambda stored: stored.typed(type_))

    def read(self, type_: type[Typed], namespace: str, name: str) -> Typed | None:
        """Return an object, None if there is none."""
        found = self.store.find(Key(kind_name(type_), namespace, name))
        return None if found is None else found.typed(type_)

    def all(self, type_: type[Typed], namespace: str | None = None) -> Sequence[Typed]:
        """Return the objects of a class, of one namespace or of all."""
        found = self.store.list(kind_name(type_), namespace).items
        return [stored.typed(type_) for stored in found]

    def create_pod(self, pod: Plain) -> Pod:
        """Create a pod and return it; raises ApiError if it is refused."""
        return self._created("pods", pod).typed(Pod)

    # Plain objects.

    def follow(self, kind: str, on_change: OnChange[Plain]) -> Follower[StoredObject, Plain]:
        """Return a subscription to the objects of a kind; it has to be started."""
        return Follower(self.store, kind, on_change, lambda stored: stored.plain)

    def kinds(self, *, only_namespaced: bool = False) -> list[str]:
        """Return the kinds that the store may hold."""
        return [
            kind
            for kind, resource in self._resources.items()
            if resource.is_namespaced or not only_namespaced
        ]

    def count(self, kind: str) -> int:
        """Return how many objects of a kind there are."""
        return self.store.count(kind)

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
        """Create an object as any client would, and return it; raises ApiError if it is refused."""
        return self._created(kind, obj).plain

    def _created(self, kind: str, obj: Plain) -> StoredObject:
        resource = self._resources[kind]
        whole = {"kind": resource.kind, "apiVersion": resource.api_version, **deep_copy(obj)}
        namespace = whole["metadata"].get("namespace", "")
        operation = self._operation("POST", Key(kind, namespace, ""))
        return self._registry.create(operation, defaults.with_defaults(resource, whole))

    def patch_status(self, key: Key, status: Plain) -> None:
        """Replace the status of an object; raises NotFoundError if it is gone."""
        self.write(key, {**self.store.get(key).plain, "status": status})

    def annotate(self, key: Key, name: str, value: str) -> None:
        """Set an annotation of an object; nothing happens if it is gone."""
        plain = self.find(*key)
        if plain is not None:
            metadata = plain["metadata"]
            annotations = {**metadata.get("annotations", {}), name: value}
            if annotations != metadata.get("annotations"):
                changed = {**metadata, "annotations": annotations}
                self.write(key, {**plain, "metadata": changed})

    def scale(self, key: Key, replicas: int) -> None:
        """Set the number of replicas of a workload; raises NotFoundError if it is gone."""
        plain = self.store.get(key).plain
        metadata = {**plain["metadata"]}
        metadata["generation"] = metadata.get("generation", 0) + 1
        spec = {**plain["spec"], "replicas": replicas}
        self.write(key, {**plain, "metadata": metadata, "spec": spec})

    def write(self, key: Key, plain: Plain) -> Plain:
        """Store a new state of an existing object, without validation."""
        return self._registry.write(key, plain).plain

    def delete(
        self, key: Key, uid: str = "", grace_seconds: int | None = None, policy: str = "Background"
    ) -> None:
        """Delete an object, or begin to; the grace period is by default the object's own.

        `uid` is the identity it must have, "" for any; `policy` says what happens to its
        dependents.

        Raises:
            ApiError: It is not there, or it is another one.
        """
        options = DeleteOptions(grace_seconds, policy, preconditions={"uid": uid} if uid else None)
        delete(self._registry, self._operation("DELETE", key), options)

    def release(self, key: Key, finalizer: str) -> None:
        """Remove a finalizer from an object, and delete the object if nothing else holds it."""
        plain = self.find(*key)
        if plain is None or finalizer not in plain["metadata"].get("finalizers", ()):
            return
        metadata = dict(plain["metadata"])
        metadata["finalizers"] = [one for one in metadata["finalizers"] if one != finalizer]
        if not metadata["finalizers"]:
            del metadata["finalizers"]
        self.write(key, {**plain, "metadata": metadata})
        is_held = "finalizers" in metadata or metadata.get("deletionGracePeriodSeconds")
        if metadata.get("deletionTimestamp") and not is_held:
            self.store.delete(key)

    def _operation(self, method: str, key: Key) -> Operation:
        headers = {"user-agent": self._agent}
        request = ApiRequest(method, "", headers=headers, user=self._user)
        return Operation(request, self._resources[key.kind], key.namespace, key.name)
