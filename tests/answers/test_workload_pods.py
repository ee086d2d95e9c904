"""The pods that the controllers of workloads create."""

from __future__ import annotations

from typing import Any, cast

import pytest

from kubesched.answers.workload_pods import (
    Owners,
    Workload,
    new_pods,
    owns,
    read_manifests,
    replacement_of,
    replica_sets_of,
    replicas_of,
)
from kubesched.api.apps import Job, ReplicaSet
from kubesched.api.codec import decode_object
from kubesched.api.core import Node, Pod
from kubesched.api.meta import ObjectMeta, OwnerReference
from kubesched.testing.builders import make_pod, make_pod_info

from .trials import node, owner_metadata, running

SPEC = {"containers": [{"name": "main", "image": "app"}]}
TEMPLATE = {"metadata": {"labels": {"app": "web"}}, "spec": SPEC}


def workload(kind: str, group: str = "apps/v1", **spec: Any) -> Workload:
    """Return a workload named web."""
    metadata = {"name": "web", "namespace": "shop", "uid": "u"}
    raw = {"apiVersion": group, "kind": kind, "metadata": metadata, "spec": spec}
    return cast("Workload", decode_object(raw))


def owner_of(pod: Pod) -> tuple[str, str]:
    """Return kind and name of a pod's controller."""
    (owner,) = pod.metadata.owner_references
    assert owner.controller
    return owner.kind, owner.name


def test_a_deployment_has_a_replica_set_named_by_template_hash() -> None:
    """Its pods have the same hash."""
    new = new_pods(workload("Deployment", template=TEMPLATE), 2)
    (replica_set,) = new.owners
    named = replica_set.metadata.labels["pod-template-hash"]
    assert replica_set.metadata.name == f"web-{named}"
    assert {"app": "web", "pod-template-hash": named} == new.pods[0].metadata.labels
    assert [("ReplicaSet", f"web-{named}")] * 2 == [owner_of(pod) for pod in new.pods]
    assert f"web-{named}-" == new.pods[0].metadata.generate_name


def test_a_stateful_set_fills_missing_ordinals() -> None:
    """Ordinals count from 0; each pod has its claims."""
    claims = [{"metadata": {"name": "data"}, "spec": {"accessModes": ["ReadWriteOnce"]}}]
    new = new_pods(
        workload("StatefulSet", template=TEMPLATE, volumeClaimTemplates=claims), 2, ["web-1"]
    )
    assert ["web-0", "web-2"] == [pod.metadata.name for pod in new.pods]
    assert ["data-web-0", "data-web-2"] == [claim.metadata.name for claim in new.claims]
    (volume,) = new.pods[1].spec.volumes
    assert volume.persistent_volume_claim is not None
    assert volume.persistent_volume_claim.claim_name == "data-web-2"
    assert owner_of(new.pods[0]) == ("StatefulSet", "web")


def test_ordinals_of_a_stateful_set_start_where_it_says() -> None:
    """The claims of pods before that number are not used."""
    new = new_pods(workload("StatefulSet", template=TEMPLATE, ordinals={"start": 5}), 2, ["web-6"])
    assert ["web-5", "web-7"] == [pod.metadata.name for pod in new.pods]


def test_a_daemon_set_has_a_pod_for_each_node_without_one() -> None:
    """Each pod requires its node by name."""
    nodes: list[Node] = [node("a"), node("b"), node("c")]
    new = new_pods(workload("DaemonSet", template=TEMPLATE), 0, ["b"], nodes)
    found: list[str] = []
    for pod in new.pods:
        assert pod.spec.affinity is not None
        assert pod.spec.affinity.node_affinity is not None
        required = (
            pod.spec.affinity.node_affinity.required_during_scheduling_ignored_during_execution
        )
        assert required is not None
        found += required.node_selector_terms[0].match_fields[0].values
    assert found == ["a", "c"]


def test_a_cron_job_has_one_run() -> None:
    """Its job's pods name the job."""
    template = {"spec": {"parallelism": 3, "template": TEMPLATE}}
    item = workload("CronJob", "batch/v1", jobTemplate=template)
    new = new_pods(item, replicas_of(item))
    assert ["Job"] == [owner.kind for owner in new.owners]
    assert [("Job", "web-1")] * 3 == [owner_of(pod) for pod in new.pods]
    assert new.pods[0].metadata.labels["job-name"] == "web-1"


def test_the_pods_of_a_job_have_its_labels() -> None:
    """Affinity and spread may select them; indexes are those that its pods do not have."""
    spec = {"parallelism": 2, "completions": 4, "completionMode": "Indexed"}
    taken = ["web-0-x", "web-2-y"]
    new = new_pods(workload("Job", "batch/v1", template=TEMPLATE, **spec), 2, taken)
    index = "batch.kubernetes.io/job-completion-index"
    named = {"batch.kubernetes.io/job-name": "web", "job-name": "web"}
    owned = {"batch.kubernetes.io/controller-uid": "u", "controller-uid": "u"}
    assert [{"app": "web", **named, **owned, index: at} for at in "13"] == [
        pod.metadata.labels for pod in new.pods
    ]


def test_copies_of_a_pod() -> None:
    """The first one has the pod's own name."""
    pod = make_pod("probe")
    new = new_pods(pod, 3)
    assert ["probe", "", ""] == [one.metadata.name for one in new.pods]
    assert ["", ""] == [one.metadata.name for one in new_pods(pod, 2, ["probe"]).pods]


@pytest.mark.parametrize(
    ("kind", "spec", "number"),
    [
        ("Deployment", {}, 1),
        ("Deployment", {"replicas": 0}, 0),
        ("StatefulSet", {"replicas": 4}, 4),
        ("Job", {}, 1),
        ("Job", {"parallelism": 5}, 5),
        ("Job", {"parallelism": 5, "completions": 2}, 2),
        ("DaemonSet", {}, 0),
    ],
)
def test_default_replicas(kind: str, spec: dict[str, Any], number: int) -> None:
    """A missing number has the API server's default."""
    group = "batch/v1" if kind == "Job" else "apps/v1"
    assert number == replicas_of(workload(kind, group, **spec))


def test_a_deployment_owns_the_pods_of_its_replica_sets() -> None:
    """If the ReplicaSets are missing, the hash in the pods' labels shows it."""
    item = workload("Deployment", template=TEMPLATE)
    labels = {"app": "web", "pod-template-hash": "abc"}
    assert owns(item, running("x", "n", owner="web-abc", labels=labels))
    assert not owns(item, running("x", "n", owner="web-front-abc", labels=labels))
    assert not owns(item, running("x", "n"))
    references = [
        OwnerReference(kind="Deployment", name=name, controller=is_controller)
        for name, is_controller in (("web", True), ("web", False), ("other", True))
    ]
    sets = [
        ReplicaSet(metadata=ObjectMeta(name=name, namespace="shop", owner_references=(reference,)))
        for name, reference in zip(("odd", "adopted", "else"), references, strict=True)
    ]
    names = replica_sets_of(item, sets)
    assert {"odd"} == names
    assert owns(item, running("x", "n", owner="odd"), names)
    assert not owns(item, running("x", "n", owner="odd", kind="StatefulSet"), names)


def test_a_replacement_is_pending_and_unnamed() -> None:
    """A StatefulSet's pod keeps its name; labels copied from the node are removed."""
    labels = {"app": "web", "topology.kubernetes.io/zone": "a"}
    found = replacement_of(running("web-x", "n", owner="web-1", labels=labels))
    assert found is not None
    assert ("", "web-1-", "") == (
        found.metadata.name,
        found.metadata.generate_name,
        found.spec.node_name,
    )
    assert found.metadata.labels == {"app": "web"}
    found = replacement_of(running("db-0", "n", owner="db", kind="StatefulSet"))
    assert found is not None
    assert found.metadata.name == "db-0"


@pytest.mark.parametrize("owner", ["", "Node"])
def test_a_pod_without_a_controller_is_not_replaced(owner: str) -> None:
    """Nor is a static pod, whose owner is its node."""
    assert replacement_of(running("x", "n", owner=owner and "n", kind=owner)) is None


def test_quotas_limit_ranges_and_autoscalers_are_named() -> None:
    """They are not read, and the number of pods depends on them."""
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}}
    manifests: list[dict[str, Any]] = [{**pod, "spec": {"containers": [{"name": "c"}]}}]
    assert [] == read_manifests(manifests, "default")[1]
    manifests += [
        {"apiVersion": "v1", "kind": kind, "metadata": {"name": "x"}}
        for kind in ("ResourceQuota", "LimitRange", "Secret")
    ]
    scaler = {"kind": "HorizontalPodAutoscaler", "metadata": {"name": "x"}}
    manifests.append({"apiVersion": "autoscaling/v2", **scaler})
    assert [
        "not read: LimitRange and ResourceQuota, which may keep pods from being created",
        "not read: HorizontalPodAutoscaler, which may want more pods; give their number",
    ] == read_manifests(manifests, "default")[1]


def test_runtime_classes_of_manifests_are_named() -> None:
    """The API server adds their overhead, node selector and tolerations to pods."""
    template = {"spec": {**SPEC, "runtimeClassName": "kata"}}
    manifest = {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": "web"},
        "spec": {"template": template},
    }
    assert [
        "not read: RuntimeClass kata; write the overhead, nodeSelector and tolerations into pods"
    ] == read_manifests([manifest], "default")[1]


# Owners.


def owned_by(kind: str, name: str, own: str) -> ObjectMeta:
    """Return the metadata of an object between a workload and its pods."""
    owner = OwnerReference(kind=kind, name=name, controller=True)
    return ObjectMeta(name=own, namespace="default", owner_references=(owner,))


HASHED = {"pod-template-hash": "5d"}


@pytest.mark.parametrize(
    ("metadata", "between", "expected"),
    [
        ({}, [], "Pod default/p"),
        (owner_metadata("StatefulSet", "db"), [], "StatefulSet default/db"),
        (owner_metadata("Node", "n"), [], "Node n"),
        (owner_metadata("ReplicaSet", "web-5d", **HASHED), [], "Deployment default/web"),
        (owner_metadata("ReplicaSet", "web-5d"), [], "ReplicaSet default/web-5d"),
        (
            owner_metadata("ReplicaSet", "web-5d"),
            [ReplicaSet(metadata=owned_by("Rollout", "web", "web-5d"))],
            "Rollout default/web",
        ),
        (
            owner_metadata("ReplicaSet", "web-5d", **HASHED),
            [ReplicaSet(metadata=ObjectMeta(name="web-5d", namespace="default"))],
            "ReplicaSet default/web-5d",
        ),
        (owner_metadata("Job", "night-1"), [], "Job default/night-1"),
        (
            owner_metadata("Job", "night-1"),
            [Job(metadata=owned_by("CronJob", "night", "night-1"))],
            "CronJob default/night",
        ),
    ],
)
def test_the_topmost_owner(
    metadata: dict[str, Any], between: list[ReplicaSet | Job], expected: str
) -> None:
    """Taken from the ReplicaSet or Job if it is known, else from the names."""
    assert str(Owners(between).of(make_pod_info("p", metadata=metadata))) == expected
