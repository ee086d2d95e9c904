"""Nodes: templates to make them from, taints that follow from their state, and NodeKeeper.

Upstream: pkg/controller/nodelifecycle, pkg/kubelet/kubelet_node_status.go (v1.36)
Differs:  nothing is measured; a node reports once that it is ready, and stays ready without
          heartbeats. Leases are written only on request.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from copy import deepcopy
from datetime import UTC, datetime
from ipaddress import IPv4Address
from typing import Final, TypeAlias, TypeVar

import msgspec
from msgspec.structs import replace

from kubesched.api.core import Node, Taint
from kubesched.api.errors import ApiError
from kubesched.api.names import is_extended_resource_name
from kubesched.api.times import micro_time
from kubesched.api.well_known import ZONE
from kubesched.cluster.server import AnyKindServer, Plain, Watching
from kubesched.cluster.store import Key

CORDON_TAINT: Final = "node.kubernetes.io/unschedulable"
_LOST: Final = ("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable")
# By condition and its status.
_OF_CONDITIONS: Final = {
    ("Ready", "False"): _LOST[0],
    ("Ready", "Unknown"): _LOST[1],
    ("MemoryPressure", "True"): "node.kubernetes.io/memory-pressure",
    ("DiskPressure", "True"): "node.kubernetes.io/disk-pressure",
    ("PIDPressure", "True"): "node.kubernetes.io/pid-pressure",
    ("NetworkUnavailable", "True"): "node.kubernetes.io/network-unavailable",
}
STATE_TAINTS: Final = (*_OF_CONDITIONS.values(), CORDON_TAINT)
"""The keys of taints that follow from a node's state."""

TaintName: TypeAlias = tuple[str, str]
"""Key and effect."""

T = TypeVar("T")


def _state_taints(
    conditions: Iterable[tuple[str, str]], *, is_unschedulable: bool
) -> list[TaintName]:
    """Return the taints that follow from conditions of these types and statuses."""
    wanted = [(CORDON_TAINT, "NoSchedule")] if is_unschedulable else []
    for condition in conditions:
        key = _OF_CONDITIONS.get(condition)
        if key is not None:
            wanted.append((key, "NoSchedule"))
            if key in _LOST:
                wanted.append((key, "NoExecute"))
    return wanted


def with_state_taints(node: Node) -> Node:
    """Return a node with the taints that follow from its state, and its other taints."""
    conditions = ((one.type, one.status) for one in node.status.conditions)
    wanted = _state_taints(conditions, is_unschedulable=node.spec.unschedulable)
    taints = [((one.key, one.effect), one) for one in node.spec.taints]
    new = _with_wanted(taints, wanted, lambda key, effect: Taint(key=key, effect=effect))
    return replace(node, spec=replace(node.spec, taints=tuple(new)))


def _with_wanted(
    taints: Sequence[tuple[TaintName, T]],
    wanted: Sequence[TaintName],
    new: Callable[[str, str], T],
) -> list[T]:
    """Return the taints without those of a state that has ended, and the missing ones."""
    kept = [one for name, one in taints if name[0] not in STATE_TAINTS or name in wanted]
    known = {name for name, _ in taints}
    return [*kept, *(new(*name) for name in wanted if name not in known)]


# Templates.

_FIRST_ADDRESS: Final = int(IPv4Address("10.64.0.1"))
_VERSION: Final = "v1.36.0"
_INFO: Final = {
    "architecture": "amd64",
    "bootID": "",
    "containerRuntimeVersion": "fake://1.0.0",
    "kernelVersion": "6.6.0-fake",
    "kubeProxyVersion": "",
    "kubeletVersion": _VERSION,
    "machineID": "",
    "operatingSystem": "linux",
    "osImage": "kubesched sandbox",
    "systemUUID": "",
}
# Of each condition: its good state, and the reason and message of it.
_CONDITIONS: Final = (
    ("MemoryPressure", "False", "KubeletHasSufficientMemory", "kubelet has sufficient memory"),
    ("DiskPressure", "False", "KubeletHasNoDiskPressure", "kubelet has no disk pressure"),
    ("PIDPressure", "False", "KubeletHasSufficientPID", "kubelet has sufficient PID available"),
    ("Ready", "True", "KubeletReady", "kubelet is posting ready status"),
)
_ATTACHED_BY_CONTROLLER: Final = "volumes.kubernetes.io/controller-managed-attach-detach"


class NodeTemplate(msgspec.Struct, frozen=True):
    """The template of nodes.

    Attributes:
        capacity: Quantities by resource.
        labels: For all nodes.
        taints: For all nodes, as in their spec.
        zones: Given to nodes in turn; empty for nodes without a zone.
        node: A node whose other fields are kept; empty for none.
    """

    capacity: Mapping[str, str]
    labels: Mapping[str, str] = {}
    taints: tuple[Plain, ...] = ()
    zones: tuple[str, ...] = ()
    node: Plain = {}

    def nodes(self, count: int) -> list[Plain]:
        """Return a number of nodes, whose names sort in order."""
        width = len(str(count - 1))
        return [self._node(index, f"node-{index:0{width}d}") for index in range(count)]

    def _node(self, index: int, name: str) -> Plain:
        node = deepcopy(self.node)
        metadata = {**node.get("metadata", {}), "name": name}
        labels = {**metadata.get("labels", {}), **self.labels, "kubernetes.io/hostname": name}
        if self.zones:
            labels[ZONE] = self.zones[index % len(self.zones)]
        metadata["labels"] = labels
        spec = node.get("spec", {})
        taints = [*spec.get("taints", []), *map(dict, self.taints)]
        if taints:
            spec["taints"] = taints
        status = node.get("status", {})
        status["capacity"] = {**self.capacity, **status.get("capacity", {})}
        status["allocatable"] = {**status["capacity"], **status.get("allocatable", {})}
        address = str(IPv4Address(_FIRST_ADDRESS + index))
        status.setdefault("addresses", _addresses(name, address))
        return {**node, "metadata": metadata, "spec": spec, "status": status}


def as_reported(node: Plain, capacity: Mapping[str, str], now: str) -> Plain:
    """Return a node as its kubelet and the node controllers would write it.

    Existing fields stay; missing ones get the values of a healthy node with this capacity. Its
    taints follow from its conditions. The same object is returned if nothing changes.
    """
    status = _reported(node, capacity, now)
    spec = node.get("spec", {})
    taints = _taints(spec, status, now)
    given = node["metadata"]
    metadata = {
        **given,
        "labels": {
            "kubernetes.io/arch": "amd64",
            "kubernetes.io/hostname": given["name"],
            "kubernetes.io/os": "linux",
            **given.get("labels", {}),
        },
        # Programs patch the annotations of nodes in JSON, and so rely on there being some.
        "annotations": {_ATTACHED_BY_CONTROLLER: "true", **given.get("annotations", {})},
    }
    if (status, taints, metadata) == (node.get("status", {}), spec.get("taints", []), given):
        return node
    spec = {key: value for key, value in spec.items() if key != "taints"}
    if taints:
        spec["taints"] = taints
    return {**node, "metadata": metadata, "spec": spec, "status": status}


def _reported(node: Plain, capacity: Mapping[str, str], now: str) -> Plain:
    status = dict(node.get("status", {}))
    # Every kubelet reports these; a node without a number of pods would have room for none.
    usual = [name for name in capacity if not is_extended_resource_name(name)]
    given = status.get("capacity") or status.get("allocatable") or capacity
    whole = {**{name: capacity[name] for name in usual}, **given}
    allocatable = status.get("allocatable") or whole
    status["capacity"] = whole
    status["allocatable"] = {**{name: whole[name] for name in usual}, **allocatable}
    if not status.get("addresses"):
        status["addresses"] = _addresses(node["metadata"]["name"], "")
    if not status.get("nodeInfo", {}).get("kubeletVersion"):
        status["nodeInfo"] = dict(_INFO)
    conditions = status.get("conditions", [])
    known = [one["type"] for one in conditions]
    missing = [
        {
            "type": type_,
            "status": good,
            "lastHeartbeatTime": now,
            "lastTransitionTime": now,
            "reason": reason,
            "message": message,
        }
        for type_, good, reason, message in _CONDITIONS
        if type_ not in known
    ]
    if missing:
        status["conditions"] = [*conditions, *missing]
    return status


def _addresses(name: str, address: str) -> list[Plain]:
    internal = [{"type": "InternalIP", "address": address}] if address else []
    return [*internal, {"type": "Hostname", "address": name}]


def _taints(spec: Plain, status: Plain, now: str) -> list[Plain]:
    """Return the taints of a node: those that follow from its state, and the others."""
    conditions = ((one["type"], one["status"]) for one in status.get("conditions", ()))
    wanted = _state_taints(conditions, is_unschedulable=bool(spec.get("unschedulable")))
    taints = [((one["key"], one["effect"]), one) for one in spec.get("taints", [])]
    return _with_wanted(
        taints, wanted, lambda key, effect: {"key": key, "effect": effect, "timeAdded": now}
    )


def with_advertised_resources(node: Plain, before: Plain | None) -> Plain:
    """Return a node whose allocatable has the extended resources that its capacity got or lost.

    Kubelets do this when somebody advertises a resource by writing it into the capacity of a node.
    The same object is returned if the capacity is as in `before`.
    """
    status, old = node.get("status", {}), (before or node).get("status", {})
    capacity, old_capacity = status.get("capacity") or {}, old.get("capacity") or {}
    changed = [
        name
        for name in {**old_capacity, **capacity}
        if capacity.get(name) != old_capacity.get(name) and is_extended_resource_name(name)
    ]
    if not changed:
        return node
    allocatable = status.get("allocatable", {})
    others = {name: amount for name, amount in allocatable.items() if name not in changed}
    advertised = {name: capacity[name] for name in changed if name in capacity}
    return {**node, "status": {**status, "allocatable": {**others, **advertised}}}


# Readiness.

_LEASES: Final = "leases.coordination.k8s.io"
_LEASE_NAMESPACE: Final = "kube-node-lease"
_LEASE_SECONDS: Final = 40
_RENEWAL_SECONDS: Final = 10.0


class NodeKeeper(Watching):
    """Keeps all nodes, whatever created them."""

    def __init__(
        self, server: AnyKindServer, capacity: Mapping[str, str], *, renews_leases: bool = False
    ) -> None:
        """Set up; nothing happens before `start`. `capacity` is for nodes that have none."""
        self._server = server
        self._capacity = capacity
        self._renews_leases = renews_leases
        self._followed = [server.follow("nodes", self._changed)]
        self._timers: dict[str, asyncio.TimerHandle] = {}

    def stop(self) -> None:
        """Stop; stopping twice is fine."""
        super().stop()
        for timer in self._timers.values():
            timer.cancel()

    def _changed(self, key: Key, before: Plain | None, _node: Plain | None) -> None:
        node = self._server.find(*key)
        if node is None:
            if timer := self._timers.pop(key.name, None):
                timer.cancel()
            return
        wanted = as_reported(node, self._capacity, self._server.timestamp())
        wanted = with_advertised_resources(wanted, before)
        if wanted is not node:
            self._server.write(key, wanted)
        if self._renews_leases and key.name not in self._timers:
            self._renew(key.name)

    # Leases.

    def _renew(self, name: str) -> None:
        loop = asyncio.get_running_loop()
        self._timers[name] = loop.call_later(_RENEWAL_SECONDS, self._renew, name)
        now = micro_time(datetime.fromtimestamp(self._server.now(), UTC))
        key = Key(_LEASES, _LEASE_NAMESPACE, name)
        found, node = self._server.find(*key), self._server.find("nodes", "", name)
        if found is not None:
            spec = {**found.get("spec", {}), "renewTime": now}
            self._server.write(key, {**found, "spec": spec})
        elif node is not None:
            self._create(node, now)

    def _create(self, node: Plain, now: str) -> None:
        metadata = node["metadata"]
        kind = {"apiVersion": "v1", "kind": "Node"}
        owner = {**kind, "name": metadata["name"], "uid": metadata["uid"]}
        lease: Plain = {
            "metadata": {
                "name": metadata["name"],
                "namespace": _LEASE_NAMESPACE,
                "ownerReferences": [owner],
            },
            "spec": {
                "holderIdentity": metadata["name"],
                "leaseDurationSeconds": _LEASE_SECONDS,
                "renewTime": now,
            },
        }
        # The namespace may be terminating; the next renewal tries again.
        with suppress(ApiError):
            self._server.create(_LEASES, lease)
