"""DaemonSetController keeps a pod of each daemon set on every node that it selects.

Upstream: pkg/controller/daemon (v1.36)
Differs:  revisions are not kept, so that nothing can be rolled back; maxSurge is not known.
"""

from __future__ import annotations

from math import ceil
from typing import Final

from kubesched.api.codec import decode_object
from kubesched.api.core import Node, Pod
from kubesched.api.selectors import required_node_affinity
from kubesched.api.tolerations import HARD_EFFECTS, NO_EXECUTE, find_untolerated
from kubesched.apiserver.controllers.deployments import template_hash
from kubesched.apiserver.controllers.owned_objects import OwnedObjects
from kubesched.apiserver.controllers.owner_controller import OwnerController, is_active, pod_of
from kubesched.apiserver.follower import Follower
from kubesched.apiserver.local_client import LocalClient
from kubesched.apiserver.plain import Plain
from kubesched.cluster.store import Key

_HASH: Final = "controller-revision-hash"
# So many pods are created before others have their turn.
_BURST: Final = 50
_TROUBLES: Final = (
    ("node.kubernetes.io/not-ready", "NoExecute"),
    ("node.kubernetes.io/unreachable", "NoExecute"),
    ("node.kubernetes.io/disk-pressure", "NoSchedule"),
    ("node.kubernetes.io/memory-pressure", "NoSchedule"),
    ("node.kubernetes.io/pid-pressure", "NoSchedule"),
    ("node.kubernetes.io/unschedulable", "NoSchedule"),
)
_NETWORK: Final = ("node.kubernetes.io/network-unavailable", "NoSchedule")


class DaemonSetController(OwnerController):
    """Looks after all daemon sets."""

    def __init__(self, client: LocalClient, pods: OwnedObjects) -> None:
        super().__init__(client, "daemonsets.apps", "DaemonSet", pods)
        self._nodes = Follower(client.store, "nodes", self._node_changed)
        self._typed: dict[str, tuple[Plain, Node]] = {}

    def start(self) -> None:
        """Look at all daemon sets, and follow them and the nodes from now on."""
        super().start()
        self._nodes.start()

    def stop(self) -> None:
        """Do nothing more."""
        super().stop()
        self._nodes.stop()

    def _node_changed(self, key: Key, _before: Plain | None, after: Plain | None) -> None:
        if after is None:
            self._typed.pop(key.name, None)
        for daemon_set in self.client.store.list(self.kind).items:
            metadata = daemon_set.plain["metadata"]
            self.queue.add(Key(self.kind, metadata["namespace"], metadata["name"]))

    def _node(self, plain: Plain) -> Node:
        """Return a node as values; each state of it is read once."""
        name = plain["metadata"]["name"]
        known = self._typed.get(name)
        if known is None or known[0] is not plain:
            node = decode_object(plain)
            assert isinstance(node, Node), "nodes are nodes"
            known = self._typed[name] = (plain, node)
        return known[1]

    def reconcile(self, key: Key, owner: Plain) -> None:
        """Create the pods that are missing, and delete those that have no business."""
        template = _tolerant(owner)
        pod = pod_of(template, owner["metadata"]["name"])
        whole = {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": "probe", "namespace": key.namespace},
            "spec": pod["spec"],
        }
        asking = decode_object(whole)
        assert isinstance(asking, Pod), "pods are pods"
        wanted, bearable = self._wanted(asking)
        on_node = self._pods_by_node(owner, bearable)
        missing = [name for name in wanted if name not in on_node]
        try:
            for name in missing[:_BURST]:
                self.owned.create(owner, _bent_to(pod, name))
            self._roll(owner, on_node, len(missing))
        finally:
            self._count(key, owner, wanted)
        if len(missing) > _BURST:
            self.queue.add(key)

    def _wanted(self, pod: Pod) -> tuple[dict[str, None], dict[str, None]]:
        """Return the nodes that are to have a pod, and those where one may stay."""
        affinity = required_node_affinity(pod)
        wanted: dict[str, None] = {}
        bearable: dict[str, None] = {}
        for plain in self.client.list("nodes"):
            node = self._node(plain)
            name = node.metadata.name
            taints, tolerations = node.spec.taints, pod.spec.tolerations
            if not affinity.matches(node):
                continue
            if find_untolerated(taints, tolerations, (NO_EXECUTE,)) is None:
                bearable[name] = None
            if find_untolerated(taints, tolerations, HARD_EFFECTS) is None:
                wanted[name] = None
        return wanted, bearable

    def _pods_by_node(self, owner: Plain, bearable: dict[str, None]) -> dict[str, Plain]:
        """Return the pod of each node; those too many, failed or out of place are deleted."""
        found: dict[str, Plain] = {}
        for pod in self.owned.of(owner):
            name = _node_name_of(pod)
            if not is_active(pod):
                if not pod["metadata"].get("deletionTimestamp"):
                    self.owned.delete(pod)
                elif name not in found:
                    # A new one comes when this one has gone.
                    found[name] = pod
            elif name not in bearable or (name in found and is_active(found[name])):
                self.owned.delete(pod)
            else:
                found[name] = pod
        return found

    def _roll(self, owner: Plain, on_node: dict[str, Plain], missing: int) -> None:
        """Delete pods of another template, as many at a time as may be unavailable."""
        strategy = owner["spec"].get("updateStrategy", {})
        if strategy.get("type") == "OnDelete":
            return
        limit = strategy.get("rollingUpdate", {}).get("maxUnavailable", 1)
        if isinstance(limit, str):
            limit = ceil(int(limit.removesuffix("%")) * len(on_node) / 100)
        limit -= missing
        current = template_hash(owner)
        old = []
        for pod in on_node.values():
            is_available = is_active(pod) and self.unavailable_seconds(pod, 0) is not None
            limit -= not is_available
            if is_active(pod) and pod["metadata"].get("labels", {}).get(_HASH) != current:
                old.append((is_available, pod))
        # Those that are not available may go at once.
        for is_available, pod in old:
            if not is_available or limit > 0:
                limit -= is_available
                self.owned.delete(pod)

    def _count(self, key: Key, owner: Plain, wanted: dict[str, None]) -> None:
        pods = {_node_name_of(pod): pod for pod in self.owned.of(owner) if is_active(pod)}
        here = [pod for name, pod in pods.items() if name in wanted]
        ready = sum(self.unavailable_seconds(pod, 0) is not None for pod in here)
        current = template_hash(owner)
        self.write_status(
            key,
            {
                "currentNumberScheduled": len(here),
                "numberMisscheduled": len(pods) - len(here),
                "desiredNumberScheduled": len(wanted),
                "numberReady": ready,
                "updatedNumberScheduled": sum(
                    pod["metadata"].get("labels", {}).get(_HASH) == current for pod in here
                ),
                "numberAvailable": ready,
                "numberUnavailable": len(wanted) - ready,
            },
        )


def _tolerant(daemon_set: Plain) -> Plain:
    """Return a template that bears nodes in trouble, and says which template it is."""
    template = daemon_set["spec"]["template"]
    spec = template["spec"]
    troubles = (*_TROUBLES, _NETWORK) if spec.get("hostNetwork") else _TROUBLES
    added = [{"key": key, "operator": "Exists", "effect": effect} for key, effect in troubles]
    metadata = template.get("metadata", {})
    labels = {**metadata.get("labels", {}), _HASH: template_hash(daemon_set)}
    tolerations = [*spec.get("tolerations", []), *added]
    return {
        **template,
        "metadata": {**metadata, "labels": labels},
        "spec": {**spec, "tolerations": tolerations},
    }


def _bent_to(pod: Plain, node_name: str) -> Plain:
    """Return a pod that fits one node only, whatever its required affinity was."""
    requirement = {"key": "metadata.name", "operator": "In", "values": [node_name]}
    terms = [{"matchFields": [requirement]}]
    affinity = pod["spec"].get("affinity", {})
    bent = {
        **affinity.get("nodeAffinity", {}),
        "requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms},
    }
    return {**pod, "spec": {**pod["spec"], "affinity": {**affinity, "nodeAffinity": bent}}}


def _node_name_of(pod: Plain) -> str:
    """Return the node that a daemon is on, or is meant for."""
    if pod["spec"].get("nodeName"):
        return str(pod["spec"]["nodeName"])
    required = pod["spec"]["affinity"]["nodeAffinity"][
        "requiredDuringSchedulingIgnoredDuringExecution"
    ]
    return str(required["nodeSelectorTerms"][0]["matchFields"][0]["values"][0])
