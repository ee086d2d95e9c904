"""The templates of scheduler_perf's nodes, pods, volumes and claims, as an API server returns them.

Upstream: test/integration/scheduler_perf/templates (v1.36)
Differs:  images have no registry; names are numbered, not drawn.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

Json = dict[str, Any]

HOSTNAME: Final = "kubernetes.io/hostname"
ZONE: Final = "topology.kubernetes.io/zone"
CSI_DRIVER: Final = "ebs.csi.aws.com"
DRA_DRIVER: Final = "test-driver.cdi.k8s.io"
CREATED: Final = "2026-06-01T00:00:00Z"
_CLASSES: Final = 25
_DEVICES_PER_NODE: Final = 10
_TEAM: Final = {"matchLabels": {"team": "devops"}}
_SCHED: Final = ["sched-1", "sched-0"]


def uid(number: int) -> str:
    """Return a uid that is unique in the run."""
    return f"00000000-0000-4000-8000-{number:012x}"


def metadata(name: str, number: int, namespace: str = "", **fields: object) -> Json:
    """Return the metadata of a stored object; `fields` take precedence."""
    placed = {"namespace": namespace} if namespace else {}
    stored = {"uid": uid(number), "resourceVersion": str(number), "creationTimestamp": CREATED}
    return {"name": name, **placed, **stored, **fields}


# Nodes.


def node(
    name: str,
    number: int,
    *,
    labels: Mapping[str, str] | None = None,
    taints: list[Json] | None = None,
    capacity: Mapping[str, str] | None = None,
) -> Json:
    """Return a node of node-default: 4 cpu, 32Gi, 110 pods, Ready."""
    amounts = {"pods": "110", "cpu": "4", "memory": "32Gi", **(capacity or {})}
    ready = {"type": "Ready", "status": "True"}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": metadata(name, number, labels={HOSTNAME: name, **(labels or {})}),
        "spec": {"taints": taints} if taints else {},
        "status": {
            "phase": "Running",
            "capacity": amounts,
            "allocatable": dict(amounts),
            "conditions": [ready],
        },
    }


def node_default(index: int, number: int, labels: Mapping[str, str]) -> list[Json]:
    """node-default, and the built-in node without a template, which has the same numbers."""
    return [node(f"scheduler-perf-{index:06d}", number, labels=labels)]


def node_with_name(index: int, number: int, labels: Mapping[str, str]) -> list[Json]:
    """node-with-name: one node that can hold every pod of a daemon set's benchmark."""
    return [node("scheduler-perf-node", number, labels=labels, capacity={"pods": "90000"})]


def node_with_taint(index: int, number: int, labels: Mapping[str, str]) -> list[Json]:
    """node-with-taint: `foo:NoSchedule`."""
    taints = [{"key": "foo", "effect": "NoSchedule"}]
    return [node(f"taint-node-{index:06d}", number, labels=labels, taints=taints)]


def node_with_extended_resource(index: int, number: int, labels: Mapping[str, str]) -> list[Json]:
    """node-with-extended-resource: each node offers one unit of a resource of its own."""
    own = {"node-with-extended-resource": "true", **labels}
    name = f"scheduler-perf-extended-resource-{index:06d}"
    return [node(name, number, labels=own, capacity={f"foo.com/bar-{index}": "1"})]


def node_with_csi_limit(index: int, number: int, labels: Mapping[str, str]) -> list[Json]:
    """node-default where the CSI driver attaches 39 volumes."""
    name = f"scheduler-perf-{index:06d}"
    limit = {f"attachable-volumes-csi-{CSI_DRIVER}": "39"}
    driver = {"name": CSI_DRIVER, "nodeID": name, "allocatable": {"count": 39}}
    csi_node = {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "CSINode",
        "metadata": metadata(name, number + 1),
        "spec": {"drivers": [driver]},
    }
    return [node(name, number, labels=labels, capacity=limit), csi_node]


def node_with_dra_driver(index: int, number: int, labels: Mapping[str, str]) -> list[Json]:
    """node-with-dra-test-driver, and the slice of its ten devices."""
    name = f"scheduler-perf-dra-{index:06d}"
    devices = [_device(at) for at in range(_DEVICES_PER_NODE)]
    resource_slice = {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceSlice",
        "metadata": metadata(name, number + 1),
        "spec": {
            "driver": DRA_DRIVER,
            "nodeName": name,
            "pool": {"name": name, "generation": 0, "resourceSliceCount": 1},
            "devices": devices,
        },
    }
    return [node(name, number, labels={"node-with-dra": "true", **labels}), resource_slice]


def _device(at: int) -> Json:
    return {
        "name": f"instance-{at}",
        "attributes": {
            "model": {"string": "A100"},
            "family": {"string": "GPU"},
            "driverVersion": {"version": "1.2.3"},
            "dra.example.com/numa": {"int": at},
        },
        "capacity": {"memory": {"value": "1Gi"}},
    }


# Pods.

TOLERATIONS: Final = [
    {
        "key": f"node.kubernetes.io/{state}",
        "operator": "Exists",
        "effect": "NoExecute",
        "tolerationSeconds": 300,
    }
    for state in ("not-ready", "unreachable")
]


def _pod(
    prefix: str,
    amounts: Mapping[str, str] | None = None,
    *,
    limits: bool = True,
    labels: Mapping[str, str] | None = None,
    **spec: object,
) -> Json:
    """Return a pod without a name, with one pause container; `spec` takes precedence."""
    resources: Json = {}
    if amounts:
        resources = {"requests": dict(amounts), **({"limits": dict(amounts)} if limits else {})}
    container = {
        "name": "pause",
        "image": "pause:3.10.2",
        "ports": [{"containerPort": 80, "protocol": "TCP"}] if amounts else [],
        "resources": resources,
        "terminationMessagePath": "/dev/termination-log",
        "terminationMessagePolicy": "File",
        "imagePullPolicy": "IfNotPresent",
    }
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"generateName": prefix, **({"labels": dict(labels)} if labels else {})},
        "spec": {
            "containers": [container],
            "restartPolicy": "Always",
            "terminationGracePeriodSeconds": 30,
            "dnsPolicy": "ClusterFirst",
            "securityContext": {},
            "schedulerName": "default-scheduler",
            "tolerations": TOLERATIONS,
            "enableServiceLinks": True,
            **spec,
        },
        "status": {"phase": "Pending", "qosClass": _qos_class(amounts, limits=limits)},
    }


def _qos_class(amounts: Mapping[str, str] | None, *, limits: bool) -> str:
    if not amounts:
        return "BestEffort"
    return "Guaranteed" if limits else "Burstable"


_SMALL: Final = {"cpu": "100m", "memory": "500Mi"}


def _term(color: str, topology_key: str, **namespaces: object) -> Json:
    selector = {"matchLabels": {"color": color}}
    return {"labelSelector": selector, "topologyKey": topology_key, **namespaces}


def _required(term: Json) -> Json:
    return {"requiredDuringSchedulingIgnoredDuringExecution": [term]}


def _preferred(term: Json) -> Json:
    weighted = {"weight": 1, "podAffinityTerm": term}
    return {"preferredDuringSchedulingIgnoredDuringExecution": [weighted]}


def _colored(prefix: str, color: str, **affinity: Json) -> Json:
    return _pod(prefix, _SMALL, labels={"color": color}, affinity=affinity)


def _spreading(when_unsatisfiable: str) -> Json:
    constraint = {
        "maxSkew": 5,
        "topologyKey": ZONE,
        "whenUnsatisfiable": when_unsatisfiable,
        "labelSelector": {"matchLabels": {"color": "blue"}},
    }
    labels = {"color": "blue"}
    return _pod("spreading-pod-", _SMALL, labels=labels, topologySpreadConstraints=[constraint])


def _node_affinity(**term: list[Json]) -> Json:
    selector = {"nodeSelectorTerms": [term]}
    return {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": selector}}


_EVERY_NODE_COUNTED: Final = {
    "maxSkew": 1,
    "topologyKey": HOSTNAME,
    "whenUnsatisfiable": "DoNotSchedule",
    "nodeAffinityPolicy": "Honor",
    "nodeTaintsPolicy": "Honor",
    "labelSelector": {"matchLabels": {"foo": "bar"}},
}

PODS: Final[Mapping[str, Json]] = {
    "pod-default": _pod("pod-", _SMALL),
    "pod-low-priority": _pod(
        "pod-",
        {"cpu": "900m", "memory": "500Mi"},
        priority=0,
        terminationGracePeriodSeconds=0,
    ),
    "pod-high-priority": _pod("pod-high-priority-", {"cpu": "3", "memory": "500Mi"}, priority=10),
    "pod-high-priority-large-cpu": _pod(
        "pod-h-", {"cpu": "9", "memory": "500Mi"}, limits=False, priority=10
    ),
    "pod-with-label": _pod("pod-", labels={"app": "scheduler-perf"}),
    "daemonset-pod": _pod(
        "daemonset-",
        affinity=_node_affinity(
            matchFields=[
                {"key": "metadata.name", "operator": "In", "values": ["scheduler-perf-node"]}
            ]
        ),
    ),
    "pod-with-node-affinity": _pod(
        "node-affinity-",
        _SMALL,
        affinity=_node_affinity(
            matchExpressions=[{"key": ZONE, "operator": "In", "values": ["zone1", "zone2"]}]
        ),
    ),
    "pod-with-topology-spreading": _spreading("DoNotSchedule"),
    "pod-with-preferred-topology-spreading": _spreading("ScheduleAnyway"),
    "pod-with-node-inclusion-policy": _pod(
        "spreading-pod-with-node-inclusion-policy-",
        _SMALL,
        labels={"foo": "bar"},
        topologySpreadConstraints=[_EVERY_NODE_COUNTED],
    ),
    "pod-with-pod-affinity": _colored(
        "affinity-pod-", "blue", podAffinity=_required(_term("blue", ZONE, namespaces=_SCHED))
    ),
    "pod-with-pod-anti-affinity": _colored(
        "anti-affinity-pod-",
        "green",
        podAntiAffinity=_required(_term("green", HOSTNAME, namespaces=_SCHED)),
    ),
    "pod-with-pod-anti-affinity-label": _pod(
        "anti-affinity-matching-pod-", _SMALL, labels={"color": "green"}
    ),
    "pod-with-preferred-pod-affinity": _colored(
        "preferred-affinity-pod-",
        "red",
        podAffinity=_preferred(_term("red", HOSTNAME, namespaces=_SCHED)),
    ),
    "pod-with-preferred-pod-anti-affinity": _colored(
        "preferred-anti-affinity-pod-",
        "yellow",
        podAntiAffinity=_preferred(_term("yellow", HOSTNAME, namespaces=_SCHED)),
    ),
    "pod-affinity-ns-selector": _colored(
        "affinity-pod-",
        "blue",
        podAffinity=_required(_term("blue", ZONE, namespaceSelector=_TEAM)),
    ),
    "pod-anti-affinity-ns-selector": _colored(
        "anti-affinity-pod-",
        "green",
        podAntiAffinity=_required(_term("green", HOSTNAME, namespaceSelector=_TEAM)),
    ),
    "pod-preferred-affinity-ns-selector": _colored(
        "preferred-affinity-pod-",
        "red",
        podAffinity=_preferred(_term("red", HOSTNAME, namespaceSelector=_TEAM)),
    ),
    "pod-preferred-anti-affinity-ns-selector": _colored(
        "anti-affinity-pod-",
        "green",
        podAntiAffinity=_preferred(_term("green", HOSTNAME, namespaceSelector=_TEAM)),
    ),
    "pod-with-secret-volume": _pod(
        "secret-volume-",
        _SMALL,
        volumes=[{"name": "secret", "secret": {"secretName": "secret", "defaultMode": 420}}],
    ),
    "pod-with-claim-template": _pod(
        "test-dra",
        resourceClaims=[{"name": "resource", "resourceClaimTemplateName": "test-claim-template"}],
    ),
    "pod-with-extended-resource": _pod("test-extended-resource-"),
}


# Objects that come with a pod: each pod has its own.

PodObjects = Callable[[Json, int], list[Json]]
"""(pod, index) -> the objects that the pod needs; changes the pod to refer to them."""


def with_extended_resource(pod: Json, index: int) -> list[Json]:
    """Request one unit of the resource that a single node has."""
    _request(pod, f"foo.com/bar-{index}")
    return []


def with_device_backed_resource(pod: Json, index: int) -> list[Json]:
    """Request one unit of a resource that a device class backs, each class in turn."""
    _request(pod, f"example.com/gpu-{index % _CLASSES}")
    return []


def _request(pod: Json, resource: str) -> None:
    container = pod["spec"]["containers"][0]
    resources = {"requests": {resource: "1"}, "limits": {resource: "1"}}
    pod["spec"] = {**pod["spec"], "containers": [{**container, "resources": resources}]}


def with_in_tree_volume(pod: Json, index: int) -> list[Json]:
    """pv-aws and pvc, bound to each other."""
    name = f"pv-{index}"
    disk = {"volumeID": f"{pod['metadata']['namespace']}-{name}", "fsType": "ext4"}
    return _bound_volume(pod, index, {"awsElasticBlockStore": disk})


def with_csi_volume(pod: Json, index: int) -> list[Json]:
    """pv-csi and pvc, bound to each other."""
    name = f"{pod['metadata']['namespace']}-pv-{index}"
    return _bound_volume(pod, index, {"csi": {"driver": CSI_DRIVER, "volumeHandle": name}})


def _bound_volume(pod: Json, index: int, source: Json) -> list[Json]:
    namespace = pod["metadata"]["namespace"]
    number = int(pod["metadata"]["resourceVersion"])
    claim, volume = f"pvc-{index}", f"{namespace}-pv-{index}"
    mount = {"name": "vol", "persistentVolumeClaim": {"claimName": claim}}
    pod["spec"] = {**pod["spec"], "volumes": [mount]}
    modes = {"accessModes": ["ReadOnlyMany"], "volumeMode": "Filesystem"}
    size = {"storage": "1Gi"}
    reference = {"apiVersion": "v1", "kind": "PersistentVolumeClaim"}
    return [
        {
            **reference,
            "metadata": metadata(
                claim,
                number + 1,
                namespace,
                annotations={"pv.kubernetes.io/bind-completed": "true"},
            ),
            "spec": {**modes, "resources": {"requests": size}, "volumeName": volume},
            "status": {"phase": "Bound", "accessModes": ["ReadOnlyMany"], "capacity": size},
        },
        {
            "apiVersion": "v1",
            "kind": "PersistentVolume",
            "metadata": metadata(volume, number + 2),
            "spec": {
                **modes,
                **source,
                "capacity": size,
                "claimRef": {**reference, "namespace": namespace, "name": claim},
                "persistentVolumeReclaimPolicy": "Retain",
            },
            "status": {"phase": "Bound"},
        },
    ]


def with_resource_claim(pod: Json, index: int) -> list[Json]:
    """The ResourceClaim that the claim controller creates from the pod's template."""
    own = pod["metadata"]
    name = f"{own['name']}-resource"
    statuses = [{"name": "resource", "resourceClaimName": name}]
    pod["status"] = {**pod["status"], "resourceClaimStatuses": statuses}
    owner = {"apiVersion": "v1", "kind": "Pod", "name": own["name"], "uid": own["uid"]}
    request = {
        "deviceClassName": "test-class",
        "allocationMode": "ExactCount",
        "count": 1,
    }
    claim = {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaim",
        "metadata": metadata(
            name,
            int(own["resourceVersion"]) + 1,
            own["namespace"],
            ownerReferences=[{**owner, "controller": True, "blockOwnerDeletion": True}],
        ),
        "spec": {"devices": {"requests": [{"name": "req-0", "exactly": request}]}},
        "status": {},
    }
    return [claim]


# Other objects.


def namespace(name: str, number: int, labels: Mapping[str, str]) -> Json:
    """Return a namespace as the API server labels it."""
    own = {"kubernetes.io/metadata.name": name, **labels}
    return {
        "apiVersion": "v1",
        "kind": "Namespace",
        "metadata": metadata(name, number, labels=own),
        "spec": {"finalizers": ["kubernetes"]},
        "status": {"phase": "Active"},
    }


SERVICE: Final[Json] = {
    "apiVersion": "v1",
    "kind": "Service",
    "metadata": metadata("service-1", 1, "service-ns"),
    "spec": {
        "selector": {"app": "scheduler-perf"},
        "ports": [{"protocol": "TCP", "port": 80, "targetPort": 8000}],
        "type": "ClusterIP",
    },
}


def _device_class(name: str, number: int, **spec: object) -> Json:
    selectors = [{"cel": {"expression": f'device.driver == "{DRA_DRIVER}"'}}]
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "DeviceClass",
        "metadata": metadata(name, number),
        "spec": {"selectors": selectors, **spec},
    }


DEVICE_CLASS: Final = _device_class("test-class", 2)
CLASSES_WITH_RESOURCES: Final = tuple(
    _device_class(f"test-class-{at}", 10 + at, extendedResourceName=f"example.com/gpu-{at}")
    for at in range(_CLASSES)
)
