"""Kubelets start the pods that are bound to their nodes, end them, and stop them when asked.

A pod that is to run for a time says so in an annotation; the others run until they are deleted.

Upstream: pkg/kubelet, as the API server sees it; pkg/controller/podgc (v1.36)
Invariants: a pod that runs is bound to a node that exists and answers.
Differs:  a pod that ended is removed at once; nodes never refuse a pod.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from enum import Enum
from typing import Final

from kubesched.api.core import Pod
from kubesched.simulator.latencies import Latencies
from kubesched.simulator.object_server import FINISHED, ObjectServer
from kubesched.simulator.random_streams import RandomStreams
from kubesched.snapshot.objects import KubernetesObject

RUN_SECONDS: Final = "simulation/run-seconds"
"""The annotation that says for how many seconds a pod runs."""


class Disruption(Enum):
    """What stops a pod that did not run to its end; preemption aside."""

    DRAINED = "drained"  # its node was drained
    EVICTED = "evicted"  # its node failed, and its toleration ended
    REMOVED = "removed"  # its node was removed
    RESTARTED = "restarted"  # its node failed and came back: it starts over there


def run_seconds_of(pod: Pod) -> float | None:
    """Return for how long a pod runs, None if until it is deleted."""
    text = pod.metadata.annotations.get(RUN_SECONDS)
    return None if text is None else float(text)


class _Work:
    """A pod on a node, and what is to happen to it next."""

    __slots__ = ("is_stopping", "name", "namespace", "node_name", "timer", "uid")

    def __init__(self, pod: Pod) -> None:
        self.namespace = pod.metadata.namespace
        self.name = pod.metadata.name
        self.uid = pod.metadata.uid
        self.node_name = pod.spec.node_name
        self.timer: asyncio.TimerHandle | None = None
        self.is_stopping = False

    def cancel(self) -> None:
        if self.timer is not None:
            self.timer.cancel()
            self.timer = None


class Kubelets:
    """The kubelets of all nodes; is told of pods.

    Attributes:
        on_finished: Called with each pod that ran to its end.
        on_disrupted: Called with each pod that its node's life stops.
    """

    def __init__(
        self, server: ObjectServer, random_streams: RandomStreams, latencies: Latencies
    ) -> None:
        self._server = server
        self._latencies = latencies
        self._starts = random_streams.stream("pod-start")
        self._stops = random_streams.stream("pod-stop")
        self._works: dict[str, _Work] = {}
        self._by_node: dict[str, dict[str, _Work]] = {}
        self._silent: dict[str, None] = {}
        self.on_finished: list[Callable[[Pod], None]] = []
        self.on_disrupted: Callable[[Pod, Disruption], None] = lambda _pod, _disruption: None

    # Pods.

    def added(self, item: KubernetesObject) -> None:
        """Take a pod in if it has a node."""
        assert isinstance(item, Pod), "kubelets follow pods"
        if not item.spec.node_name or item.status.phase in FINISHED:
            return
        work = self._works.get(item.metadata.uid)
        if work is None:
            work = _Work(item)
            self._works[work.uid] = work
            self._by_node.setdefault(work.node_name, {})[work.uid] = work
            self._take_up(work, item)
        elif item.metadata.deletion_timestamp and not work.is_stopping:
            self._take_up(work, item)

    def updated(self, old: KubernetesObject, new: KubernetesObject) -> None:
        """A pod may have got a node, or must stop."""
        if old.metadata.uid != new.metadata.uid:
            self.deleted(old)
        self.added(new)

    def deleted(self, item: KubernetesObject, *, is_final_state_known: bool = True) -> None:
        """Forget a pod."""
        work = self._works.pop(item.metadata.uid, None)
        if work is not None:
            work.cancel()
            on_node = self._by_node[work.node_name]
            del on_node[work.uid]
            if not on_node:
                del self._by_node[work.node_name]

    def _take_up(self, work: _Work, pod: Pod) -> None:
        """Begin whatever the pod's state asks for."""
        work.cancel()
        if work.node_name in self._silent:
            return
        loop = asyncio.get_running_loop()
        if self._server.node(work.node_name) is None:
            seconds = self._latencies.pod_garbage_collection
            work.timer = loop.call_later(seconds, self._collect, work)
        elif pod.metadata.deletion_timestamp:
            work.is_stopping = True
            seconds = self._latencies.pod_stop * self._stops.uniform(0.5, 1.5)
            grace = pod.metadata.deletion_grace_period_seconds or 0
            work.timer = loop.call_later(min(seconds, grace), self._remove, work)
        else:
            seconds = self._latencies.pod_start * self._starts.uniform(0.5, 1.5)
            work.timer = loop.call_later(seconds, self._start, work)

    def _start(self, work: _Work) -> None:
        work.timer = None
        pod = self._pod(work)
        if pod is None or pod.metadata.deletion_timestamp:
            return
        if pod.status.phase != "Running":
            pod = self._server.set_phase(pod, "Running")
        seconds = run_seconds_of(pod)
        if seconds is not None:
            work.timer = asyncio.get_running_loop().call_later(seconds, self._finish, work)

    def _finish(self, work: _Work) -> None:
        work.timer = None
        pod = self._pod(work)
        if pod is None or pod.metadata.deletion_timestamp:
            return
        pod = self._server.set_phase(pod, "Succeeded")
        for told in self.on_finished:
            told(pod)
        self._server.delete(pod)

    def _remove(self, work: _Work) -> None:
        work.timer = None
        pod = self._pod(work)
        if pod is not None:
            self._server.delete(pod)

    def _collect(self, work: _Work) -> None:
        """Remove a pod whose node is gone, unless the node came back."""
        work.timer = None
        pod = self._pod(work)
        if pod is None:
            return
        if self._server.node(work.node_name) is None:
            if not pod.metadata.deletion_timestamp:
                self.on_disrupted(pod, Disruption.REMOVED)
            self._server.delete(pod)
        else:
            self._take_up(work, pod)

    def _pod(self, work: _Work) -> Pod | None:
        return self._server.pod(work.namespace, work.name, work.uid)

    # Nodes.

    def pods_on(self, node_name: str) -> list[Pod]:
        """Return the pods that a node's kubelet has, in the order in which it got them."""
        works = self._by_node.get(node_name, {}).values()
        return [pod for work in works if (pod := self._pod(work)) is not None]

    def fall_silent(self, node_name: str) -> None:
        """The node fails: its pods lose their work, and nothing is heard of them."""
        self._silent[node_name] = None
        for work in self._by_node.get(node_name, {}).values():
            work.cancel()
            work.is_stopping = False

    def speak_again(self, node_name: str) -> None:
        """The node is back: pods start anew, or stop as they were told."""
        if node_name in self._silent:
            del self._silent[node_name]
            for pod in self.pods_on(node_name):
                if pod.status.phase == "Running" and not pod.metadata.deletion_timestamp:
                    self.on_disrupted(pod, Disruption.RESTARTED)
            self.look_again(node_name)

    def look_again(self, node_name: str) -> None:
        """The node came or went: see to its pods."""
        for work in list(self._by_node.get(node_name, {}).values()):
            pod = self._pod(work)
            if pod is not None and not work.is_stopping:
                self._take_up(work, pod)
