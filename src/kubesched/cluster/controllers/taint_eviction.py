"""TaintEviction deletes pods from nodes whose taints they do not tolerate, or not for longer.

Upstream: pkg/controller/tainteviction (v1.36)
Differs:  no condition of the pod gives the reason for its deletion.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress

from kubesched.api.core import FINISHED, Node, Pod, Taint
from kubesched.api.errors import NotFoundError
from kubesched.api.tolerations import NO_EXECUTE, tolerates
from kubesched.cluster.controllers.indexes import PodsByNode, node_name_of, uid_of
from kubesched.cluster.controllers.work_queue import Following, WorkQueue
from kubesched.cluster.server import Server
from kubesched.cluster.store import Key

# Key, value.
_Taints = tuple[tuple[str, str], ...]


class TaintEviction(Following):
    """Deletes pods from tainted nodes; `on_evicted` is called before each deletion."""

    def __init__(self, server: Server, pods: PodsByNode) -> None:
        self.on_evicted: Callable[[Pod], None] = lambda _pod: None
        self._server = server
        self._queue = WorkQueue(self._reconcile)
        self._pods = pods
        pods.subscribe(self._pod_changed)
        self._tainted: dict[str, _Taints] = {}
        # When the toleration of a pod began, in seconds since the epoch.
        self._since: dict[Key, float] = {}
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
            self._queue.add(pod)

    def _pod_changed(self, key: Key, before: Pod | None, after: Pod | None) -> None:
        name = node_name_of(after)
        if not name or (before is not None and before.metadata.uid != uid_of(after)):
            self._since.pop(key, None)
        if name in self._tainted:
            self._queue.add(key)

    def _reconcile(self, key: Key) -> None:
        pod = self._server.read(Pod, key.namespace, key.name)
        if pod is None or pod.metadata.deletion_timestamp or pod.status.phase in FINISHED:
            self._since.pop(key, None)
            return
        taints = self._tainted.get(pod.spec.node_name, ())
        seconds = _tolerated_seconds(pod, taints)
        if seconds is None:
            self._since.pop(key, None)
            return
        now = self._server.now()
        left = self._since.setdefault(key, now) + seconds - now
        if left > 0:
            self._queue.add_after(key, left)
            return
        self._since.pop(key, None)
        self.on_evicted(pod)
        with suppress(NotFoundError):
            self._server.delete(key, pod.metadata.uid)


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
        matching = [one for one in pod.spec.tolerations if tolerates(one, taint)]
        if not matching:
            return 0.0
        limits += [one.toleration_seconds for one in matching if one.toleration_seconds is not None]
    return max(float(min(limits)), 0.0) if limits else None
