"""LocalServer is the object server for kubelets and controllers.

Upstream: staging/src/k8s.io/client-go, as controllers use it (v1.36)
Differs:  requests take no time; statuses of workloads are not stored.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

import msgspec
from msgspec.structs import replace

from kubesched.api.core import Pod, PodSpec
from kubesched.api.errors import NotFoundError
from kubesched.api.meta import KubeObject, ObjectMeta
from kubesched.api.policy import PodDisruptionBudget, PodDisruptionBudgetStatus
from kubesched.api.scheme import kind_of
from kubesched.cluster.server import Plain, Server, Typed
from kubesched.cluster.store import Key
from kubesched.simulator.object_server import PODS, ObjectServer, key_of
from kubesched.simulator.virtual_loop import EPOCH

_SPECS_KEPT: Final = 256

Delay = Callable[[], float]


class LocalServer(Server):
    """Reads and writes the objects of a simulation for one reader."""

    keeps_statuses = False

    def __init__(self, server: ObjectServer, delays: Mapping[str, Delay]) -> None:
        """Set up; `delays` draw the seconds from a change until the reader receives it, by kind."""
        self.store = server.store
        self._server = server
        self._delays = delays
        self._plains: dict[Key, tuple[KubeObject, Plain]] = {}
        self._specs: dict[int, tuple[Plain, PodSpec]] = {}

    def now(self) -> float:
        """Return the seconds since the Unix epoch."""
        return EPOCH.timestamp() + self._server.now()

    def timestamp(self) -> str:
        """Return the time as Kubernetes writes it."""
        return self._server.timestamp()

    def _delay_of(self, kind: str) -> Delay | None:
        return self._delays.get(kind)

    def _typed(self, stored: Any, type_: type[Typed]) -> Typed:
        found: Typed = stored
        return found

    def _plain(self, stored: KubeObject) -> Plain:
        """Return an object as plain values; objects of a template share its values."""
        key = key_of(stored)
        known = self._plains.get(key)
        if known is not None and known[0] is stored:
            return known[1]
        plain = plain_workload(stored)
        spec = plain["spec"]
        if known is not None and known[1]["spec"]["template"] == spec["template"]:
            spec["template"] = known[1]["spec"]["template"]
        self._plains[key] = (stored, plain)
        return plain

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

    def patch_status(self, key: Key, status: Plain) -> None:
        """Replace the status of a disruption budget; other statuses are not stored.

        Raises:
            NotFoundError: It is gone.
        """
        found = self.store.get(key)
        if isinstance(found, PodDisruptionBudget):
            written = msgspec.convert(status, PodDisruptionBudgetStatus)
            self._server.update(replace(found, status=written))

    def delete(self, key: Key, uid: str = "", grace_seconds: int | None = None) -> None:
        """Delete an object; a pod gracefully, unless its grace is 0.

        Raises:
            ApiError: It is not there, or it is another one.
        """
        if key.kind == PODS and grace_seconds != 0:
            self._server.delete_pod(key.namespace, key.name, uid, grace_seconds)
            return
        found = self.store.get(key)
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
