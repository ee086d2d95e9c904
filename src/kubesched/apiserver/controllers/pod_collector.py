"""PodCollector removes pods whose node is gone.

Upstream: pkg/controller/podgc (v1.36)
Differs:  pods that have ended are kept, however many there are.
"""

from __future__ import annotations

from typing import Final

from kubesched.apiserver.controllers.following import Following
from kubesched.apiserver.controllers.work_queue import WorkQueue
from kubesched.apiserver.follower import Follower
from kubesched.apiserver.local_client import LocalClient
from kubesched.apiserver.plain import Plain
from kubesched.cluster.store import Key

# A node may come back under its name: so long its pods are left alone.
_QUARANTINE_SECONDS: Final = 40.0


class PodCollector(Following):
    """Follows nodes and pods."""

    def __init__(self, client: LocalClient) -> None:
        """Prepare; nothing happens before `start`."""
        self._client = client
        self._queue = WorkQueue(self._reconcile)
        self._by_node: dict[str, dict[Key, None]] = {}
        self._followers = (
            Follower(client.store, "nodes", self._node_changed),
            Follower(client.store, "pods", self._pod_changed),
        )

    def _node_changed(self, key: Key, _before: Plain | None, after: Plain | None) -> None:
        if after is None:
            self._queue.add_after(key, _QUARANTINE_SECONDS)

    def _pod_changed(self, key: Key, before: Plain | None, after: Plain | None) -> None:
        was, name = _node_name(before), _node_name(after)
        if was and was != name:
            keys = self._by_node[was]
            del keys[key]
            if not keys:
                del self._by_node[was]
        if name and was != name:
            self._by_node.setdefault(name, {})[key] = None
            if self._client.find("nodes", "", name) is None:
                self._queue.add_after(Key("nodes", "", name), _QUARANTINE_SECONDS)

    def _reconcile(self, node: Key) -> None:
        if self._client.find(*node) is None:
            for key in tuple(self._by_node.get(node.name, ())):
                self._client.delete(key, grace_seconds=0)


def _node_name(pod: Plain | None) -> str:
    return "" if pod is None else str(pod["spec"].get("nodeName", ""))
