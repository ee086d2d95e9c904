"""A busy cluster of any size, and a pod for each feature that plugins evaluate.

Every node has four pods of low priority that leave 400m cpu free, so small pods fit everywhere and
a large one fits only after evictions.
"""

from __future__ import annotations

from typing import Final

import msgspec

from benchmarks import templates
from benchmarks.objects import decoded
from benchmarks.templates import Json
from benchmarks.throughput import new_cluster
from kubesched.api.core import Pod
from kubesched.snapshot.pod_info import PodInfo
from kubesched.snapshot.snapshot import Snapshot

_PODS_PER_NODE: Final = 4
_APPS: Final = 10
_ZONES: Final = 3
_TAINTED_EVERY: Final = 20
_WITH_IMAGE_EVERY: Final = 10
_NODES_WITH_DEVICES_MAX: Final = 500
_PODS_FROM: Final = 1_000_000_000

PLAIN: Final = "plain"
LARGE: Final = "large"


class Scene:
    """The cluster and the pods to measure.

    Attributes:
        cluster: The cluster, with four pods on each node.
        pods: Kind of pod -> pod.
    """

    def __init__(self, nodes: int) -> None:
        self.cluster = new_cluster()
        self.cluster.load(map(decoded, (templates.SERVICE, templates.DEVICE_CLASS)))
        names = [self._add_node(at) for at in range(nodes)]
        self._fill(names)
        self.pods = {kind: self._pending(kind, at) for at, kind in enumerate(_PENDING)}

    @property
    def snapshot(self) -> Snapshot:
        """Return a snapshot of the cluster."""
        return self.cluster.snapshot()

    def _add_node(self, at: int) -> str:
        labels = {templates.ZONE: f"zone-{at % _ZONES}", "disk": "ssd" if at % 2 else "hdd"}
        make = templates.node_default
        if at < _NODES_WITH_DEVICES_MAX:
            make = templates.node_with_dra_driver
        items = make(at, 3 * at, labels)
        node = items[0]
        if at % _TAINTED_EVERY == 0:
            effect = "NoSchedule" if at % (2 * _TAINTED_EVERY) else "PreferNoSchedule"
            node["spec"] = {"taints": [{"key": "dedicated", "value": "batch", "effect": effect}]}
        if at % _WITH_IMAGE_EVERY == 0:
            image = {"names": ["pause:3.10.2"], "sizeBytes": 50_000_000}
            node["status"]["images"] = [image]
        self.cluster.load(map(decoded, items))
        name: str = node["metadata"]["name"]
        return name

    def _fill(self, names: list[str]) -> None:
        # Pods of one template may share parts here: nothing is loaded or bound.
        pods = [_low_priority(app) for app in range(_APPS)]
        number = _PODS_FROM
        for at, name in enumerate(names):
            for turn in range(_PODS_PER_NODE):
                number += 1
                pod = pods[(at + turn) % _APPS]
                metadata = msgspec.structs.replace(
                    pod.metadata, name=f"pod-{number}", uid=templates.uid(number)
                )
                info = PodInfo(msgspec.structs.replace(pod, metadata=metadata))
                self.cluster.cache.assume_pod(info, name)

    def _pending(self, kind: str, at: int) -> PodInfo:
        item = _named(_PENDING[kind], f"pending-{kind}", 2 * _PODS_FROM + 10 * at)
        if kind == "volume":
            self.cluster.load(map(decoded, templates.with_csi_volume(item, 0)))
        elif kind == "claim":
            self.cluster.load(map(decoded, templates.with_resource_claim(item, 0)))
        pod = decoded(item)
        assert isinstance(pod, Pod), "the template of a pod is a pod"
        return PodInfo(pod)


def _named(template: Json, name: str, number: int) -> Json:
    own = {key: value for key, value in template["metadata"].items() if key == "labels"}
    return {**template, "metadata": templates.metadata(name, number, "default", **own)}


def _low_priority(app: int) -> Pod:
    item = _named(templates.PODS["pod-low-priority"], "pod", app)
    item["metadata"]["labels"] = {"app": f"app-{app}", "color": "blue" if app % 2 else "green"}
    pod = decoded(item)
    assert isinstance(pod, Pod), "the template of a pod is a pod"
    return pod


def _with_spec(**spec: object) -> Json:
    item = templates.PODS["pod-default"]
    return {**item, "spec": {**item["spec"], **spec}}


def _term(app: str, key: str) -> Json:
    return {"labelSelector": {"matchLabels": {"app": app}}, "topologyKey": key}


def _constraint(key: str, when_unsatisfiable: str) -> Json:
    return {
        "maxSkew": 5,
        "topologyKey": key,
        "whenUnsatisfiable": when_unsatisfiable,
        "labelSelector": {"matchLabels": {"app": "app-1"}},
    }


_ZONE_TERM: Final = {"key": templates.ZONE, "operator": "In", "values": ["zone-0", "zone-1"]}
_DISK_TERM: Final = {"key": "disk", "operator": "In", "values": ["ssd"]}

_PENDING: Final[dict[str, Json]] = {
    PLAIN: templates.PODS["pod-default"],
    LARGE: templates.PODS["pod-high-priority"],
    "node-affinity": _with_spec(
        affinity={
            "nodeAffinity": {
                "requiredDuringSchedulingIgnoredDuringExecution": {
                    "nodeSelectorTerms": [{"matchExpressions": [_ZONE_TERM]}]
                },
                "preferredDuringSchedulingIgnoredDuringExecution": [
                    {"weight": 10, "preference": {"matchExpressions": [_DISK_TERM]}}
                ],
            }
        }
    ),
    "host-port": _with_spec(
        containers=[
            {"name": "pause", "image": "pause:3.10.2", "ports": [{"hostPort": 8080}]},
        ]
    ),
    "spreading": _with_spec(
        topologySpreadConstraints=[
            _constraint(templates.ZONE, "DoNotSchedule"),
            _constraint(templates.ZONE, "ScheduleAnyway"),
            _constraint(templates.HOSTNAME, "ScheduleAnyway"),
        ]
    ),
    "pod-affinity": _with_spec(
        affinity={
            "podAffinity": {
                "requiredDuringSchedulingIgnoredDuringExecution": [_term("app-1", templates.ZONE)],
                "preferredDuringSchedulingIgnoredDuringExecution": [
                    {"weight": 10, "podAffinityTerm": _term("app-2", templates.HOSTNAME)}
                ],
            },
            "podAntiAffinity": {
                "requiredDuringSchedulingIgnoredDuringExecution": [
                    _term("app-3", templates.HOSTNAME)
                ],
            },
        }
    ),
    "volume": templates.PODS["pod-default"],
    "disk": _with_spec(
        volumes=[{"name": "disk", "gcePersistentDisk": {"pdName": "disk-1"}}],
    ),
    "claim": templates.PODS["pod-with-claim-template"],
}
