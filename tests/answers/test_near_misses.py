"""Names, labels and taints that are nearly right."""

from __future__ import annotations

from typing import Any

import pytest

from kubesched import Cluster

NODE = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n"}}


def item(version: str, kind: str, name: str, **spec: Any) -> dict[str, Any]:
    """Return an object of a namespace or of the cluster."""
    is_class = kind.endswith("Class")
    metadata = {"name": name} if is_class else {"name": name, "namespace": "shop"}
    return {"apiVersion": version, "kind": kind, "metadata": metadata, **spec}


def pod(**spec: Any) -> dict[str, Any]:
    """Return a pending pod."""
    return item("v1", "Pod", "p", spec={"containers": [{"name": "main"}], **spec})


def claim(name: str, storage_class: str) -> dict[str, Any]:
    """Return a PersistentVolumeClaim that has no volume."""
    spec = {
        "storageClassName": storage_class,
        "accessModes": ["ReadWriteOnce"],
        "resources": {"requests": {"storage": "1Gi"}},
    }
    return item("v1", "PersistentVolumeClaim", name, spec=spec)


def device_claim(name: str, device_class: str) -> dict[str, Any]:
    """Return a ResourceClaim for one device."""
    request = {"name": "one", "exactly": {"deviceClassName": device_class}}
    spec = {"devices": {"requests": [request]}}
    return item("resource.k8s.io/v1", "ResourceClaim", name, spec=spec)


def test_volumes() -> None:
    """A claim, and the class of a claim without a volume, of an ephemeral volume too."""
    volumes: list[dict[str, Any]] = [
        {"name": "a", "persistentVolumeClaim": {"claimName": "data"}},
        {"name": "b", "persistentVolumeClaim": {"claimName": "lgos"}},
        {"name": "c", "ephemeral": {"volumeClaimTemplate": {"spec": claim("", "fast")["spec"]}}},
    ]
    objects = [claim("data", "fast-sdd"), claim("logs", "fast-ssd"), claim("p-c", "fsat-ssd")]
    fast = item("storage.k8s.io/v1", "StorageClass", "fast-ssd", provisioner="x.example.com")
    report = Cluster.from_objects([NODE, fast, *objects, pod(volumes=volumes)]).why("shop/p")
    assert report.near_misses == (
        "the StorageClass fast-sdd is asked for; it does not exist; did you mean fast-ssd?",
        "the PersistentVolumeClaim lgos is asked for; it does not exist; did you mean logs?",
        "the StorageClass fsat-ssd is asked for; it does not exist; did you mean fast-ssd?",
    )


def test_devices() -> None:
    """A claim, and the class of a claim's request."""
    claims = [{"name": "a", "resourceClaimName": "gpus"}, {"name": "b", "resourceClaimName": "gps"}]
    objects = [device_claim("gpus", "gpu.exmple"), pod(resourceClaims=claims)]
    gpu = item("resource.k8s.io/v1", "DeviceClass", "gpu.example", spec={})
    report = Cluster.from_objects([NODE, gpu, *objects]).why("shop/p")
    assert report.near_misses == (
        "the DeviceClass gpu.exmple is asked for; it does not exist; did you mean gpu.example?",
        "the ResourceClaim gps is asked for; it does not exist; did you mean gpus?",
    )


def test_templates_of_claims() -> None:
    """A claim is not created while its template does not exist."""
    claims = [{"name": "a", "resourceClaimTemplateName": "gpu-templte"}]
    template = item("resource.k8s.io/v1", "ResourceClaimTemplate", "gpu-template", spec={})
    report = Cluster.from_objects([NODE, template, pod(resourceClaims=claims)]).why("shop/p")
    wanted = "the ResourceClaimTemplate gpu-templte is asked for; it does not exist; "
    assert (wanted + "did you mean gpu-template?",) == report.near_misses


@pytest.mark.parametrize(
    ("spec", "objects", "note"),
    [
        pytest.param(
            {"volumes": [{"name": "a", "persistentVolumeClaim": {"claimName": "data"}}]},
            [claim("other", "")],
            "PersistentVolumeClaim data does not exist: create it, or use another one; "
            "there is only other.",
            id="claim",
        ),
        pytest.param(
            {"volumes": [{"name": "a", "persistentVolumeClaim": {"claimName": "data"}}]},
            [claim("data", "fast")],
            "StorageClass fast does not exist: create it, or use another one; "
            "there are no StorageClasses.",
            id="class",
        ),
        pytest.param(
            {"resourceClaims": [{"name": "a", "resourceClaimTemplateName": "gpus"}]},
            [item("resource.k8s.io/v1", "ResourceClaimTemplate", "other", spec={})],
            "ResourceClaimTemplate gpus does not exist: create it, or use another one; "
            "there is only other.",
            id="template",
        ),
    ],
)
def test_nothing_similar(spec: dict[str, Any], objects: list[dict[str, Any]], note: str) -> None:
    """A note has what is missing, and the remedy."""
    report = Cluster.from_objects([NODE, *objects, pod(**spec)]).why("shop/p")
    assert ((), (note,)) == (report.near_misses, report.notes)


def test_a_class_that_only_volumes_name() -> None:
    """A claim can be bound by the name of a class that does not exist."""
    source = {"hostPath": {"path": "/data"}, "accessModes": ["ReadWriteOnce"]}
    spec = {**source, "storageClassName": "manual", "capacity": {"storage": "1Ki"}}
    volume = item("v1", "PersistentVolume", "small", spec=spec)
    volumes = [{"name": "a", "persistentVolumeClaim": {"claimName": "data"}}]
    objects = [NODE, volume, claim("data", "manual"), pod(volumes=volumes)]
    report = Cluster.from_objects(objects).why("shop/p")
    assert not any("StorageClass manual" in note for note in report.notes)


def test_objects_that_the_input_may_lack() -> None:
    """They are not said to be missing."""
    volumes = [{"name": "a", "persistentVolumeClaim": {"claimName": "data"}}]
    objects = [NODE, claim("data", "fast"), pod(volumes=volumes)]
    report = Cluster.from_objects(objects, complete=False).why("shop/p")
    assert ((), True) == (report.notes, "StorageClass" in [one.kind for one in report.unknown])


@pytest.mark.parametrize(
    ("gates", "notes"),
    [
        (
            "GenericWorkload=true,GangScheduling=true",
            ("PodGroup train does not exist: create it, or use another one; there is only other.",),
        ),
        ("", ()),
    ],
    ids=["enabled", "disabled"],
)
def test_groups(gates: str, notes: tuple[str, ...]) -> None:
    """A pod waits for its group only if groups are enabled."""
    group = item("scheduling.k8s.io/v1alpha2", "PodGroup", "other", spec={})
    waiting = pod(schedulingGroup={"podGroupName": "train"}, nodeSelector={"disk": "ssd"})
    report = Cluster.from_objects([NODE, group, waiting], feature_gates=gates).why("shop/p")
    assert notes == report.notes


def test_pods_to_be_near() -> None:
    """The labels of a required pod affinity; other namespaces do not count."""
    selector = {"matchLabels": {"app": "wbe", "tier": "none"}}
    term = {"labelSelector": selector, "topologyKey": "kubernetes.io/hostname"}
    affinity = {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
    asking = pod(affinity=affinity)
    near = pod(nodeName="n")
    near["metadata"] = {"name": "near", "namespace": "shop", "labels": {"app": "web"}}
    elsewhere = pod(nodeName="n")
    elsewhere["metadata"] = {"name": "far", "namespace": "other", "labels": {"app": "wb"}}
    node = {**NODE, "metadata": {"name": "n", "labels": {"kubernetes.io/hostname": "n"}}}
    report = Cluster.from_objects([node, asking, near, elsewhere]).why("shop/p")
    assert ("pods with app=wbe are asked for; pods have app=web",) == report.near_misses


@pytest.mark.parametrize(
    ("key", "hint"),
    [
        ("node-role.kubernetes.io/control-plane", ""),
        ("failure-domain.beta.kubernetes.io/zone", "topology.kubernetes.io/zone"),
        ("topology.kubernetes.io/zones", "topology.kubernetes.io/zone"),
    ],
)
def test_labels_of_another_name_in_the_same_domain_are_not_near(key: str, hint: str) -> None:
    """Names are compared, because thousands of labels share kubernetes.io."""
    labels = {"topology.kubernetes.io/zone": "a", "kubernetes.io/hostname": "n"}
    node = {**NODE, "metadata": {"name": "n", "labels": labels}}
    report = Cluster.from_objects([node, pod(nodeSelector={key: "a"})]).why("p")
    words = f"the label {key} is asked for; no node has it"
    assert (f"{words}; did you mean {hint}?" if hint else words,) == report.near_misses


@pytest.mark.parametrize(
    ("spec", "sentence", "change"),
    [
        pytest.param(
            {"nodeSelector": {"node-role.kubernetes.io/worker": "true"}},
            'node-role.kubernetes.io/worker=true is asked for; nodes have ""',
            "ask for node-role.kubernetes.io/worker= instead of true",
            id="no value",
        ),
        pytest.param(
            {"nodeSelector": {"GPU": "yes"}},
            "the label GPU is asked for; no node has it; did you mean gpu?",
            "ask for gpu=yes instead of GPU=yes",
            id="case of a key",
        ),
        pytest.param(
            {
                "affinity": {
                    "podAffinity": {
                        "requiredDuringSchedulingIgnoredDuringExecution": [
                            {"topologyKey": "gpus", "labelSelector": {"matchLabels": {"a": "b"}}}
                        ]
                    }
                }
            },
            "pod affinity by gpus is asked for; no node has it; did you mean gpu?",
            "drop the pod affinity to a=b by gpus",
            id="topology key",
        ),
        pytest.param(
            {"tolerations": [{"key": "example.com/dedicatd", "operator": "Exists"}]},
            "example.com/dedicatd is tolerated; no taint has this key; did you mean "
            "example.com/dedicated?",
            "tolerate the taint example.com/dedicated:NoSchedule",
            id="key of a taint",
        ),
    ],
)
def test_labels_and_taints(spec: dict[str, Any], sentence: str, change: str) -> None:
    """The first change is a correction, or drops the constraint."""
    taints = [{"key": "example.com/dedicated", "effect": "NoSchedule"}]
    labels = {"node-role.kubernetes.io/worker": "", "gpu": "yes"}
    allocatable = {"cpu": "4", "memory": "8Gi", "pods": "10"}
    node = {
        **NODE,
        "metadata": {"name": "n", "labels": labels},
        "spec": {"taints": taints if "tolerations" in spec else []},
        "status": {"allocatable": allocatable},
    }
    report = Cluster.from_objects([node, pod(**spec)]).why("shop/p")
    assert (sentence,) == report.near_misses
    assert change == report.changes[0].sentence


def test_taints_that_show_the_state_of_a_node() -> None:
    """Pods tolerate some of them for a time, whatever taints nodes have."""
    tolerations = [{"key": "node.kubernetes.io/unreachable", "operator": "Exists"}]
    taint = {"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule"}
    node = {**NODE, "spec": {"taints": [taint]}}
    assert (
        () == Cluster.from_objects([node, pod(tolerations=tolerations)]).why("shop/p").near_misses
    )
