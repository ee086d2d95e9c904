"""Controllers of pods on nodes: they delete pods that do not tolerate taints, or lost their node.

Upstream: pkg/controller/{tainteviction,podgc} (v1.36)
Differs:  pods that have ended are kept, however many there are.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Final

from kubesched.api.core import FINISHED, Node, Pod, Taint
from kubesched.api.errors import NotFoundError
from kubesched.api.tolerations import NO_EXECUTE, tolerates
from kubesched.cluster.controllers.controller import Controller, KeyIndex
from kubesched.cluster.server import OnChange, Plain, Server, Watching, with_condition
from kubesched.cluster.store import Key


class PodsByNode(Watching):
    """One watch on pods for all controllers that need them by node."""

    def __init__(self, server: Server) -> None:
        self._keys: KeyIndex[str] = KeyIndex()
        self._subscribers: list[OnChange[Pod]] = []
        self._followed = [server.watch(Pod, self._changed)]

    def subscribe(self, on_change: OnChange[Pod]) -> None:
        """Report changes to pods that were or are bound."""
        self._subscribers.append(on_change)

    def on(self, node_name: str) -> tuple[Key, ...]:
        """Return the pods of a node, in the order in which they were bound."""
        return self._keys.of(node_name)

    def _changed(self, key: Key, before: Pod | None, after: Pod | None) -> None:
        old, new = _node_name_of(before), _node_name_of(after)
        if old and old != new:
            self._keys.drop(old, key)
        if new:
            self._keys.add(new, key)
        if old or new:
            for on_change in self._subscribers:
                on_change(key, before, after)


def _node_name_of(pod: Pod | None) -> str:
    """Return the node that a pod is bound to, "" if it is bound to none or gone."""
    return "" if pod is None else pod.spec.node_name


# Taints.

# Key, value.
_Taints = tuple[tuple[str, str], ...]


class TaintEviction(Controller):
    """Deletes pods from tainted nodes; `on_evicted` is called before each deletion."""

    def __init__(self, server: Server, pods: PodsByNode) -> None:
        super().__init__(server)
        self.on_evicted: Callable[[Pod], None] = lambda _pod: None
        self._pods = pods
        pods.subscribe(self._pod_changed)
        self._tainted: dict[str, _Taints] = {}
        # When a pod will be deleted, in seconds since the epoch.
        self._due: dict[Key, float] = {}
        self._followed = (server.watch(Node, self._node_changed),)

    def _node_changed(self, key: Key, _before: Node | None, after: Node | None) -> None:
        taints = _taints(after)
        if taints == self._tainted.get(key.name, ()):
            return
        if taints:
            self._tainted[key.name] = taints
        else:
            self._tainted.pop(key.name, None)
        for pod in self._pods.on(key.name):
            self._enqueue(pod)

    def _pod_changed(self, key: Key, before: Pod | None, after: Pod | None) -> None:
        name = _node_name_of(after)
        if not name or (before and after and before.metadata.uid != after.metadata.uid):
            self._due.pop(key, None)
        if name in self._tainted:
            self._enqueue(key)

    def _reconcile(self, key: Key) -> None:
        due = self._due.pop(key, None)
        pod = self.server.read(Pod, key.namespace, key.name)
        if pod is None or pod.metadata.deletion_timestamp or pod.status.phase in FINISHED:
            return
        taints = self._tainted.get(pod.spec.node_name, ())
        seconds = _tolerated_seconds(pod, taints)
        if seconds is None:
            return
        now = self.server.now()
        # As upstream, later taints and tolerations do not move the time.
        due = (due or now + seconds) if seconds else now
        if due > now:
            self._due[key] = due
            self._enqueue_after(key, due - now)
            return
        self.on_evicted(pod)
        with suppress(NotFoundError):
            _record(self.server, key, _TAINTED, {})
            self.server.delete(key, pod.metadata.uid)


def _taints(node: Node | None) -> _Taints:
    """Return the taints of a node for which pods have to leave it."""
    if node is None:
        return ()
    return tuple((one.key, one.value) for one in node.spec.taints if one.effect == NO_EXECUTE)


def _tolerated_seconds(pod: Pod, taints: _Taints) -> float | None:
    """Return how many seconds a pod tolerates taints; None for no limit."""
    limits: list[int] = []
    for key, value in taints:
        taint = Taint(key=key, value=value, effect=NO_EXECUTE)
        first = next((one for one in pod.spec.tolerations if tolerates(one, taint)), None)
        if first is None:
            return 0.0
        if first.toleration_seconds is not None:
            limits.append(first.toleration_seconds)
    return max(float(min(limits)), 0.0) if limits else None


# Nodes that are gone.

# A node may come back under its name; its pods are left alone for this time.
_QUARANTINE_SECONDS: Final = 40.0


class PodCollector(Controller):
    """Deletes the pods of removed nodes; `on_collected` is called with each before that."""

    def __init__(
        self, server: Server, pods: PodsByNode, quarantine_seconds: float = _QUARANTINE_SECONDS
    ) -> None:
        super().__init__(server)
        self.on_collected: Callable[[Pod], None] = lambda _pod: None
        self._quarantine_seconds = quarantine_seconds
        self._pods = pods
        pods.subscribe(self._pod_changed)
        self._followed = (server.watch(Node, self._node_changed),)

    def _node_changed(self, key: Key, _before: Node | None, after: Node | None) -> None:
        if after is None:
            self._enqueue_after(key, self._quarantine_seconds)

    def _pod_changed(self, _key: Key, before: Pod | None, after: Pod | None) -> None:
        name = _node_name_of(after)
        is_new = name and name != _node_name_of(before)
        if is_new and self.server.read(Node, "", name) is None:
            self._enqueue_after(Key("nodes", "", name), self._quarantine_seconds)

    def _reconcile(self, node: Key) -> None:
        if self.server.read(Node, "", node.name) is None:
            for key in self._pods.on(node.name):
                pod = self.server.read(Pod, key.namespace, key.name)
                if pod is not None:
                    self.on_collected(pod)
                    if pod.status.phase not in FINISHED:
                        failed = {"phase": "Failed", "observedGeneration": pod.metadata.generation}
                        _record(self.server, key, _ORPHANED, failed)
                    self.server.delete(key, grace_seconds=0)


# Why a pod is deleted: reason and message.
_TAINTED: Final = ("DeletionByTaintManager", "Taint manager: deleting due to NoExecute taint")
_ORPHANED: Final = ("DeletionByPodGC", "PodGC: node no longer exists")


def _record(server: Server, key: Key, why: tuple[str, str], fields: Plain) -> None:
    """Write into a pod's status why it is about to be deleted, and other fields.

    Nothing happens if it is gone, or where statuses are not kept.
    """
    pod = server.find(*key) if server.keeps_statuses else None
    if pod is not None:
        reason, message = why
        condition = {
            "type": "DisruptionTarget",
            "observedGeneration": pod["metadata"]["generation"],
            "status": "True",
            "reason": reason,
            "message": message,
        }
        status = with_condition(pod["status"], condition, server.timestamp())
        server.patch_status(key, {**status, **fields})
