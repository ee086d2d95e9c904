"""Nominator holds the pods that are nominated to a node and not on it yet.

A nomination in memory may be ahead of the pod's `status.nominatedNodeName`, which is patched later.

Upstream: pkg/scheduler/backend/queue/nominator.go (v1.36)
Invariants: a pod is nominated to at most one node.
Differs:  a nomination to the empty node name is not stored; it has no effect upstream. Pods are
          kept with their nominations; upstream looks them up in the queues.
"""

from __future__ import annotations

from collections.abc import Callable

from kubesched.api.core import Pod
from kubesched.api.meta import ObjectMeta
from kubesched.snapshot.changes import ChangeLog, ChangeReader
from kubesched.snapshot.pod_info import PodInfo

# (namespace, name) -> the pod as last observed, None if it was deleted.
FindPod = Callable[[str, str], Pod | None]


class Nominator:
    """Node name -> pods nominated to it, in order of nomination.

    Attributes:
        by_node: The nominated pods per node name; a tuple is replaced when it changes.
        changes: The node of each nomination that was made or deleted.
    """

    def __init__(self, find_pod: FindPod | None = None) -> None:
        """Start without nominations.

        `find_pod` looks up a pod as last observed; a deleted or bound pod is not nominated. None
        skips this check.
        """
        self._find_pod = find_pod
        self.changes: ChangeLog[str] = ChangeLog()
        self.by_node: dict[str, tuple[PodInfo, ...]] = {}
        self._node_of: dict[str, str] = {}

    def __bool__(self) -> bool:
        return bool(self.by_node)

    def on_node(self, name: str) -> tuple[PodInfo, ...]:
        """Return the pods nominated to a node."""
        return self.by_node.get(name, ())

    def ahead_of(self, pod: PodInfo, node_name: str) -> list[PodInfo]:
        """Return the pods nominated to a node for which `pod` must leave room."""
        return [
            other
            for other in self.on_node(node_name)
            if other.priority >= pod.priority and other.uid != pod.uid
        ]

    def node_of(self, uid: str) -> str:
        """Return the node a pod is nominated to, "" if it is not."""
        return self._node_of.get(uid, "")

    def add(self, info: PodInfo, node_name: str | None = None) -> None:
        """Nominate a pod, replacing its previous nomination.

        "" as the node only deletes the nomination; None uses the pod's status.
        """
        self.delete(info.uid)
        if node_name is None:
            node_name = info.pod.status.nominated_node_name
        if node_name and self._may_be_nominated(info):
            self.put(info, node_name)

    def put(self, info: PodInfo, node_name: str) -> None:
        """Nominate a pod that is not nominated, even if it has changed or is gone."""
        self.by_node[node_name] = (*self.by_node.get(node_name, ()), info)
        self._node_of[info.uid] = node_name
        self.changes.add(node_name)

    def update(self, old: PodInfo, new: PodInfo) -> None:
        """Update a nominated pod.

        If neither version names a node, the nomination in memory stays: its patch is on the way.
        """
        kept = None
        if not old.pod.status.nominated_node_name and not new.pod.status.nominated_node_name:
            kept = self._node_of.get(old.uid)
        self.delete(old.uid)
        self.add(new, kept)

    def delete(self, uid: str) -> None:
        """Delete a pod's nomination, if it has one."""
        node_name = self._node_of.pop(uid, None)
        if node_name is not None:
            left = tuple([pod for pod in self.by_node[node_name] if pod.uid != uid])
            self.changes.add(node_name)
            if left:
                self.by_node[node_name] = left
            else:
                del self.by_node[node_name]

    def strip_pod(self, uid: str) -> None:
        """Reduce a nominated pod to its name, without priority and requests.

        This is all that upstream knows of a nominated pod that is in no queue.
        """
        if node_name := self.node_of(uid):
            (found,) = [info.pod.metadata for info in self.by_node[node_name] if info.uid == uid]
            named = ObjectMeta(name=found.name, namespace=found.namespace, uid=found.uid)
            self.delete(uid)
            self.put(PodInfo(Pod(metadata=named)), node_name)

    def check(self) -> None:
        """Assert that both directions agree."""
        pairs = {(pod.uid, node) for node, pods in self.by_node.items() for pod in pods}
        assert pairs == set(self._node_of.items()), "nominations disagree"
        assert all(self.by_node.values()), "a node without nominated pods is listed"

    def _may_be_nominated(self, info: PodInfo) -> bool:
        if self._find_pod is None:
            return True
        observed = self._find_pod(info.namespace, info.name)
        return observed is not None and not observed.spec.node_name


class ChangedNominations:
    """A reader of the nominations that count for pods which are tried one after the other."""

    def __init__(self) -> None:
        self._changes: ChangeReader[str] = ChangeReader()
        self._own = ""

    def read(self, nominated: Nominator, uid: str) -> list[str] | None:
        """Return the nodes with other nominations than for the pod of the last call.

        `uid` is that of the pod that is tried now; its own nomination does not count for it. None
        if those of any node may be others.
        """
        changed = self._changes.read(nominated.changes)
        before, self._own = self._own, nominated.node_of(uid)
        return None if changed is None else [*changed, before, self._own]
