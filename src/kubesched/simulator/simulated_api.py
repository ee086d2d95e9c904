"""The clients of the simulated API server: the scheduler's, and that of kubelets and controllers.

The scheduler's has latencies and faults, the other one delays changes only.

Upstream: staging/src/k8s.io/client-go, as kube-scheduler and controllers use it (v1.36)
Invariants: a handler that applies all calls of an informer ends with the current objects.
Differs:  there is no client-side rate limit; changes within one latency arrive together; requests
          of kubelets and controllers take no time; statuses of workloads are not stored.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any, Final, TypeVarTuple

import msgspec
from msgspec.structs import replace

from kubesched.api.conditions import ConditionPatch
from kubesched.api.core import FINISHED, EventRecord, Pod, PodSpec
from kubesched.api.errors import ApiError, ConflictError, GoneError, NotFoundError
from kubesched.api.meta import KubeObject, ObjectMeta, ResourceEventHandler
from kubesched.api.policy import PodDisruptionBudget, PodDisruptionBudgetStatus
from kubesched.api.scheduling import PodGroup
from kubesched.api.scheme import kind_of
from kubesched.cluster.server import Follower, Plain, Server, Typed
from kubesched.cluster.store import Key, Store
from kubesched.simulator.faults import FaultPlan, Latencies, RandomStreams
from kubesched.simulator.object_server import PODS, ObjectServer, key_of
from kubesched.simulator.virtual_loop import EPOCH

Arguments = TypeVarTuple("Arguments")


class InstantApi:
    """An `ApiClient` over an `ObjectServer` that carries requests out within the call."""

    def __init__(self, server: ObjectServer) -> None:
        self._server = server

    async def bind(self, pod: Pod, node_name: str) -> None:
        """Assign the pod to the node."""
        await self._request("bind", self._bind, pod, node_name)

    def _bind(self, pod: Pod, node_name: str) -> None:
        metadata = pod.metadata
        self._server.bind(metadata.namespace, metadata.name, metadata.uid, node_name)

    async def patch_pod_status(
        self,
        pod: Pod,
        condition: ConditionPatch | None = None,
        nominated_node_name: str | None = None,
    ) -> None:
        """Set condition and nomination."""
        patch = self._server.patch_status
        await self._request("status", patch, pod, condition, nominated_node_name)

    async def patch_pod_group_status(self, group: PodGroup, condition: ConditionPatch) -> None:
        """Set the group's condition."""
        await self._request("status", self._server.patch_pod_group_status, group, condition)

    async def delete_pod(self, pod: Pod) -> None:
        """Delete the pod with its grace period."""
        metadata = pod.metadata
        delete = self._server.delete_pod
        await self._request("delete", delete, metadata.namespace, metadata.name, metadata.uid)

    def record_event(self, event: EventRecord) -> None:
        """Do nothing, because events are not read."""

    async def _request(
        self, kind: str, carry_out: Callable[[*Arguments], object], *arguments: *Arguments
    ) -> None:
        """Send a request of a kind: `bind`, `status` or `delete`."""
        carry_out(*arguments)


class SimulatedApi(InstantApi):
    """An `ApiClient` with latencies and faults, which are drawn from streams of their own.

    Attributes:
        requests: Number of requests by kind.
        failures: Number of refused or unanswered requests by kind.
        on_unanswered: Called with the node name of a binding whose response was lost.
    """

    def __init__(
        self,
        server: ObjectServer,
        random_streams: RandomStreams,
        latencies: Latencies,
        faults: FaultPlan,
    ) -> None:
        super().__init__(server)
        self._latency_seconds = latencies.request
        self._latency_stream = random_streams.stream("request-latency")
        self._faults = {"bind": faults.bind, "status": faults.status, "delete": faults.delete}
        self._fault_streams = {
            kind: random_streams.stream(f"faults/{kind}") for kind in self._faults
        }
        self._deletions = random_streams.stream("faults/deleted-while-binding")
        self._deleted_while_binding = faults.deleted_while_binding
        self.requests = dict.fromkeys(self._fault_streams, 0)
        self.failures = dict.fromkeys(self._fault_streams, 0)
        self.on_unanswered: Callable[[str], None] = lambda _node_name: None

    async def bind(self, pod: Pod, node_name: str) -> None:
        """Assign the pod to the node."""
        try:
            await self._request("bind", self._bind, pod, node_name)
        except ApiError as error:
            if not error.code:
                self.on_unanswered(node_name)
            raise

    def _bind(self, pod: Pod, node_name: str) -> None:
        metadata, share = pod.metadata, self._deleted_while_binding
        if share and self._deletions.random() < share:
            with suppress(NotFoundError):
                self._server.delete_pod(metadata.namespace, metadata.name)
        super()._bind(pod, node_name)

    async def _request(
        self, kind: str, carry_out: Callable[[*Arguments], object], *arguments: *Arguments
    ) -> None:
        """Send a request; raises ApiError if it was refused, with code 0 if the answer was lost."""
        self.requests[kind] += 1
        faults, stream = self._faults[kind], self._fault_streams[kind]
        is_conflict, is_error, is_lost, is_slow = (
            stream.random() < share
            for share in (faults.conflict, faults.error, faults.unanswered, faults.slow)
        )
        seconds = self._latency_seconds * self._latency_stream.uniform(0.5, 1.5)
        seconds += faults.slow_by if is_slow else 0.0
        await asyncio.sleep(seconds / 2)
        refusal: ApiError | None = None
        if is_conflict:
            refusal = ConflictError("simulated: the object has been modified")
        elif is_error:
            refusal = ApiError(500, "InternalError", "simulated: internal error")
        else:
            try:
                carry_out(*arguments)
            except ApiError as error:
                refusal = error
        await asyncio.sleep(seconds / 2)
        if refusal is None and is_lost:
            refusal = ApiError(0, "Unanswered", "simulated: the answer was lost")
        if refusal is not None:
            self.failures[kind] += 1
            raise refusal


# The scheduler's watches.


def _selected(item: KubeObject) -> KubeObject | None:
    """Return what the scheduler's field selector matches: no pods that have finished."""
    return None if isinstance(item, Pod) and item.status.phase in FINISHED else item


class SimulatedInformer(Follower[KubeObject, KubeObject]):
    """Passes all objects of a kind to a handler, then every change, in order.

    Each change arrives after a latency. A broken watch resumes where it stopped or, if the version
    has expired, relists: objects that are gone are then deleted with an unknown final state.
    """

    def __init__(
        self,
        store: Store[KubeObject],
        kind: str,
        handler: ResourceEventHandler,
        latency: Callable[[], float],
    ) -> None:
        """Set up; `start` begins to deliver objects and their changes to the handler.

        `latency` draws the seconds from a change to its delivery.
        """
        super().__init__(store, kind, self._deliver, _selected, latency, at_once=None)
        self._handler = handler

    @property
    def is_current(self) -> bool:
        """Whether every change was delivered."""
        return self._watch is not None and not self._watch.has_changes

    def lose(self, outage_seconds: float, *, expired: bool) -> None:
        """Break the watch; after the outage it resumes, with a new list if `expired`."""
        if self._watch is not None:
            version = 0 if expired else self._watch.version
            self.stop()
            asyncio.get_running_loop().call_later(outage_seconds, self._resume, version)

    def _resume(self, version: int) -> None:
        try:
            if version:
                self._follow(version)
        except GoneError:
            version = 0
        if not version:
            self._list_again()

    def _deliver(self, _key: Key, before: KubeObject | None, after: KubeObject | None) -> None:
        if after is None:
            assert before is not None, "what is gone was there"
            is_known = self.newest is not None
            self._handler.deleted(self.newest or before, is_final_state_known=is_known)
        elif before is None:
            self._handler.added(after)
        else:
            self._handler.updated(before, after)


# Kubelets and controllers.

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
        """Replace the status of a disruption budget; other statuses are not stored."""
        found = self.store.get(key)
        if isinstance(found, PodDisruptionBudget):
            written = msgspec.convert(status, PodDisruptionBudgetStatus)
            self._server.update(replace(found, status=written))

    def delete(self, key: Key, uid: str = "", grace_seconds: int | None = None) -> None:
        """Delete an object; a pod gracefully, unless its grace is 0."""
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
