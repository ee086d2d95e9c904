"""DaemonSetController keeps one pod of each DaemonSet on every node that it selects.

Upstream: pkg/controller/daemon (v1.36)
Differs:  revisions are not kept, so rollbacks are impossible; with maxSurge, the old pod of a node
          is deleted before the new one is created, too.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

import msgspec

from kubesched.api.core import Node, Pod, PodSpec
from kubesched.api.selectors import matches_required_node_affinity, required_node_selector
from kubesched.api.tolerations import HARD_EFFECTS, NO_EXECUTE, find_untolerated
from kubesched.cluster.controllers.controller import (
    BURST,
    OwnedPods,
    Pause,
    PodsController,
    is_active,
    pod_of,
    scaled,
    short_pause,
)
from kubesched.cluster.controllers.deployments import template_hash
from kubesched.cluster.server import Plain, Server, key_of_plain
from kubesched.cluster.store import Key

_HASH: Final = "controller-revision-hash"
_TOLERATED: Final = (
    ("node.kubernetes.io/not-ready", "NoExecute"),
    ("node.kubernetes.io/unreachable", "NoExecute"),
    ("node.kubernetes.io/disk-pressure", "NoSchedule"),
    ("node.kubernetes.io/memory-pressure", "NoSchedule"),
    ("node.kubernetes.io/pid-pressure", "NoSchedule"),
    ("node.kubernetes.io/unschedulable", "NoSchedule"),
)
_NETWORK: Final = ("node.kubernetes.io/network-unavailable", "NoSchedule")


class DaemonSetController(PodsController):
    """Reconciles DaemonSets."""

    kind = "daemonsets.apps"
    owner_kind = "DaemonSet"
    written_zeros = (
        "currentNumberScheduled",
        "numberMisscheduled",
        "desiredNumberScheduled",
        "numberReady",
    )

    def __init__(self, server: Server, pods: OwnedPods, pause: Pause = short_pause) -> None:
        super().__init__(server, pods, pause)
        self._followed.append(server.watch(Node, self._node_changed))

    def _node_changed(self, _key: Key, _before: Node | None, _after: Node | None) -> None:
        for owner in self.server.list(self.kind):
            self._enqueue_soon(key_of_plain(self.kind, owner))

    def is_loss(self, before: Pod | None, after: Pod | None) -> bool:
        """Whether a node may need a pod: a pod is replaced once the old one is gone."""
        return after is None or super().is_loss(before, after)

    def reconcile(self, key: Key, owner: Plain) -> None:
        """Create missing pods, and delete pods that should not exist."""
        pod = _daemon_of(owner)
        wanted, tolerated = _nodes_for(pod, self.server.all(Node))
        on_node = self._pods_by_node(owner, tolerated)
        missing = [name for name in wanted if name not in on_node]
        try:
            for name in missing[:BURST]:
                self.pods.create(owner, _bound_to(pod, name))
            self._roll(owner, on_node, len(missing))
        finally:
            if self.server.keeps_statuses:
                self._count(key, owner, wanted)
        if len(missing) > BURST:
            self._enqueue(key)

    def _pods_by_node(self, owner: Plain, tolerated: dict[str, None]) -> dict[str, Pod]:
        """Return the pod of each node; surplus, failed and misplaced pods are deleted."""
        found: dict[str, Pod] = {}
        for pod in self.claim(owner):
            name = node_name_of(pod)
            if not name:
                continue
            if not is_active(pod):
                if not pod.metadata.deletion_timestamp:
                    self.pods.delete(pod)
                elif name not in found:
                    # Its replacement is created once it is gone.
                    found[name] = pod
            elif name not in tolerated or (name in found and is_active(found[name])):
                self.pods.delete(pod)
            else:
                found[name] = pod
        return found

    def _roll(self, owner: Plain, on_node: dict[str, Pod], missing: int) -> None:
        """Delete pods of another template, at most maxUnavailable at a time."""
        strategy = owner["spec"].get("updateStrategy", {})
        if strategy.get("type") == "OnDelete":
            return
        rolling, nodes = strategy.get("rollingUpdate", {}), len(on_node) + missing
        # One of both is 0.
        most = scaled(rolling.get("maxUnavailable", 1), nodes)
        limit = (most or scaled(rolling.get("maxSurge", 0), nodes)) - missing
        current = template_hash(owner)
        old = []
        for pod in on_node.values():
            is_available = is_active(pod) and self.unavailable_seconds(owner, pod) == 0
            limit -= not is_available
            if is_active(pod) and pod.metadata.labels.get(_HASH) != current:
                old.append((is_available, pod))
        # Unavailable pods may be deleted at once.
        for is_available, pod in old:
            if not is_available or limit > 0:
                limit -= is_available
                self.pods.delete(pod)

    def _count(self, key: Key, owner: Plain, wanted: dict[str, None]) -> None:
        pods = {node_name_of(pod): pod for pod in self.pods.of(owner) if is_active(pod)}
        here = [pod for name, pod in pods.items() if name in wanted]
        waits = self.all_unavailable_seconds(key, owner, here)
        available = waits.count(0.0)
        current = template_hash(owner)
        self.update_status(
            key,
            {
                "currentNumberScheduled": len(here),
                "numberMisscheduled": len(pods) - len(here),
                "desiredNumberScheduled": len(wanted),
                "numberReady": sum(wait is not None for wait in waits),
                "updatedNumberScheduled": sum(
                    pod.metadata.labels.get(_HASH) == current for pod in here
                ),
                "numberAvailable": available,
                "numberUnavailable": len(wanted) - available,
            },
        )


def daemons_of(owner: Plain, nodes: Iterable[Node]) -> dict[str, Plain]:
    """Return the pod of a DaemonSet on each node that it selects, by node name."""
    pod = _daemon_of(owner)
    wanted, _ = _nodes_for(pod, nodes)
    return {name: _bound_to(pod, name) for name in wanted}


def _daemon_of(owner: Plain) -> Plain:
    """Return a pod of a DaemonSet, with tolerations and its revision, without its node."""
    template = owner["spec"]["template"]
    spec, metadata = template["spec"], template.get("metadata", {})
    taints = (*_TOLERATED, _NETWORK) if spec.get("hostNetwork") else _TOLERATED
    added = [{"key": key, "operator": "Exists", "effect": effect} for key, effect in taints]
    labels = {**metadata.get("labels", {}), _HASH: template_hash(owner)}
    tolerant = {
        **template,
        "metadata": {**metadata, "labels": labels},
        "spec": {**spec, "tolerations": [*spec.get("tolerations", []), *added]},
    }
    return pod_of(tolerant, owner["metadata"]["name"])


def _nodes_for(plain: Plain, nodes: Iterable[Node]) -> tuple[dict[str, None], dict[str, None]]:
    """Return the nodes that need a pod, and those where a pod may stay."""
    spec = msgspec.convert(plain["spec"], PodSpec)
    tolerations = spec.tolerations
    wanted: dict[str, None] = {}
    tolerated: dict[str, None] = {}
    for node in nodes:
        name, taints = node.metadata.name, node.spec.taints
        if spec.node_name not in ("", name) or not matches_required_node_affinity(spec, node):
            continue
        if find_untolerated(taints, tolerations, (NO_EXECUTE,)) is None:
            tolerated[name] = None
        if find_untolerated(taints, tolerations, HARD_EFFECTS) is None:
            wanted[name] = None
    return wanted, tolerated


def _bound_to(pod: Plain, node_name: str) -> Plain:
    """Return a pod whose required affinity names one node only."""
    requirement = {"key": "metadata.name", "operator": "In", "values": [node_name]}
    terms = [{"matchFields": [requirement]}]
    affinity = pod["spec"].get("affinity", {})
    node_affinity = {
        **affinity.get("nodeAffinity", {}),
        "requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms},
    }
    return {**pod, "spec": {**pod["spec"], "affinity": {**affinity, "nodeAffinity": node_affinity}}}


def node_name_of(pod: Pod) -> str:
    """Return the node that a daemon pod is on, or is meant for; "" for an adopted pod of none."""
    required = required_node_selector(pod.spec)
    if pod.spec.node_name or required is None:
        return pod.spec.node_name
    fields = [field for term in required.node_selector_terms for field in term.match_fields]
    return fields[0].values[0] if fields else ""
