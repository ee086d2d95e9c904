"""Builders of pods, nodes and tables: set the fields that a test needs, the rest has defaults.

Other fields are given as Kubernetes' JSON: `make_pod(spec={"hostNetwork": True})`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final, TypeAlias, TypedDict, Unpack

import msgspec
import numpy as np
from numpy.typing import NDArray

from kubesched.api.core import Node, Pod
from kubesched.api.meta import KubeObject
from kubesched.snapshot.node_columns import NodeColumns
from kubesched.snapshot.nominator import Nominator
from kubesched.snapshot.objects import ObjectStore
from kubesched.snapshot.pod_info import PodInfo
from kubesched.snapshot.snapshot import Snapshot

Json: TypeAlias = Mapping[str, object]
Amounts: TypeAlias = Mapping[str, str | int]

DEFAULT_ALLOCATABLE: Final[Amounts] = {
    "cpu": "4",
    "memory": "32Gi",
    "ephemeral-storage": "100Gi",
    "pods": 110,
}


class PodFields(TypedDict, total=False):
    """The keywords of `make_pod` without the name, for tables of test cases."""

    namespace: str
    uid: str | None
    labels: Mapping[str, str] | None
    node_name: str
    nominated_node_name: str
    priority: int | None
    requests: Amounts | None
    limits: Amounts | None
    host_ports: Iterable[int | Json]
    node_selector: Mapping[str, str] | None
    node_affinity: Json | None
    pod_affinity: Json | None
    pod_anti_affinity: Json | None
    tolerations: Iterable[Json]
    topology_spread_constraints: Iterable[Json]
    volumes: Iterable[Json]
    scheduling_gates: Iterable[str]
    containers: Sequence[Json] | None
    init_containers: Sequence[Json]
    start_time: str | None
    metadata: Json | None
    spec: Json | None
    status: Json | None


def make_pod(
    name: str = "pod",
    *,
    namespace: str = "default",
    uid: str | None = None,
    labels: Mapping[str, str] | None = None,
    node_name: str = "",
    nominated_node_name: str = "",
    priority: int | None = None,
    requests: Amounts | None = None,
    limits: Amounts | None = None,
    host_ports: Iterable[int | Json] = (),
    node_selector: Mapping[str, str] | None = None,
    node_affinity: Json | None = None,
    pod_affinity: Json | None = None,
    pod_anti_affinity: Json | None = None,
    tolerations: Iterable[Json] = (),
    topology_spread_constraints: Iterable[Json] = (),
    volumes: Iterable[Json] = (),
    scheduling_gates: Iterable[str] = (),
    containers: Sequence[Json] | None = None,
    init_containers: Sequence[Json] = (),
    start_time: str | None = None,
    metadata: Json | None = None,
    spec: Json | None = None,
    status: Json | None = None,
) -> Pod:
    """Build a pod with one container, or with `containers`.

    Args:
        name: `metadata.name`.
        namespace: `metadata.namespace`.
        uid: `metadata.uid`; `namespace/name` if None.
        labels: `metadata.labels`.
        node_name: `spec.nodeName`.
        nominated_node_name: `status.nominatedNodeName`.
        priority: `spec.priority`.
        requests: Of the one container.
        limits: Of the one container.
        host_ports: Of the one container: a TCP port number, or a `ContainerPort` as JSON.
        node_selector: `spec.nodeSelector`; None is absent, {} is empty.
        node_affinity: `spec.affinity.nodeAffinity` as JSON.
        pod_affinity: `spec.affinity.podAffinity` as JSON.
        pod_anti_affinity: `spec.affinity.podAntiAffinity` as JSON.
        tolerations: As JSON.
        topology_spread_constraints: As JSON.
        volumes: As JSON.
        scheduling_gates: The names of the gates.
        containers: As JSON, instead of the one container.
        init_containers: As JSON.
        start_time: `status.startTime`.
        metadata: More fields as JSON, which override others.
        spec: More fields as JSON, which override others.
        status: More fields as JSON, which override others.
    """
    affinity = {
        "nodeAffinity": node_affinity,
        "podAffinity": pod_affinity,
        "podAntiAffinity": pod_anti_affinity,
    }
    if containers is None:
        containers = [_container(requests, limits, host_ports)]
    return msgspec.convert(
        {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {
                "name": name,
                "namespace": namespace,
                "uid": f"{namespace}/{name}" if uid is None else uid,
                "labels": dict(labels or {}),
                **(metadata or {}),
            },
            "spec": _present(
                nodeName=node_name or None,
                priority=priority,
                containers=list(containers),
                initContainers=list(init_containers),
                nodeSelector=None if node_selector is None else dict(node_selector),
                affinity=_present(**affinity) or None,
                tolerations=list(tolerations),
                topologySpreadConstraints=list(topology_spread_constraints),
                volumes=list(volumes),
                schedulingGates=[{"name": gate} for gate in scheduling_gates],
            )
            | dict(spec or {}),
            "status": _present(nominatedNodeName=nominated_node_name or None, startTime=start_time)
            | dict(status or {}),
        },
        Pod,
    )


def make_pod_info(name: str = "pod", **fields: Unpack[PodFields]) -> PodInfo:
    """Build a PodInfo; the keywords are those of `make_pod`."""
    return PodInfo(make_pod(name, **fields))


def make_node(
    name: str = "node",
    *,
    labels: Mapping[str, str] | None = None,
    taints: Iterable[Json] = (),
    unschedulable: bool = False,
    allocatable: Amounts | None = None,
    images: Mapping[str, int] | None = None,
    declared_features: Sequence[str] = (),
    metadata: Json | None = None,
    spec: Json | None = None,
    status: Json | None = None,
) -> Node:
    """Build a node.

    Args:
        name: `metadata.name`.
        labels: `metadata.labels`.
        taints: As JSON.
        unschedulable: `spec.unschedulable`.
        allocatable: Amounts to merge into `DEFAULT_ALLOCATABLE`.
        images: Image name -> size in bytes.
        declared_features: `status.declaredFeatures`.
        metadata: More fields as JSON, which override others.
        spec: More fields as JSON, which override others.
        status: More fields as JSON, which override others.
    """
    amounts = {**DEFAULT_ALLOCATABLE, **(allocatable or {})}
    return msgspec.convert(
        {
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": {"name": name, "labels": dict(labels or {}), **(metadata or {})},
            "spec": {
                "taints": list(taints),
                "unschedulable": unschedulable,
                **(spec or {}),
            },
            "status": {
                "allocatable": amounts,
                "capacity": amounts,
                "images": [
                    {"names": [image], "sizeBytes": size} for image, size in (images or {}).items()
                ],
                "declaredFeatures": list(declared_features),
                **(status or {}),
            },
        },
        Node,
    )


def make_table(nodes: Iterable[Node], pods: Iterable[Pod] = ()) -> NodeColumns:
    """Build a table of nodes, with the pods that are bound to one of them."""
    table = NodeColumns()
    for node in nodes:
        table.add_node(node)
    for pod in pods:
        row = table.row_of.get(pod.spec.node_name)
        if row is not None:
            table.add_pod(PodInfo(pod), row)
    return table


def make_snapshot(
    nodes: Iterable[Node] = (),
    pods: Iterable[Pod] = (),
    objects: Iterable[KubeObject] = (),
) -> Snapshot:
    """Build a snapshot: bound pods are on their nodes, others nominated if their status says so."""
    pods = list(pods)
    store = ObjectStore()
    for item in objects:
        store.put(item)
    nominated = Nominator()
    for pod in pods:
        if not pod.spec.node_name:
            nominated.add(PodInfo(pod))
    return Snapshot(make_table(nodes, pods), store, nominated)


def all_rows(snapshot: Snapshot) -> NDArray[np.bool_]:
    """Return a `feasible` mask with all rows of the snapshot."""
    return np.ones(len(snapshot.nodes), np.bool_)


def _container(
    requests: Amounts | None, limits: Amounts | None, host_ports: Iterable[int | Json]
) -> Json:
    ports = [
        {"containerPort": port, "hostPort": port} if isinstance(port, int) else dict(port)
        for port in host_ports
    ]
    resources = _present(requests=requests, limits=limits)
    return {"name": "container", "image": "image", "resources": resources, "ports": ports}


def _present(**fields: object) -> dict[str, object]:
    return {name: value for name, value in fields.items() if value is not None}
