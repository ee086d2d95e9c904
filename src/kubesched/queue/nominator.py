"""Nominator remembers which pods have been promised a node they are not on yet.

Upstream: pkg/scheduler/backend/queue/nominator.go (v1.36)
Invariants: a pod is promised at most one node.
Differs:  a nomination to the empty node name is not stored; it has no effect upstream.
"""

from __future__ import annotations

from collections.abc import Sequence

from kubesched.snapshot.pod_info import PodInfo


class Nominator:
    """Node name -> pods nominated to it, in order of nomination."""

    def __init__(self) -> None:
        self._by_node: dict[str, dict[str, PodInfo]] = {}
        self._node_of: dict[str, str] = {}

    def __bool__(self) -> bool:
        return bool(self._by_node)

    def on_node(self, name: str) -> Sequence[PodInfo]:
        """Return the pods nominated to a node."""
        pods = self._by_node.get(name)
        return list(pods.values()) if pods else ()

    def node_names(self) -> Sequence[str]:
        """Return the nodes that have nominated pods, in order of their first nomination."""
        return list(self._by_node)

    def node_of(self, uid: str) -> str:
        """Return the node a pod is nominated to, "" if it is not."""
        return self._node_of.get(uid, "")

    def add(self, info: PodInfo, node_name: str) -> None:
        """Promise a node to a pod, instead of what was promised before."""
        self.delete(info.uid)
        if node_name:
            self._by_node.setdefault(node_name, {})[info.uid] = info
            self._node_of[info.uid] = node_name

    def delete(self, uid: str) -> None:
        """Take a promise back; a pod without one is fine."""
        node_name = self._node_of.pop(uid, None)
        if node_name is not None:
            pods = self._by_node[node_name]
            del pods[uid]
            if not pods:
                del self._by_node[node_name]

    def check(self) -> None:
        """Assert that both directions agree."""
        pairs = {(uid, node) for node, pods in self._by_node.items() for uid in pods}
        assert pairs == set(self._node_of.items()), "nominations disagree"
        assert all(self._by_node.values()), "a node without nominated pods is listed"
