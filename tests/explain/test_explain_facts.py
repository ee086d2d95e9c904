"""Explanations give the facts behind a reason: the volume's zone, the class, devices, pods."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from kubesched.api.core import Pod
from kubesched.api.meta import KubeObject, NodeSelector
from kubesched.api.resource import DeviceConstraint, ResourceClaim
from kubesched.api.volume import PersistentVolume
from kubesched.config.feature_gates import FeatureGates
from kubesched.explain.report import PodExplanation, PodOutcome
from kubesched.explain.sentences import headline, pre_filter_sentences
from kubesched.plugins.registry import in_tree_setup
from kubesched.simulator.simulation import simulate_cluster
from kubesched.testing.builders import make_pod
from tests.explain import test_explain
from tests.plugins.dynamic_resources.objects import (
    DRIVER,
    TAINT,
    allocation_of,
    claim,
    device,
    device_class,
    request,
    result,
    selectors,
    slice_of,
)
from tests.plugins.volume_objects import (
    HOSTNAME,
    SELECTED_NODE,
    ZONE,
    make_claim,
    make_class,
    make_volume,
)
from tests.simulator.clusters import cluster_of, node

Json = dict[str, Any]
EBS = "ebs.csi.aws.com"
BY_HAND = "kubernetes.io/no-provisioner"
A100 = f"device.attributes['{DRIVER}'].model == 'a100'"


def pod(*claims: str, devices: str = "", name: str = "p") -> Pod:
    """Return a pod with volumes from these claims, and devices from one."""
    return make_pod(
        name,
        volumes=[{"name": one, "persistentVolumeClaim": {"claimName": one}} for one in claims],
        spec={"resourceClaims": [{"name": "c", "resourceClaimName": devices}] if devices else []},
    )


def required(app: str, key: str) -> Json:
    """Return a required affinity term about pods of an app."""
    term = {"topologyKey": key, "labelSelector": {"matchLabels": {"app": app}}}
    return {"requiredDuringSchedulingIgnoredDuringExecution": [term]}


def volume(
    name: str, storage_class: str, zone: str, size: str = "10Gi", owner: str = ""
) -> PersistentVolume:
    """Return a volume in a zone, kept for a claim if one is named."""
    return make_volume(
        name,
        storage_class=storage_class,
        storage=size,
        nodes={ZONE: [zone]},
        claim={"namespace": "default", "name": owner} if owner else None,
        phase="Bound" if owner else "Available",
        csi={"driver": EBS, "volumeHandle": name},
    )


def allocated(name: str, node_name: str) -> ResourceClaim:
    """Return a claim that is allocated a device of a node."""
    field = {"key": "metadata.name", "operator": "In", "values": [node_name]}
    there = msgspec.convert({"nodeSelectorTerms": [{"matchFields": [field]}]}, NodeSelector)
    allocation = allocation_of(result("g0", node_name))
    return claim(
        request("gpu"),
        name=name,
        allocation=msgspec.structs.replace(allocation, node_selector=there),
    )


STORAGE = [
    make_class("now", mode="Immediate", provisioner=EBS),
    make_class("static-now", mode="Immediate", provisioner=BY_HAND),
    make_class("local", provisioner=BY_HAND),
    make_class("fast", provisioner=EBS),
    make_class("zonal", provisioner=EBS, topologies=[{ZONE: ["x", "y"]}]),
    volume("pv-z", "fast", "z", owner="on-z"),
    volume("l1", "local", "a", "1Gi"),
    volume("l2", "local", "q"),
    volume("l3", "local", "a", owner="other"),
    make_claim("on-z", storage_class="fast", volume="pv-z"),
    make_claim("lost", storage_class="fast", volume="pv-gone"),
    make_claim("immediate", storage_class="now"),
    make_claim("by-hand", storage_class="static-now"),
    make_claim("ghost", storage_class="ghost"),
    make_claim("local", storage_class="local", storage="10Gi"),
    make_claim("zonal", storage_class="zonal"),
    make_claim("new", storage_class="fast"),
    make_claim("chosen", storage_class="fast", annotations={SELECTED_NODE: "elsewhere"}),
]
DEVICES = [
    device_class("gpu", f"device.driver == '{DRIVER}'"),
    slice_of(
        [
            device("g0", {"model": "a100"}),
            device("g1", {"model": "a100"}, taints=(TAINT,)),
            device("g2", {"model": "t4"}),
            device("g3", {"model": "a100"}),
        ],
        "a-1",
        pool="a-1",
        node_name="a-1",
    ),
    slice_of([device("n0")], "b-1", driver="nic.example.com", pool="b-1", node_name="b-1"),
    allocated("held", "a-1"),
    allocated("held-b", "b-1"),
    claim(request("gpu", count=2, selectors=selectors(A100)), name="two"),
    claim(request("gpu", allocation_mode="All"), name="all"),
    claim(
        request("gpu", count=2),
        name="same",
        constraints=[DeviceConstraint(match_attribute=f"{DRIVER}/model")],
    ),
]
PODS = [
    make_pod("web-0", node_name="a-1", labels={"app": "web"}),
    make_pod("web-1", node_name="a-1", labels={"app": "web"}),
    make_pod("shy", node_name="b-1", pod_anti_affinity=required("visitor", ZONE)),
]
WEB = "default/web-0 on a-1, default/web-1 on a-1"


def explain(asked: Pod, *others: KubeObject) -> PodExplanation:
    """Explain a pod on two nodes in two zones."""
    nodes = node("a-1", zone="a"), node("b-1", zone="b")
    return test_explain.explain(cluster_of(*nodes, *PODS, *others), asked)


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
    step = explain(pod(name), *STORAGE).pre_filter
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
            f"claim on-z: volume pv-z wants {ZONE} In (z), node has {ZONE}={{zone}}",
            id="zone of the volume",
        ),
        pytest.param(
            "local",
            "claim local: StorageClass local makes no volumes; of its 3 volumes: "
            "1 too small, 1 out of the node's reach, 1 kept for other claims",
            id="class cannot provision",
        ),
        pytest.param(
            "zonal",
            f"claim zonal: StorageClass zonal makes volumes only where {ZONE} In (x, y), "
            f"node has {ZONE}={{zone}}; it has no volumes",
            id="allowed topologies",
        ),
        pytest.param(
            "chosen",
            "claim chosen: its volume is being made for node elsewhere",
            id="selected node",
        ),
    ],
)
def test_claims_that_reject_nodes(name: str, expected: str) -> None:
    """Each node has the volume or class that rejected it."""
    assert [expected.format(zone=zone) for zone in "ab"] == details(explain(pod(name), *STORAGE))


def test_pod_that_waits_for_a_volume() -> None:
    """It is not reported as placed: its volume must be provisioned first."""
    report = explain(pod("new"), *STORAGE)
    awaited = f"a volume of StorageClass fast for claim new, made by {EBS}"
    assert PodOutcome.SCHEDULABLE is report.outcome
    assert (awaited,) == report.waits_for
    assert f"Pod default/p goes to {report.node} when it has {awaited}." == headline(report)


def test_simulated_pod_that_waits_for_a_volume() -> None:
    """The placement says so, but not for a pod whose volume exists."""
    objects = [node("a-1"), *STORAGE, pod("new", name="new"), pod(name="plain")]
    report = simulate_cluster(in_tree_setup(FeatureGates()), objects).report
    placed = {found.pod: found.waits_for for found in report.placements}
    awaited = f"a volume of StorageClass fast for claim new, made by {EBS}"
    assert {"default/new": (awaited,), "default/plain": ()} == placed


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
    report = explain(pod(devices=name), *DEVICES)
    assert ("cannot allocate all claims",) == report.nodes[0].rejections[0].reasons
    assert expected == details(report)


def test_nodes_without_devices() -> None:
    """There is nothing to count."""
    report = explain(pod(devices="two"), DEVICES[0], claim(request("gpu"), name="two"))
    text = "claim two, request gpu: wants 1 of class gpu; the node has no devices"
    assert [text] * 2 == details(report)


def test_allocated_claims() -> None:
    """The device, and where it can be used."""
    report = explain(pod(devices="held"), *DEVICES)
    text = f"claim held is allocated {DRIVER}/a-1/g0: wants metadata.name In (a-1)"
    assert ["", text] == details(report)


@pytest.mark.parametrize(
    ("asked", "expected"),
    [
        pytest.param(
            make_pod(pod_anti_affinity=required("web", ZONE)),
            [f"{ZONE}=a: this pod avoids app=web in default: {WEB}", ""],
            id="anti-affinity",
        ),
        pytest.param(
            make_pod(pod_affinity=required("web", HOSTNAME)),
            ["", f"{HOSTNAME}=b-1: no pod matches app=web in default; elsewhere: {WEB}"],
            id="affinity",
        ),
        pytest.param(
            make_pod(pod_affinity=required("db", HOSTNAME)),
            ["no pod on any node matches app=db in default"] * 2,
            id="affinity to nobody",
        ),
        pytest.param(
            make_pod(pod_affinity=required("web", "rack")),
            ["the node has no label rack"] * 2,
            id="no such label",
        ),
        pytest.param(
            make_pod(labels={"app": "visitor"}),
            ["", f"{ZONE}=b: pods that avoid app=visitor: default/shy on b-1"],
            id="existing anti-affinity",
        ),
    ],
)
def test_affinity(asked: Pod, expected: list[str]) -> None:
    """The pods, their nodes, and the selector that matches them."""
    assert expected == details(explain(asked))


def test_long_lists_of_pods_are_cut() -> None:
    """Three by name, and how many more."""
    more = [make_pod(f"web-{at}", node_name="a-1", labels={"app": "web"}) for at in range(2, 6)]
    report = explain(make_pod(pod_anti_affinity=required("web", ZONE)), *more)
    assert details(report)[0].endswith("default/web-2 on a-1 and 3 more")
