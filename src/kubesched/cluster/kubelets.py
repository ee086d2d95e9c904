"""Kubelets start pods that are bound to their nodes, end them, and stop deleted ones in time.

Upstream: pkg/kubelet, as the API server sees it (v1.36)
Invariants: a pod that starts is bound to a node that is there and ready; a deleted pod is gone when
            its grace period ends at the latest.
Differs:  nodes never refuse a pod or a resize; containers that end are restarted without backing
          off; there are no probes, static pods or deadlines; ephemeral containers never end. A
          deleted pod ends before it is removed only if it has finalizers.
"""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass

import msgspec

from kubesched.api.conditions import is_condition_true
from kubesched.api.core import FINISHED, Node, Pod
from kubesched.api.errors import ApiError
from kubesched.cluster.controllers.controller import is_active
from kubesched.cluster.server import Server, Subscription, Watching
from kubesched.cluster.store import Key


class Lifetime(msgspec.Struct, frozen=True):
    """How long the containers of a pod run, and what happens then.

    Attributes:
        seconds: From their start to their end.
        exit_code: Of all of them.
        restarts: Whether they start again; otherwise the pod has ended.
    """

    seconds: float
    exit_code: int = 0
    restarts: bool = False


class Pace(msgspec.Struct, frozen=True):
    """How long kubelets take.

    Attributes:
        start_seconds: Draws the time from a pod's binding to its start.
        stop_seconds: Draws the time from a pod's deletion to its end; its grace is the limit.
        lifetime_of: Returns how long a pod runs, None if until it is deleted.
    """

    start_seconds: Callable[[], float]
    stop_seconds: Callable[[], float]
    lifetime_of: Callable[[Pod], Lifetime | None]


class PodReports(ABC):
    """Writes what kubelets report of their pods; each report returns the pod as it is then.

    By default nothing but the pod's start and end is written.
    """

    @abstractmethod
    def started(self, pod: Pod) -> Pod:
        """All containers run."""

    def restarted(self, pod: Pod, exit_code: int) -> Pod:
        """All containers ended, and run again."""
        return pod

    @abstractmethod
    def ended(self, pod: Pod, exit_code: int) -> Pod:
        """All containers ended for good."""

    def changed(self, pod: Pod) -> None:  # noqa: B027 - most write nothing
        """A client may have changed a running pod, whose status may follow from that."""

    def forget(self, pod_uid: str) -> None:  # noqa: B027
        """A pod is gone."""


@dataclass(slots=True)
class _Work:
    """A pod on a node, and what happens to it next."""

    key: Key
    uid: str
    node_name: str
    timer: asyncio.TimerHandle | None = None
    stop_seconds: float | None = None
    stops_at: float | None = None

    def cancel(self) -> None:
        if self.timer is not None:
            self.timer.cancel()
            self.timer = None


class Kubelets(Watching):
    """The kubelets of all nodes; `on_finished` is called with each pod that ended by itself."""

    def __init__(self, server: Server, reports: PodReports, pace: Pace) -> None:
        self.on_finished: list[Callable[[Pod], None]] = []
        self._server = server
        self._reports = reports
        self._pace = pace
        self._works: dict[Key, _Work] = {}
        self._by_node: dict[str, dict[Key, _Work]] = {}
        self._up: dict[str, None] = {}
        self._followed: list[Subscription] = [server.watch(Pod, self._pod_changed)]

    def follow_nodes(self) -> None:
        """Run kubelets on ready nodes; otherwise `node_up` and `node_down` decide."""
        self._followed.insert(0, self._server.watch(Node, self._node_changed))

    def stop(self) -> None:
        """Stop; stopping twice is fine."""
        super().stop()
        for work in self._works.values():
            work.cancel()

    # Nodes.

    def _node_changed(self, key: Key, _before: Node | None, node: Node | None) -> None:
        if node is not None and is_condition_true(node.status.conditions, "Ready"):
            self.node_up(key.name)
        else:
            self.node_down(key.name)

    def is_up(self, name: str) -> bool:
        """Whether the kubelet of a node runs."""
        return name in self._up

    def node_up(self, name: str) -> None:
        """Start the kubelet of a node: its pods restart, or stop if they were deleted."""
        if name not in self._up:
            self._up[name] = None
            for work in tuple(self._by_node.get(name, {}).values()):
                pod = self._pod(work)
                if pod is not None:
                    self._take_up(work, pod)

    def node_down(self, name: str) -> None:
        """Stop the kubelet of a node: nothing more happens to its pods."""
        self._up.pop(name, None)
        for work in self._by_node.get(name, {}).values():
            work.cancel()
            work.stops_at = work.stop_seconds = None

    def pods_on(self, node_name: str) -> list[Pod]:
        """Return the pods that a node's kubelet has, in the order in which it got them."""
        works = self._by_node.get(node_name, {}).values()
        return [pod for work in works if (pod := self._pod(work)) is not None]

    # Pods.

    def _pod_changed(self, key: Key, _before: Pod | None, pod: Pod | None) -> None:
        work = self._works.get(key)
        if work is not None and (pod is None or pod.metadata.uid != work.uid):
            self._forget(work)
            work = None
        if pod is None or not pod.spec.node_name or pod.status.phase in FINISHED:
            return
        if work is None:
            work = self._works[key] = _Work(key, pod.metadata.uid, pod.spec.node_name)
            self._by_node.setdefault(work.node_name, {})[key] = work
            self._take_up(work, pod)
        elif pod.metadata.deletion_timestamp:
            self._stop_soon(work, pod)
        elif (current := self._active(work)) and current.status.phase == "Running":
            self._reports.changed(current)

    def _forget(self, work: _Work) -> None:
        work.cancel()
        del self._works[work.key]
        on_node = self._by_node[work.node_name]
        del on_node[work.key]
        if not on_node:
            del self._by_node[work.node_name]
        self._reports.forget(work.uid)

    def _take_up(self, work: _Work, pod: Pod) -> None:
        """Start or stop the pod, as its state requires; without its kubelet, nothing happens."""
        if work.node_name not in self._up:
            return
        if pod.metadata.deletion_timestamp:
            self._stop_soon(work, pod)
        elif pod.status.phase not in FINISHED:
            self._after(self._pace.start_seconds(), work, self._run)

    def _run(self, work: _Work) -> None:
        pod = self._active(work)
        if pod is not None:
            is_running = pod.status.phase == "Running"
            self._end_later(work, pod if is_running else self._reports.started(pod))

    def _end_later(self, work: _Work, pod: Pod) -> None:
        lifetime = self._pace.lifetime_of(pod)
        if lifetime is not None:
            self._after(lifetime.seconds, work, lambda work: self._end(work, lifetime))

    def _end(self, work: _Work, lifetime: Lifetime) -> None:
        pod = self._active(work)
        if pod is None:
            return
        if lifetime.restarts:
            self._end_later(work, self._reports.restarted(pod, lifetime.exit_code))
            return
        pod = self._reports.ended(pod, lifetime.exit_code)
        for call in self.on_finished:
            call(pod)

    def _stop_soon(self, work: _Work, pod: Pod) -> None:
        """Remove a pod after its grace period, which may have been shortened."""
        if work.node_name not in self._up:
            return
        grace = pod.metadata.deletion_grace_period_seconds or 0
        if not grace:
            # Only finalizers hold it.
            work.cancel()
            return
        if work.stop_seconds is None:
            work.stop_seconds = self._pace.stop_seconds()
        now = asyncio.get_running_loop().time()
        at = now + min(work.stop_seconds, grace)
        if work.stops_at is None or at < work.stops_at:
            work.stops_at = at
            self._after(at - now, work, self._remove)

    def _remove(self, work: _Work) -> None:
        pod = self._pod(work)
        if pod is None:
            return
        if pod.metadata.finalizers and pod.status.phase not in FINISHED:
            self._reports.ended(pod, 0)
        # Another client may have been faster.
        with suppress(ApiError):
            self._server.delete(work.key, work.uid, grace_seconds=0)

    def _after(self, seconds: float, work: _Work, step: Callable[[_Work], None]) -> None:
        work.cancel()

        def act() -> None:
            work.timer = None
            step(work)

        work.timer = asyncio.get_running_loop().call_later(max(seconds, 0.0), act)

    def _pod(self, work: _Work) -> Pod | None:
        """Return the pod as it is now, None if it is gone."""
        pod = self._server.read(Pod, work.key.namespace, work.key.name)
        return pod if pod is not None and pod.metadata.uid == work.uid else None

    def _active(self, work: _Work) -> Pod | None:
        """Return the pod as it is now, None if it is gone, being deleted or finished."""
        pod = self._pod(work)
        return pod if pod is not None and is_active(pod) else None
