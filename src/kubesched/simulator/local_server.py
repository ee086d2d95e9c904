"""LocalServer is the object server for kubelets and controllers: a `cluster.server.Server`.

Upstream: staging/src/k8s.io/client-go, as controllers use it (v1.36)
Differs:  requests take no time; statuses of workloads are not stored.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

import msgspec
from msgspec.structs import replace

from kubesched.api.apps import ReplicaSet
from kubesched.api.core import Pod, PodSpec
from kubesched.api.errors import NotFoundError
from kubesched.api.meta import KubeObject, ObjectMeta
from kubesched.api.policy import PodDisruptionBudget, PodDisruptionBudgetStatus
from kubesched.api.scheme import KINDS, kind_of
from kubesched.cluster.server import Follower, OnChange, Plain, Typed, kind_name
from kubesched.cluster.store import Key
from kubesched.simulator.object_server import PODS, ObjectServer, key_of
from kubesched.simulator.virtual_loop import EPOCH, timestamp

_SPECS_KEPT: Final = 256

Delay = Callable[[], float]


class LocalServer:
    """Reads and writes the objects of a simulation for one reader."""

    keeps_statuses: bool = False

    def __init__(
        self,
        server: ObjectServer,
        seconds: Callable[[], float],
        delay_of: Callable[[str], Delay | None],
    ) -> None:
        """Set up; `seconds` returns the seconds since the start of the simulation.

        `delay_of` returns what draws the seconds from a change to a kind until the reader receives
        it; None for no delay.
        """
        self._server = server
        self._seconds = seconds
        self._delay_of = delay_of
        self._plains: dict[Key, tuple[KubeObject, Plain]] = {}
        self._specs: dict[int, tuple[Plain, PodSpec]] = {}

    def now(self) -> float:
        """Return the seconds since the Unix epoch."""
        return EPOCH.timestamp() + self._seconds()

    def timestamp(self) -> str:
        """Return the time as Kubernetes writes it."""
        return timestamp(self._seconds())

    # Pods, nodes and disruption budgets.

    def watch(self, type_: type[Typed], on_change: OnChange[Typed]) -> Follower[KubeObject, Typed]:
        """Return a subscription to the objects of a class; it has to be started."""
        kind = kind_name(type_)

        def view(item: Any) -> Any:
            return item

        return Follower(self._server.store, kind, on_change, view, self._delay_of(kind))

    def read(self, type_: type[Typed], namespace: str, name: str) -> Typed | None:
        """Return an object, None if there is none."""
        return self._server.find(type_, namespace, name)

    def all(self, type_: type[Typed], namespace: str | None = None) -> Sequence[Typed]:
        """Return the objects of a class, of one namespace or of all."""
        return self._server.all(type_, namespace)

    def create_pod(self, pod: Plain) -> Pod:
        """Create a pod and return it; raises ApiError if it is refused."""
        metadata = msgspec.convert(pod["metadata"], ObjectMeta)
        spec = self._spec(pod["spec"])
        return self._server.create(Pod(api_version="v1", kind="Pod", metadata=metadata, spec=spec))

    def _spec(self, plain: Plain) -> PodSpec:
        """Return the specification of plain values; pods of a template share one."""
        known = self._specs.get(id(plain))
        if known is not None and known[0] is plain:
            return known[1]
        if len(self._specs) >= _SPECS_KEPT:
            del self._specs[next(iter(self._specs))]
        spec = msgspec.convert(plain, PodSpec)
        self._specs[id(plain)] = (plain, spec)
        return spec

    # Plain objects.

    def follow(self, kind: str, on_change: OnChange[Plain]) -> Follower[KubeObject, Plain]:
        """Return a subscription to the objects of a kind; it has to be started."""
        delay = self._delay_of(kind)
        return Follower(self._server.store, kind, on_change, self._plain, delay)

    def find(self, kind: str, namespace: str, name: str) -> Plain | None:
        """Return an object, None if there is none."""
        found = self._server.store.find(Key(kind, namespace, name))
        return None if found is None else self._plain(found)

    def list(self, kind: str, namespace: str | None = None) -> list[Plain]:
        """Return the objects of a kind, of one namespace or of all."""
        return [self._plain(item) for item in self._server.store.list(kind, namespace).items]

    def _plain(self, item: KubeObject) -> Plain:
        """Return an object as plain values; objects of a template share its values."""
        key = key_of(item)
        known = self._plains.get(key)
        if known is not None and known[0] is item:
            return known[1]
        plain = plain_workload(item)
        spec = plain["spec"]
        if known is not None and known[1]["spec"]["template"] == spec["template"]:
            spec["template"] = known[1]["spec"]["template"]
        self._plains[key] = (item, plain)
        return plain

    def create(self, kind: str, obj: Plain) -> Plain:
        """Create an object and return it; raises ApiError if it is refused."""
        type_ = next(one.type for one in KINDS if kind_name(one.type) == kind)
        return self._plain(self._server.create(msgspec.convert(obj, type_)))

    def patch_status(self, key: Key, status: Plain) -> None:
        """Replace the status of a disruption budget; other statuses are not stored.

        Raises:
            NotFoundError: It is gone.
        """
        found = self._server.store.get(key)
        if isinstance(found, PodDisruptionBudget):
            written = msgspec.convert(status, PodDisruptionBudgetStatus)
            self._server.update(replace(found, status=written))

    def annotate(self, key: Key, name: str, value: str) -> None:
        """Set an annotation of an object; nothing happens if it is gone."""
        found = self._server.store.find(key)
        if found is not None:
            annotations = {**found.metadata.annotations, name: value}
            metadata = replace(found.metadata, annotations=annotations)
            self._server.update(replace(found, metadata=metadata))

    def scale(self, key: Key, replicas: int) -> None:
        """Set the number of replicas of a replica set; raises NotFoundError if it is gone."""
        found = self._server.store.get(key)
        assert isinstance(found, ReplicaSet), "nothing else is scaled here"
        metadata = replace(found.metadata, generation=found.metadata.generation + 1)
        spec = replace(found.spec, replicas=replicas)
        self._server.update(replace(found, metadata=metadata, spec=spec))

    def delete(self, key: Key, uid: str = "", grace_seconds: int | None = None) -> None:
        """Delete an object; a pod gracefully, unless its grace is 0.

        Raises:
            ApiError: It is not there, or it is another one.
        """
        if key.kind == PODS and grace_seconds != 0:
            self._server.delete_pod(key.namespace, key.name, uid, grace_seconds)
            return
        found = self._server.store.get(key)
        if uid and found.metadata.uid != uid:
            raise NotFoundError(f'{key.kind} "{key.name}" not found')
        self._server.delete(found)


def plain_workload(item: KubeObject) -> Plain:
    """Return an object as plain values, with the fields that controllers of workloads read."""
    kind = kind_of(type(item))
    found: Plain = msgspec.to_builtins(item)
    spec = {**found.get("spec", {})}
    spec["template"] = {"spec": {}, **spec.get("template", {})}
    return {**found, "apiVersion": kind.api_version, "kind": kind.kind, "spec": spec}
