"""PodCollector deletes pods whose node is gone.

Upstream: pkg/controller/podgc (v1.36)
Differs:  pods that have ended are kept, however many there are.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from kubesched.api.core import Node, Pod
from kubesched.cluster.controllers.following import Following
from kubesched.cluster.controllers.pods_by_node import PodsByNode, node_name_of
from kubesched.cluster.controllers.work_queue import WorkQueue
from kubesched.cluster.server import Server
from kubesched.cluster.store import Key

QUARANTINE_SECONDS: Final = 40.0
"""A node may come back under its name; its pods are left alone for this time."""


class PodCollector(Following):
    """Deletes the pods of removed nodes.

    Attributes:
        on_collected: Called with each pod that is about to be removed.
    """

    def __init__(
        self, server: Server, pods: PodsByNode, quarantine_seconds: float = QUARANTINE_SECONDS
    ) -> None:
        """Set up; nothing happens before `start`."""
        self.on_collected: Callable[[Pod], None] = lambda _pod: None
        self._server = server
        self._quarantine_seconds = quarantine_seconds
        self._queue = WorkQueue(self._reconcile)
        self._pods = pods
        pods.subscribe(self._pod_changed)
        self._followed = (server.watch(Node, self._node_changed),)

    def _node_changed(self, key: Key, _before: Node | None, after: Node | None) -> None:
        if after is None:
            self._queue.add_after(key, self._quarantine_seconds)

    def _pod_changed(self, _key: Key, before: Pod | None, after: Pod | None) -> None:
        name = node_name_of(after)
        is_new = name and name != node_name_of(before)
        if is_new and self._server.read(Node, "", name) is None:
            self._queue.add_after(Key("nodes", "", name), self._quarantine_seconds)

    def _reconcile(self, node: Key) -> None:
        if self._server.read(Node, "", node.name) is None:
            for key in self._pods.on(node.name):
                pod = self._server.read(Pod, key.namespace, key.name)
                if pod is not None:
                    self.on_collected(pod)
                    self._server.delete(key, grace_seconds=0)
