"""Nodes made from a template, and the fields that a healthy node reports; pure.

Upstream: pkg/kubelet/kubelet_node_status.go, pkg/controller/nodelifecycle (v1.36)
Differs:  nothing is measured; a node reports once that it is ready, without heartbeats.
"""

from __future__ import annotations

from collections.abc import Mapping
from copy import deepcopy
from ipaddress import IPv4Address
from typing import Final

import msgspec

from kubesched.cluster.node_taints import STATE_TAINTS, wanted_taints
from kubesched.cluster.server import Plain

_FIRST_ADDRESS: Final = int(IPv4Address("10.64.0.1"))
_ZONE: Final = "topology.kubernetes.io/zone"
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


class NodeTemplate(msgspec.Struct, frozen=True):
    """The template of nodes.

    Attributes:
        capacity: Quantities by resource.
        labels: For all nodes.
        taints: For all nodes, as in their spec.
        zones: Given to nodes in turn; empty for nodes without a zone.
        name: The beginning of their names.
        node: A node whose other fields are kept; empty for none.
    """

    capacity: Mapping[str, str]
    labels: Mapping[str, str] = {}
    taints: tuple[Plain, ...] = ()
    zones: tuple[str, ...] = ()
    name: str = "node"
    node: Plain = {}

    def nodes(self, count: int) -> list[Plain]:
        """Return a number of nodes, whose names sort in order."""
        width = len(str(count - 1))
        return [self._node(index, f"{self.name}-{index:0{width}d}") for index in range(count)]

    def _node(self, index: int, name: str) -> Plain:
        node = deepcopy(self.node)
        metadata = {**node.get("metadata", {}), "name": name}
        labels = {**metadata.get("labels", {}), **self.labels, "kubernetes.io/hostname": name}
        if self.zones:
            labels[_ZONE] = self.zones[index % len(self.zones)]
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


def looked_after(node: Plain, capacity: Mapping[str, str], now: str) -> Plain:
    """Return a node as its kubelet and the node controllers would report it.

    Existing fields stay; missing ones get the values of a healthy node. Its taints follow
    from its conditions. The same object is returned if nothing changes.

    Args:
        node: As it is stored.
        capacity: Of nodes that have none.
        now: The present.
    """
    status = _reported(node, capacity, now)
    spec = node.get("spec", {})
    taints = _taints(spec, status, now)
    labels = node["metadata"].get("labels", {})
    wanted = {**_own_labels(node["metadata"]["name"]), **labels}
    if (status, taints, wanted) == (node.get("status", {}), spec.get("taints", []), labels):
        return node
    spec = {key: value for key, value in spec.items() if key != "taints"}
    if taints:
        spec["taints"] = taints
    metadata = {**node["metadata"], "labels": wanted}
    return {**node, "metadata": metadata, "spec": spec, "status": status}


def _own_labels(name: str) -> Plain:
    return {
        "kubernetes.io/arch": "amd64",
        "kubernetes.io/hostname": name,
        "kubernetes.io/os": "linux",
    }


def _reported(node: Plain, capacity: Mapping[str, str], now: str) -> Plain:
    status = dict(node.get("status", {}))
    if not status.get("capacity"):
        status["capacity"] = status.get("allocatable") or dict(capacity)
    if not status.get("allocatable"):
        status["allocatable"] = status["capacity"]
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
    states = ((one["type"], one["status"]) for one in status.get("conditions", ()))
    wanted = wanted_taints(states, is_unschedulable=bool(spec.get("unschedulable")))
    kept = [
        one
        for one in spec.get("taints", [])
        if one["key"] not in STATE_TAINTS or _name(one) in wanted
    ]
    known = [_name(one) for one in kept]
    new = [
        {"key": key, "effect": effect, "timeAdded": now}
        for key, effect in wanted
        if (key, effect) not in known
    ]
    return [*kept, *new]


def _name(taint: Plain) -> tuple[str, str]:
    return taint["key"], taint["effect"]
