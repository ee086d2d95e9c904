"""Showing prints the state of a scenario: queue, nodes, nominations, objects."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from kubesched.api.core import Pod
from kubesched.api.scheduling import PodGroup
from kubesched.cluster.server import kind_name
from kubesched.cluster.store import Key
from kubesched.framework.queued_pod_info import QueuedPodInfo
from kubesched.queue.moves import QueuePlace
from kubesched.scheduler.loop import Scheduler
from kubesched.simulator.object_server import ObjectServer
from kubesched.snapshot.pod_info import PodInfo

from .recorder import PLACES, rejectors_of, seconds_of, short


class Showing:
    """The output of `show` commands."""

    def __init__(self, scheduler: Scheduler, server: ObjectServer) -> None:
        self._scheduler = scheduler
        self._server = server

    def of(self, words: Sequence[str]) -> Iterator[str]:
        """Yield the lines of a command."""
        word, *names = words
        parts: dict[str, Callable[..., Iterator[str]]] = {
            "queue": self._queue,
            "nodes": self._nodes,
            "nominations": self._nominations,
            "waiting": self._waiting,
            "counts": self._counts,
            "pod": self._pod,
            "group": self._group,
        }
        return parts[word](*names)

    def _queue(self) -> Iterator[str]:
        for place in (
            QueuePlace.ACTIVE,
            QueuePlace.BACKOFF,
            QueuePlace.UNSCHEDULABLE,
            QueuePlace.IN_FLIGHT,
        ):
            pods = self._scheduler.queue.pods(place)
            entries = ", ".join(self._entry(queued, place) for queued in pods)
            yield f"  {PLACES[place]}: {entries or '-'}"

    def _entry(self, queued: QueuedPodInfo, place: QueuePlace) -> str:
        line = short(queued.pod_info.key)
        if place is QueuePlace.BACKOFF:
            until = self._scheduler.queue._backoff.expiration(queued)
            line += f" until {seconds_of(until)}"
        if queued.rejecting_plugins:
            line += f" {rejectors_of(queued)}"
        return line + (f" gated by {queued.gating_plugin}" if queued.is_gated else "")

    def _nodes(self) -> Iterator[str]:
        nodes = self._scheduler.cache.nodes
        for name, pods in zip(nodes.names, nodes.pods, strict=True):
            yield f"  {name}: {', '.join(self._there(pod) for pod in pods.values()) or '-'}"

    def _there(self, info: PodInfo) -> str:
        is_assumed = self._scheduler.cache.is_assumed(info.uid)
        return short(info.key) + (" (assumed)" if is_assumed else "")

    def _nominations(self) -> Iterator[str]:
        nominator = self._scheduler.queue.nominator
        for node in nominator.by_node:
            pods = ", ".join(short(info.key) for info in nominator.on_node(node))
            yield f"  {node}: {pods}"
        if not nominator:
            yield "  -"

    def _waiting(self) -> Iterator[str]:
        for waiting in self._scheduler.waiting_pods:
            yield f"  {short(waiting.pod.key)} for {' '.join(waiting.pending_plugins)}"
        if not len(self._scheduler.waiting_pods):
            yield "  -"

    def _counts(self) -> Iterator[str]:
        statistics = self._scheduler.queue.statistics()
        for plugin, profile, count in statistics.unschedulable_plugins:
            yield f'  unschedulable_pods{{plugin="{plugin}", profile="{profile}"}} {count}'
        for label, count in statistics.in_flight_events:
            yield f"  in flight: {label} {count}"

    def _pod(self, name: str) -> Iterator[str]:
        namespace, _, name = name.rpartition("/")
        pod = self._server.pod(namespace or "default", name)
        if pod is None:
            yield "  gone"
            return
        status, spec = pod.status, pod.spec
        yield f"  node {spec.node_name or '-'}, nominated to {status.nominated_node_name or '-'}"
        if pod.metadata.deletion_timestamp:
            yield f"  terminating since {pod.metadata.deletion_timestamp}"
        for condition in status.conditions:
            state = f"{condition.type}={condition.status}"
            yield f"  {state} {condition.reason} {condition.message}".rstrip()
        yield from self._attempts(pod)

    def _attempts(self, pod: Pod) -> Iterator[str]:
        info = PodInfo(pod)
        queued = self._scheduler.queue.get_pod(info.key)
        if queued is not None:
            counts = f"{queued.attempts} attempts, {queued.unschedulable_count} unschedulable"
            yield f"  {counts}, {queued.consecutive_errors_count} errors in a row"

    def _group(self, name: str) -> Iterator[str]:
        found = self._server.store.find(Key(kind_name(PodGroup), "default", name))
        assert isinstance(found, PodGroup), f"there is no group {name}"
        for condition in found.status.conditions:
            state = f"{condition.type}={condition.status}"
            yield f"  {state} {condition.reason} {condition.message}".rstrip()
