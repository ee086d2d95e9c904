"""Cache updates the node table with what informers observe and with assumed pods.

A pod is in one of two states:

            assume_pod                     add_pod (the informer confirms)
    absent ───────────▶ Assumed ─────────────────────────────────────▶ Added ◀─┐
       ▲  ◀─────────────   │                                            │  └───┘ update_pod
       │    forget_pod     │ remove_pod                                 │
       └───────────────────┴────────────────────────────────────────────┘ remove_pod

    absent ── add_pod ──▶ Added

Upstream: pkg/scheduler/backend/cache (v1.36)
Invariants: every pod is on the row of its node, or is kept by node name until that node is added
          (`check()`).
Differs:  an update may move a pod to another node, and a removal may name another node than the
          pod was on; upstream exits with code 1. A snapshot is the table itself, so there is no
          refresh at the start of a cycle that could fail.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from itertools import chain

import msgspec

from kubesched.api.core import Node, Pod
from kubesched.api.meta import KubeObject
from kubesched.cache.pod_groups import PodGroupStore
from kubesched.snapshot.node_columns import NodeColumns
from kubesched.snapshot.nominator import Nominator
from kubesched.snapshot.objects import Objects, ObjectStore
from kubesched.snapshot.pod_info import PodInfo, uid_of
from kubesched.snapshot.snapshot import NO_NOMINATED_PODS, Snapshot


class CacheError(ValueError):
    """The operation does not apply to the pod's state."""


class CacheStatistics(msgspec.Struct, frozen=True):
    """Numbers of nodes, of pods on nodes, and of assumed pods among these."""

    nodes: int
    pods: int
    assumed_pods: int


class Cache:
    """Nodes, pods on nodes, and the other objects of a cluster.

    Attributes:
        nodes: The node table.
        pod_groups: The pods of each pod group; none without the gate GenericWorkload.
    """

    def __init__(self, *, has_pod_groups: bool = False) -> None:
        self.nodes = NodeColumns()
        self.pod_groups = PodGroupStore(is_enabled=has_pod_groups)
        self._objects = ObjectStore()
        self._without_nominated = Snapshot(self.nodes, self._objects)
        self._pods: dict[str, PodInfo] = {}
        self._assumed: dict[str, None] = {}
        self._waiting_for_node: dict[str, dict[str, PodInfo]] = {}

    @property
    def objects(self) -> Objects:
        """All objects but nodes and pods."""
        return self._objects

    def snapshot(self, nominated: Nominator = NO_NOMINATED_PODS) -> Snapshot:
        """Return the current cluster; it is not a copy, so it is valid until the next change."""
        if nominated is NO_NOMINATED_PODS:
            return self._without_nominated
        return Snapshot(self.nodes, self._objects, nominated)

    def statistics(self) -> CacheStatistics:
        """Return the current counts."""
        return CacheStatistics(len(self.nodes), len(self._pods), len(self._assumed))

    def assumed_pods(self) -> list[PodInfo]:
        """Return the pods that were assumed and not yet confirmed, in the order of assuming."""
        return [self._pods[uid] for uid in self._assumed]

    # Nodes and other objects.

    def add_node(self, node: Node) -> None:
        """Add or replace a node; pods that were observed before it are placed on it."""
        name = node.metadata.name
        if name in self.nodes.row_of:
            self.nodes.update_node(node)
            return
        row = self.nodes.add_node(node)
        for info in self._waiting_for_node.pop(name, {}).values():
            self.nodes.add_pod(info, row)

    def remove_node(self, name: str) -> None:
        """Remove a node; its pods are kept by node name until they are removed, too."""
        if name not in self.nodes.row_of:
            return
        pods = self.nodes.remove_node(name)
        if pods:
            self._waiting_for_node[name] = {info.uid: info for info in pods}

    def declare_complete(self, kinds: Iterable[type]) -> None:
        """Declare that there are no other objects of these kinds."""
        for kind in kinds:
            self._objects.declare_complete(kind)

    def put(self, item: KubeObject) -> KubeObject | None:
        """Add or replace any other object; return the one it replaces."""
        return self._objects.put(item)

    def delete(self, item: KubeObject) -> KubeObject | None:
        """Remove any other object; return it as stored, None if it was not."""
        return self._objects.delete(item)

    # Pods.

    def get_pod(self, uid: str) -> PodInfo | None:
        """Return an assumed or observed pod by its uid, None if there is none."""
        return self._pods.get(uid)

    def pods_without_node(self) -> dict[str, tuple[PodInfo, ...]]:
        """Return the pods whose node is unknown, by the node's name."""
        return {name: tuple(pods.values()) for name, pods in self._waiting_for_node.items()}

    def is_assumed(self, uid: str) -> bool:
        """Whether the pod was assumed and not yet confirmed by the informer."""
        return uid in self._assumed

    def assume_pod(self, info: PodInfo, node_name: str) -> PodInfo:
        """Place a pod on its chosen node before it is bound; return it with the node's name.

        Raises CacheError if the pod is in the cache already.
        """
        if info.uid in self._pods:
            raise CacheError(f"pod {info.uid}({info.key}) is in the cache, so can't be assumed")
        there = info.on_node(node_name)
        self._place(there)
        self._assumed[there.uid] = None
        self.pod_groups.assume(there)
        return there

    def forget_pod(self, info: PodInfo) -> None:
        """Undo `assume_pod`; unknown pods are ignored.

        Raises CacheError if the pod has been confirmed.
        """
        known = self._pods.get(info.uid)
        if known is None:
            return
        if info.uid not in self._assumed:
            raise CacheError(f"pod {info.uid}({info.key}) wasn't assumed so cannot be forgotten")
        self._displace(known)
        self.pod_groups.forget(known)

    def add_pod(self, pod: Pod) -> PodInfo:
        """Add an observed pod that has a node, or confirm an assumed one.

        Raises CacheError if the pod has been added already.
        """
        known = self._pods.get(uid_of(pod))
        info = PodInfo(pod, known)
        if known is not None:
            if info.uid not in self._assumed:
                raise CacheError(f"pod {info.uid}({info.key}) was already in added state")
            self.pod_groups.replace(known, info)
            # The usual confirmation changes nothing in the table, but for the topology labels of
            # the node, which the API server adds when it binds the pod.
            is_same = _is_same_on_table(known, info)
            if is_same or _holds_the_same(known, info):
                del self._assumed[info.uid]
                row = self._file(info)
                if row is not None and is_same:
                    self.nodes.replace_pod(info, row)
                elif row is not None:
                    self.nodes.relabel_pod(known, info, row)
                return info
            self._displace(known)
        else:
            self.pod_groups.add(info)
        self._place(info)
        return info

    def update_pod(self, pod: Pod) -> PodInfo:
        """Update an observed pod; raises CacheError if the pod has not been added."""
        known = self._pods.get(uid_of(pod))
        info = PodInfo(pod, known)
        if known is None or info.uid in self._assumed:
            raise CacheError(f"pod {info.uid}({info.key}) is not added, so can't be updated")
        self.pod_groups.replace(known, info)
        if _is_same_on_table(known, info):
            # The kubelet's usual status updates change nothing in the table.
            row = self._file(info)
            if row is not None:
                self.nodes.replace_pod(info, row, as_newest=True)
            return info
        self._displace(known)
        self._place(info)
        return info

    def remove_pod(self, uid: str) -> PodInfo | None:
        """Remove a pod; return it, None if it was unknown."""
        known = self._pods.get(uid)
        if known is not None:
            self._displace(known)
            self.pod_groups.delete(known)
        return known

    def _place(self, info: PodInfo) -> None:
        row = self._file(info)
        if row is not None:
            self.nodes.add_pod(info, row)

    def _file(self, info: PodInfo) -> int | None:
        """Store a pod; return the row of its node, None if it has to wait for the node."""
        self._pods[info.uid] = info
        row = self.nodes.row_of.get(info.node_name)
        if row is None:
            self._waiting_for_node.setdefault(info.node_name, {})[info.uid] = info
        return row

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

    def check(self) -> None:
        """Assert that every pod is on its node's row, and that the columns are right."""
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
        self.pod_groups.check()


def _is_same_on_table(known: PodInfo, info: PodInfo) -> bool:
    """Whether two versions of a pod are equal in every column, and to plugins of scope ROW."""
    if known.node_name != info.node_name or known.is_terminating != info.is_terminating:
        return False
    if known.pod.metadata.annotations != info.pod.metadata.annotations:
        return False
    before, after = known.template, info.template
    if before is after:
        return known.claim_names == info.claim_names
    # Templates also differ by the resources in the status, which may leave `held` unchanged.
    return (
        known.pod.spec == info.pod.spec
        and before.labels == after.labels
        and before.held == after.held
        and before.held_non_zero == after.held_non_zero
    )


def _holds_the_same(known: PodInfo, info: PodInfo) -> bool:
    """Whether two versions of a pod use the same resources, ports and claims of one node."""
    before, after = known.template, info.template
    return (
        known.node_name == info.node_name
        and before.held == after.held
        and before.held_non_zero == after.held_non_zero
        and before.host_ports == after.host_ports
        and known.claim_names == info.claim_names
    )


class PodLister:
    """The last observed state of every pod, like the lister of client-go's shared informer.

    Pods are stored by namespace, then by name, so that no pod needs a key of its own.
    """

    def __init__(self) -> None:
        self._namespaces: defaultdict[str, dict[str, Pod]] = defaultdict(dict)

    def all(self) -> Iterable[Pod]:
        """Return all pods, while none is added or removed."""
        return chain.from_iterable(pods.values() for pods in self._namespaces.values())

    def get(self, namespace: str, name: str) -> Pod | None:
        """Return the pod; None if there is none."""
        pods = self._namespaces.get(namespace)
        return None if pods is None else pods.get(name)

    def put(self, pod: Pod) -> None:
        """Store an added or changed pod."""
        self._namespaces[pod.metadata.namespace][pod.metadata.name] = pod

    def delete(self, pod: Pod) -> None:
        """Remove a deleted pod."""
        pods = self._namespaces[pod.metadata.namespace]
        pods.pop(pod.metadata.name, None)
        if not pods:
            del self._namespaces[pod.metadata.namespace]
