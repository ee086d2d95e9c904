"""Cache keeps the node table true to what was observed, plus what has been assumed since.

A pod is in one of two states:

            assume_pod                     add_pod (the informer confirms)
    absent ───────────▶ Assumed ─────────────────────────────────────▶ Added ◀─┐
       ▲  ◀─────────────   │                                            │  └───┘ update_pod
       │    forget_pod     │ remove_pod                                 │
       └───────────────────┴────────────────────────────────────────────┘ remove_pod

    absent ── add_pod ──▶ Added

Upstream: pkg/scheduler/backend/cache (v1.36)
Invariants: every pod is on the row of its node, or waits for that node under its name (`check()`).
Differs:  a pod whose node changes in an update, or that is removed from another node than it was
          on, is moved; upstream ends the process with exit code 1; a snapshot is the table itself,
          which changes with each observation: there is no refresh at the beginning of a cycle
          that could fail, and no cycle that ends in an error because of it.
"""

from __future__ import annotations

import msgspec

from kubesched.api.core import Node, Pod
from kubesched.cache.pod_groups import PodGroupStates
from kubesched.snapshot.node_table import NodeColumns
from kubesched.snapshot.objects import KubernetesObject, Objects, ObjectStore
from kubesched.snapshot.pod_info import PodInfo
from kubesched.snapshot.snapshot import NOBODY_NOMINATED, NominatedPods, Snapshot


class CacheError(ValueError):
    """A pod is not in the state that the operation needs."""


class CacheStatistics(msgspec.Struct, frozen=True):
    """Sizes, for metrics."""

    nodes: int
    pods: int
    assumed_pods: int


class Cache:
    """Nodes, pods on nodes, and the other objects of a cluster.

    Attributes:
        nodes: The node table.
        pod_groups: What pods each pod group has; None without GenericWorkload.
    """

    def __init__(self, pod_groups: PodGroupStates | None = None) -> None:
        self.nodes = NodeColumns()
        self.pod_groups = pod_groups
        self._objects = ObjectStore()
        self._without_nominated = Snapshot(self.nodes, self._objects)
        self._pods: dict[str, PodInfo] = {}
        self._assumed: dict[str, None] = {}
        self._waiting_for_node: dict[str, dict[str, PodInfo]] = {}

    @property
    def objects(self) -> Objects:
        """The other objects."""
        return self._objects

    def snapshot(self, nominated: NominatedPods = NOBODY_NOMINATED) -> Snapshot:
        """Return the cluster as it is now; nothing is copied, so use it before the next change."""
        if nominated is NOBODY_NOMINATED:
            return self._without_nominated
        return Snapshot(self.nodes, self._objects, nominated)

    def statistics(self) -> CacheStatistics:
        """Count what is here."""
        return CacheStatistics(len(self.nodes), len(self._pods), len(self._assumed))

    # Nodes and other objects.

    def add_node(self, node: Node) -> None:
        """Take in a node; pods that arrived before it move onto it."""
        name = node.metadata.name
        if name in self.nodes.row_of:
            self.nodes.update_node(node)
            return
        row = self.nodes.add_node(node)
        for info in self._waiting_for_node.pop(name, {}).values():
            self.nodes.add_pod(info, row)

    def update_node(self, node: Node) -> None:
        """Take in a changed node."""
        self.add_node(node)

    def remove_node(self, name: str) -> None:
        """Drop a node; its pods wait for it until they are removed themselves."""
        if name not in self.nodes.row_of:
            return
        pods = self.nodes.remove_node(name)
        if pods:
            self._waiting_for_node[name] = {info.uid: info for info in pods}

    def know(self, kind: type) -> None:
        """Note that all objects of a kind are here, even if there is none."""
        self._objects.know(kind)

    def put(self, item: KubernetesObject) -> KubernetesObject | None:
        """Take in any other object; return what it replaces."""
        return self._objects.put(item)

    def delete(self, item: KubernetesObject) -> KubernetesObject | None:
        """Drop any other object; return what was there."""
        return self._objects.delete(item)

    # Pods.

    def get_pod(self, uid: str) -> PodInfo | None:
        """Return a pod that is on a node, assumed or observed."""
        return self._pods.get(uid)

    def pods_without_node(self) -> dict[str, tuple[PodInfo, ...]]:
        """Return the pods whose node is not here, by the node's name."""
        return {name: tuple(pods.values()) for name, pods in self._waiting_for_node.items()}

    def is_assumed(self, uid: str) -> bool:
        """Whether the pod was placed here and not yet confirmed."""
        return uid in self._assumed

    def assume_pod(self, info: PodInfo, node_name: str) -> PodInfo:
        """Put a pod on the node it was placed on, before the API server knows; return it there.

        Raises:
            CacheError: if the pod is here already.
        """
        if info.uid in self._pods:
            raise CacheError(f"pod {info.uid}({info.key}) is in the cache, so can't be assumed")
        there = info.on_node(node_name)
        self._place(there)
        self._assumed[there.uid] = None
        if self.pod_groups is not None:
            self.pod_groups.assume(there)
        return there

    def forget_pod(self, info: PodInfo) -> None:
        """Undo `assume_pod`; a pod that is not here is fine.

        Raises:
            CacheError: if the pod has been confirmed.
        """
        known = self._pods.get(info.uid)
        if known is None:
            return
        if info.uid not in self._assumed:
            raise CacheError(f"pod {info.uid}({info.key}) wasn't assumed so cannot be forgotten")
        self._displace(known)
        if self.pod_groups is not None:
            self.pod_groups.forget(known)

    def add_pod(self, pod: Pod) -> PodInfo:
        """Take in an observed pod with a node; confirms an assumed one.

        Raises:
            CacheError: if the pod has been added already.
        """
        info = PodInfo(pod)
        known = self._pods.get(info.uid)
        if known is not None:
            if info.uid not in self._assumed:
                raise CacheError(f"pod {info.uid}({info.key}) was already in added state")
            self._regroup(known, info)
            if _is_same_on_table(known, info):
                # The usual confirmation: nothing that the table holds has changed.
                self._confirm(info)
                return info
            self._displace(known)
        elif self.pod_groups is not None:
            self.pod_groups.add(info)
        self._place(info)
        return info

    def update_pod(self, pod: Pod) -> PodInfo:
        """Take in a changed pod.

        Raises:
            CacheError: if the pod has not been added.
        """
        info = PodInfo(pod)
        known = self._pods.get(info.uid)
        if known is None or info.uid in self._assumed:
            raise CacheError(f"pod {info.uid}({info.key}) is not added, so can't be updated")
        self._regroup(known, info)
        if _is_same_on_table(known, info):
            # The kubelet's usual reports: nothing that the table holds has changed.
            self._replace(info, as_newest=True)
            return info
        self._displace(known)
        self._place(info)
        return info

    def remove_pod(self, uid: str) -> PodInfo | None:
        """Drop a pod; return it, or None if it was not here."""
        known = self._pods.get(uid)
        if known is not None:
            self._displace(known)
            if self.pod_groups is not None:
                self.pod_groups.delete(known)
        return known

    def _regroup(self, known: PodInfo, info: PodInfo) -> None:
        if self.pod_groups is not None:
            self.pod_groups.replace(known, info)

    def _place(self, info: PodInfo) -> None:
        self._pods[info.uid] = info
        row = self.nodes.row_of.get(info.node_name)
        if row is None:
            self._waiting_for_node.setdefault(info.node_name, {})[info.uid] = info
        else:
            self.nodes.add_pod(info, row)

    def _displace(self, info: PodInfo) -> None:
        del self._pods[info.uid]
        self._assumed.pop(info.uid, None)
        row = self.nodes.row_of.get(info.node_name)
        if row is not None:
            self.nodes.remove_pod(info, row)
            return
        waiting = self._waiting_for_node[info.node_name]
        del waiting[info.uid]
        if not waiting:
            del self._waiting_for_node[info.node_name]

    def _confirm(self, info: PodInfo) -> None:
        del self._assumed[info.uid]
        self._replace(info)

    def _replace(self, info: PodInfo, *, as_newest: bool = False) -> None:
        self._pods[info.uid] = info
        row = self.nodes.row_of.get(info.node_name)
        if row is None:
            self._waiting_for_node[info.node_name][info.uid] = info
        else:
            self.nodes.replace_pod(info, row, as_newest=as_newest)

    def check(self) -> None:
        """Assert that every pod is where its node name says, and the columns are true."""
        on_rows = {uid for pods in self.nodes.pods for uid in pods}
        waiting = {uid for pods in self._waiting_for_node.values() for uid in pods}
        assert not on_rows & waiting, "a pod is on a node and waits for one"
        assert on_rows | waiting == self._pods.keys(), "a pod is nowhere"
        assert self._assumed.keys() <= self._pods.keys(), "an assumed pod is unknown"
        for uid, info in self._pods.items():
            row = self.nodes.row_of.get(info.node_name)
            assert (row is None) == (uid in waiting), f"{info} is in the wrong place"
            assert row is None or uid in self.nodes.pods[row], f"{info} is on another node"
        self.nodes.check()
        self.nodes.groups.check()
        if self.pod_groups is not None:
            self.pod_groups.check()


def _is_same_on_table(known: PodInfo, info: PodInfo) -> bool:
    """Whether two versions of a pod count the same in every column."""
    if known.node_name != info.node_name or known.is_terminating != info.is_terminating:
        return False
    before, after = known.template, info.template
    # A kubelet's report of what it has given to the pod is a part of the template.
    return before is after or (
        known.pod.spec == info.pod.spec
        and before.labels == after.labels
        and before.held == after.held
        and before.held_non_zero == after.held_non_zero
    )
