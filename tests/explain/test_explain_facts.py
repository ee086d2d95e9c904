"""Explanations give the facts behind a reason: the volume's zone, the class, devices, pods."""

from __future__ import annotations

from typing import Any, cast

import pytest

from kubesched.api.codec import decode_object
from kubesched.api.core import Pod
from kubesched.config.feature_gates import FeatureGates
from kubesched.explain.explain import explain_decision
from kubesched.explain.report import PodExplanation, PodOutcome
from kubesched.explain.sentences import headline, pre_filter_sentences
from kubesched.plugins.registry import in_tree_setup
from kubesched.scheduler.trace import Trace
from kubesched.simulator.cluster import ClusterState
from kubesched.simulator.simulation import simulate_cluster
from kubesched.snapshot.pod_info import PodInfo

Json = dict[str, Any]
ZONE = "topology.kubernetes.io/zone"
HOST = "kubernetes.io/hostname"
WAIT = "WaitForFirstConsumer"
EBS = "ebs.csi.aws.com"
DRIVER = "gpu.example.com"
A100 = f"device.attributes['{DRIVER}'].model == 'a100'"


def made(kind: str, name: str, api: str = "v1", **fields: Any) -> Json:
    """Return an object, namespaced kinds in `shop`."""
    place = (
        {"namespace": "shop"} if kind in ("Pod", "PersistentVolumeClaim", "ResourceClaim") else {}
    )
    metadata = {"name": name, "uid": name, **place, **fields.pop("metadata", {})}
    return {"apiVersion": api, "kind": kind, "metadata": metadata, **fields}


def node(name: str) -> Json:
    """Return a node in the zone that its name begins with."""
    amounts = {"cpu": "8", "memory": "8Gi", "pods": "110"}
    labels = {HOST: name, ZONE: name[0]}
    return made("Node", name, metadata={"labels": labels}, status={"allocatable": amounts})


def pod(
    name: str, *volumes: str, on: str = "", claim: str = "", app: str = "", **affinity: Json
) -> Json:
    """Return a pod with volumes from claims of these names, and a claim on devices."""
    spec: Json = {
        "containers": [{"name": "main", "image": "i"}],
        "nodeName": on,
        "affinity": affinity,
        "volumes": [{"name": one, "persistentVolumeClaim": {"claimName": one}} for one in volumes],
        "resourceClaims": [{"name": "c", "resourceClaimName": claim}] if claim else [],
    }
    return made("Pod", name, spec=spec, metadata={"labels": {"app": app}})


def required(app: str, key: str) -> Json:
    """Return a required affinity term about pods of an app."""
    term = {"topologyKey": key, "labelSelector": {"matchLabels": {"app": app}}}
    return {"requiredDuringSchedulingIgnoredDuringExecution": [term]}


def storage_class(name: str, mode: str, provisioner: str = EBS, *zones: str) -> Json:
    """Return a class, which makes volumes in these zones only."""
    expressions = [{"key": ZONE, "values": list(zones)}]
    allowed = [{"matchLabelExpressions": expressions}] if zones else []
    return made(
        "StorageClass",
        name,
        "storage.k8s.io/v1",
        provisioner=provisioner,
        volumeBindingMode=mode,
        allowedTopologies=allowed,
    )


def claim(name: str, storage_class: str, volume: str = "", selected: str = "") -> Json:
    """Return a claim for 10Gi, bound if it has a volume."""
    bound = {"pv.kubernetes.io/bind-completed": "yes"} if volume else {}
    chosen = {"volume.kubernetes.io/selected-node": selected} if selected else {}
    spec = {
        "storageClassName": storage_class,
        "accessModes": ["ReadWriteOnce"],
        "volumeName": volume,
        "resources": {"requests": {"storage": "10Gi"}},
    }
    return made(
        "PersistentVolumeClaim", name, spec=spec, metadata={"annotations": {**bound, **chosen}}
    )


def volume(name: str, storage_class: str, zone: str, size: str = "10Gi", owner: str = "") -> Json:
    """Return a volume in a zone, kept for a claim if one is named."""
    expression = {"key": ZONE, "operator": "In", "values": [zone]}
    spec: Json = {
        "storageClassName": storage_class,
        "accessModes": ["ReadWriteOnce"],
        "capacity": {"storage": size},
        "csi": {"driver": EBS, "volumeHandle": name},
        "nodeAffinity": {"required": {"nodeSelectorTerms": [{"matchExpressions": [expression]}]}},
    }
    if owner:
        spec["claimRef"] = {"namespace": "shop", "name": owner}
    phase = "Bound" if owner else "Available"
    return made("PersistentVolume", name, spec=spec, status={"phase": phase})


def device(name: str, model: str, taint: str = "") -> Json:
    """Return a device of a model."""
    taints = [{"key": taint, "effect": "NoSchedule"}] if taint else []
    return {"name": name, "attributes": {"model": {"string": model}}, "taints": taints}


def devices(node_name: str, *listed: Json, driver: str = DRIVER) -> Json:
    """Return the slice of a node's devices."""
    pool = {"name": node_name, "generation": 1, "resourceSliceCount": 1}
    spec = {"driver": driver, "nodeName": node_name, "pool": pool, "devices": list(listed)}
    return made("ResourceSlice", node_name, "resource.k8s.io/v1", spec=spec)


def device_claim(name: str, on: str = "", constraint: str = "", **exactly: Any) -> Json:
    """Return a claim of one request; `on` is the node where it is allocated g0."""
    requests = [{"name": "gpu", "exactly": {"deviceClassName": "gpu", **exactly}}]
    constraints = [{"matchAttribute": constraint}] if constraint else []
    status: Json = {}
    if on:
        field = {"key": "metadata.name", "operator": "In", "values": [on]}
        status["allocation"] = {
            "devices": {
                "results": [{"request": "gpu", "driver": DRIVER, "pool": on, "device": "g0"}]
            },
            "nodeSelector": {"nodeSelectorTerms": [{"matchFields": [field]}]},
        }
    return made(
        "ResourceClaim",
        name,
        "resource.k8s.io/v1",
        spec={"devices": {"requests": requests, "constraints": constraints}},
        status=status,
    )


SELECTED: Json = {"selectors": [{"cel": {"expression": A100}}], "count": 2}
STORAGE = [
    storage_class("now", "Immediate"),
    storage_class("static-now", "Immediate", "kubernetes.io/no-provisioner"),
    storage_class("local", WAIT, "kubernetes.io/no-provisioner"),
    storage_class("fast", WAIT),
    storage_class("zonal", WAIT, EBS, "x", "y"),
    claim("on-z", "fast", "pv-z"),
    volume("pv-z", "fast", "z", owner="on-z"),
    claim("lost", "fast", "pv-gone"),
    claim("immediate", "now"),
    claim("by-hand", "static-now"),
    claim("ghost", "ghost"),
    claim("local", "local"),
    volume("l1", "local", "a", "1Gi"),
    volume("l2", "local", "q"),
    volume("l3", "local", "a", owner="other"),
    claim("zonal", "zonal"),
    claim("new", "fast"),
    claim("chosen", "fast", selected="elsewhere"),
]
DEVICES = [
    made(
        "DeviceClass",
        "gpu",
        "resource.k8s.io/v1",
        spec={"selectors": [{"cel": {"expression": f"device.driver == '{DRIVER}'"}}]},
    ),
    devices(
        "a-1",
        device("g0", "a100"),
        device("g1", "a100", "broken"),
        device("g2", "t4"),
        device("g3", "a100"),
    ),
    devices("b-1", device("n0", "x"), driver="nic.example.com"),
    device_claim("held", on="a-1"),
    device_claim("held-b", on="b-1"),
    device_claim("two", **SELECTED),
    device_claim("all", allocationMode="All"),
    device_claim("same", count=2, constraint=f"{DRIVER}/model"),
]
PODS = [
    pod("web-0", on="a-1", app="web"),
    pod("web-1", on="a-1", app="web"),
    pod("shy", on="b-1", podAntiAffinity=required("visitor", ZONE)),
]


def explain(asked: Json, *others: Json) -> PodExplanation:
    """Explain a pod on two nodes in two zones."""
    gates = FeatureGates()
    cluster = ClusterState(in_tree_setup(gates), remembers=False)
    every = [node("a-1"), node("b-1"), *PODS, *others]
    cluster.load(cast("Any", decode_object(one)) for one in every)
    info = PodInfo(cast("Pod", decode_object(asked)))
    profile, trace = cluster.profile_of(info), Trace()
    assert profile is not None
    snapshot = cluster.snapshot()
    return explain_decision(profile, snapshot, trace, cluster.schedule_one(info, trace))


def details(report: PodExplanation) -> list[str]:
    """Return the detail of each node."""
    return [verdict.rejections[0].detail if verdict.rejections else "" for verdict in report.nodes]


@pytest.mark.parametrize(
    ("name", "reason", "detail"),
    [
        pytest.param(
            "immediate",
            "pod has unbound immediate PersistentVolumeClaims",
            "claim immediate has no volume, and StorageClass now binds at once: "
            f"{EBS} must create a volume before any pod is placed",
            id="immediate",
        ),
        pytest.param(
            "by-hand",
            "pod has unbound immediate PersistentVolumeClaims",
            "claim by-hand has no volume, and StorageClass static-now binds at once: "
            "a volume must be created before any pod is placed",
            id="immediate without provisioner",
        ),
        pytest.param(
            "ghost",
            "pod has unbound immediate PersistentVolumeClaims",
            "claim ghost has no volume and names StorageClass ghost, which does not exist",
            id="class does not exist",
        ),
    ],
)
def test_claims_that_reject_the_pod(name: str, reason: str, detail: str) -> None:
    """The claim and its class are added to kube-scheduler's message."""
    step = explain(pod("p", name), *STORAGE).pre_filter
    assert step is not None
    assert (reason,) == step.reasons
    assert detail == step.detail
    assert [
        f"VolumeBinding rejects the pod as a whole: {reason}.",
        f"C{detail[1:]}.",
    ] == list(pre_filter_sentences(step))


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        pytest.param(
            "on-z",
            [
                f"claim on-z: volume pv-z wants {ZONE} In (z), node has {ZONE}={zone}"
                for zone in "ab"
            ],
            id="zone of the volume",
        ),
        pytest.param(
            "local",
            [
                f"claim local: StorageClass local makes no volumes; of its 3 volumes: {why}"
                for why in (
                    "1 too small, 1 out of the node's reach, 1 kept for other claims",
                    "1 too small, 1 out of the node's reach, 1 kept for other claims",
                )
            ],
            id="class cannot provision",
        ),
        pytest.param(
            "zonal",
            [
                f"claim zonal: StorageClass zonal makes volumes only where {ZONE} In (x, y), "
                f"node has {ZONE}={zone}; it has no volumes"
                for zone in "ab"
            ],
            id="allowed topologies",
        ),
        pytest.param(
            "chosen",
            ["claim chosen: its volume is being made for node elsewhere"] * 2,
            id="selected node",
        ),
    ],
)
def test_claims_that_reject_nodes(name: str, expected: list[str]) -> None:
    """Each node has the volume or class that rejected it."""
    assert expected == details(explain(pod("p", name), *STORAGE))


def test_pod_that_waits_for_a_volume() -> None:
    """It is not reported as placed: its volume must be provisioned first."""
    report = explain(pod("p", "new"), *STORAGE)
    awaited = f"a volume of StorageClass fast for claim new, made by {EBS}"
    assert PodOutcome.SCHEDULABLE is report.outcome
    assert (awaited,) == report.waits_for
    assert f"Pod shop/p goes to {report.node} when it has {awaited}." == headline(report)


def test_simulated_pod_that_waits_for_a_volume() -> None:
    """The placement says so, but not for a pod whose volume exists."""
    gates = FeatureGates()
    raw = [node("a-1"), *STORAGE, pod("new", "new"), pod("plain")]
    objects = [cast("Any", decode_object(one)) for one in raw]
    report = simulate_cluster(in_tree_setup(gates), objects).report
    placed = {found.pod: found.waits_for for found in report.placements}
    awaited = f"a volume of StorageClass fast for claim new, made by {EBS}"
    assert {"shop/new": (awaited,), "shop/plain": ()} == placed


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        pytest.param(
            "two",
            [
                (
                    f"claim two, request gpu: wants 2 of class gpu where {A100}; 1 of 4 devices "
                    "free (1 allocated, 1 tainted broken=:NoSchedule, 1 not selected)"
                ),
                (
                    f"claim two, request gpu: wants 2 of class gpu where {A100}; 0 of 1 devices "
                    "free (1 of another class)"
                ),
            ],
            id="count",
        ),
        pytest.param(
            "all",
            [
                (
                    "claim all, request gpu: wants all of class gpu; 2 of 4 devices free "
                    "(1 allocated, 1 tainted broken=:NoSchedule)"
                ),
                (
                    "claim all, request gpu: wants all of class gpu; 0 of 1 devices free "
                    "(1 of another class)"
                ),
            ],
            id="all",
        ),
        pytest.param(
            "same",
            [
                (
                    "claim same: each request alone can be served, all together cannot, "
                    f"matchAttribute {DRIVER}/model"
                ),
                (
                    "claim same, request gpu: wants 2 of class gpu; 0 of 1 devices free "
                    "(1 of another class)"
                ),
            ],
            id="constraint",
        ),
    ],
)
def test_devices(name: str, expected: list[str]) -> None:
    """The request that cannot be allocated, and what the node's devices lack."""
    report = explain(pod("p", claim=name), *DEVICES)
    assert ("cannot allocate all claims",) == report.nodes[0].rejections[0].reasons
    assert expected == details(report)


def test_nodes_without_devices() -> None:
    """There is nothing to count."""
    report = explain(pod("p", claim="two"), DEVICES[0], device_claim("two"))
    text = "claim two, request gpu: wants 1 of class gpu; the node has no devices"
    assert [text] * 2 == details(report)


def test_allocated_claims() -> None:
    """The device, and where it can be used."""
    report = explain(pod("p", claim="held"), *DEVICES)
    text = f"claim held is allocated {DRIVER}/a-1/g0: wants metadata.name In (a-1)"
    assert ["", text] == details(report)


@pytest.mark.parametrize(
    ("asked", "expected"),
    [
        pytest.param(
            pod("p", podAntiAffinity=required("web", ZONE)),
            [
                f"{ZONE}=a: this pod avoids app=web in shop: shop/web-0 on a-1, shop/web-1 on a-1",
                "",
            ],
            id="anti-affinity",
        ),
        pytest.param(
            pod("p", podAffinity=required("web", HOST)),
            [
                "",
                (
                    f"{HOST}=b-1: no pod matches app=web in shop; elsewhere: shop/web-0 on a-1, "
                    "shop/web-1 on a-1"
                ),
            ],
            id="affinity",
        ),
        pytest.param(
            pod("p", podAffinity=required("db", HOST)),
            ["no pod on any node matches app=db in shop"] * 2,
            id="affinity to nobody",
        ),
        pytest.param(
            pod("p", podAffinity=required("web", "rack")),
            ["the node has no label rack"] * 2,
            id="no such label",
        ),
        pytest.param(
            pod("p", app="visitor"),
            ["", f"{ZONE}=b: pods that avoid app=visitor: shop/shy on b-1"],
            id="existing anti-affinity",
        ),
    ],
)
def test_affinity(asked: Json, expected: list[str]) -> None:
    """The pods, their nodes, and the selector that matches them."""
    assert expected == details(explain(asked))


def test_long_lists_of_pods_are_cut() -> None:
    """Three by name, and how many more."""
    more = [pod(f"web-{at}", on="a-1", app="web") for at in range(2, 6)]
    report = explain(pod("p", podAntiAffinity=required("web", ZONE)), *more)
    assert details(report)[0].endswith("shop/web-2 on a-1 and 3 more")
