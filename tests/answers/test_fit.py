"""Whether workloads fit, compared with rehearsals and shown on small clusters."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from kubesched.answers.fit import FitQuestion, FitReport, fit, parse_question
from kubesched.answers.node_shapes import MissingNodes, parse_shape
from kubesched.answers.trial_cluster import TrialCluster
from kubesched.api.codec import decode_object
from kubesched.api.meta import KubeObject
from kubesched.simulator.rehearsal import Rehearsal
from kubesched.testing.builders import make_pod
from tests.plugins.volume_objects import make_pool

from .trials import node, random_cluster, rehearsed, running, tried


def workload(kind: str = "Deployment", cpu: str = "1", **spec: Any) -> KubeObject:
    """Return a workload named web whose pods request some CPU."""
    container = {"name": "main", "image": "app", "resources": {"requests": {"cpu": cpu}}}
    pod_spec = {"containers": [container], **spec.pop("pod", {})}
    template = {"metadata": {"labels": {"app": "web"}}, "spec": pod_spec}
    return decoded(kind, {"name": "web", "namespace": "default"}, {**spec, "template": template})


def decoded(kind: str, metadata: Mapping[str, Any], spec: Mapping[str, Any]) -> KubeObject:
    """Return a workload."""
    group = "batch" if kind == "Job" else "apps"
    raw = {"apiVersion": f"{group}/v1", "kind": kind, "metadata": metadata, "spec": spec}
    return decode_object(raw)


def ask(objects: Iterable[KubeObject], *items: KubeObject, **question: Any) -> FitReport:
    """Return the report on workloads."""

    async def asked(cluster: TrialCluster) -> FitReport:
        return await fit(cluster, items, FitQuestion(**question))

    return tried(objects, asked)


def missing(objects: Iterable[KubeObject], item: KubeObject, *shapes: str) -> MissingNodes:
    """Return the nodes of some shapes that are missing for a workload."""
    report = ask(objects, item, shapes=tuple(map(parse_shape, shapes)))
    assert not report.fits
    assert report.missing_nodes is not None
    return report.missing_nodes


def placed(report: FitReport) -> dict[str, int]:
    """Return node -> pods of the only workload."""
    (found,) = report.workloads
    return {one.node: one.pods for one in found.nodes}


# Against a rehearsal by hand.


@pytest.mark.slow
@settings(max_examples=40)
@given(seed=st.integers(0, 10**6), number=st.integers(0, 8), priority=st.sampled_from([0, 5]))
def test_fit_equals_a_rehearsal_of_the_pods(seed: int, number: int, priority: int) -> None:
    """The same pods, created in the same cluster, are placed on the same nodes."""
    objects = random_cluster(seed, owned=False)
    item = workload("ReplicaSet", replicas=number, pod={"priority": priority})

    async def by_hand(rehearsal: Rehearsal) -> Counter[str]:
        for at in range(number):
            labels = {"app": "web"}
            pod = make_pod(f"web-{at}", requests={"cpu": 1}, labels=labels, priority=priority)
            rehearsal.server.create(pod)
        await rehearsal.settle()
        found = rehearsal.outcomes.placements.values()
        return Counter(one.node for one in found if one.pod.startswith("default/web-"))

    report = ask(objects, item)
    assert rehearsed(objects, by_hand) == placed(report)
    (found,) = report.workloads
    left = sum(len(group.pods) for group in found.not_placed)
    assert found.wanted == number == found.placed + left
    assert report.fits == (left == 0)


@pytest.mark.slow
@settings(max_examples=25)
@given(seed=st.integers(0, 10**6))
def test_the_number_of_further_pods_is_exact(seed: int) -> None:
    """Placed one by one, as many fit and no more."""
    objects = random_cluster(seed, owned=True)
    first = ask(objects, workload(replicas=0), more=True)
    assert first.more is not None
    number = first.more.count
    assert ask(objects, workload(replicas=number)).fits
    assert not ask(objects, workload(replicas=number + 1)).fits


# Workloads that are there.


def test_existing_pods_of_a_workload_count() -> None:
    """Only the missing ones are created."""
    labels = {"app": "web", "pod-template-hash": "abc"}
    there = running("web-abc-1", "a", owner="web-abc", labels=labels)
    report = ask([node("a"), there], workload(replicas=3))
    (found,) = report.workloads
    assert (found.wanted, found.existing, found.placed) == (3, 1, 3)
    assert placed(report) == {"a": 2}
    assert report.notes


@pytest.mark.parametrize(
    ("spec", "succeeded", "wanted"),
    [
        ({"parallelism": 4, "completions": 10}, (0, 1, 2, 4, 5, 6, 7), 3),
        ({"parallelism": 4, "completions": 10}, range(3), 4),
        ({"parallelism": 4, "completions": 10}, range(10), 1),
        ({"parallelism": 4}, range(1), 1),
        ({"parallelism": 4}, range(0), 4),
    ],
)
def test_succeeded_pods_of_a_job_are_not_run_again(
    spec: dict[str, Any], succeeded: Sequence[int], wanted: int
) -> None:
    """Its active pods stay."""
    pods = [running(f"web-{at}-x", "a", owner="web", kind="Job") for at in (*succeeded, 11)]
    done = [replace(one, status=replace(one.status, phase="Succeeded")) for one in pods[:-1]]
    report = ask([node("a"), *done, pods[-1]], workload("Job", **spec))
    (found,) = report.workloads
    assert (found.wanted, found.existing, found.placed) == (wanted, 1, wanted)
    assert any("succeeded already" in note for note in report.notes) == bool(done)


def test_existing_pods_stay_if_a_workload_asks_for_fewer() -> None:
    """No workload has more pods with a node than pods."""
    labels = {"app": "web", "pod-template-hash": "abc"}
    names = ("web-abc-1", "web-abc-2", "web-abc-3")
    there = [running(name, "a", owner="web-abc", labels=labels) for name in names]
    (found,) = ask([node("a"), *there], workload(replicas=2)).workloads
    assert (found.wanted, found.existing, found.placed) == (3, 3, 3)


def test_replicas_by_name_override_replicas_for_all() -> None:
    """A name takes precedence over the number for all."""
    for written, number in ((["2"], 2), (["web=3", "2"], 3)):
        question = parse_question([workload()], written, (), more=False)
        report = ask([node("a")], workload(), replicas=question.replicas)
        assert report.workloads[0].wanted == number


def test_claims_of_a_stateful_set_are_provisioned() -> None:
    """The default class binds immediately, so the pod does not wait for its claim."""
    metadata = {
        "name": "fast",
        "annotations": {"storageclass.kubernetes.io/is-default-class": "true"},
    }
    storage: Any = decode_object(
        {
            "apiVersion": "storage.k8s.io/v1",
            "kind": "StorageClass",
            "metadata": metadata,
            "provisioner": "csi.example.com",
            "volumeBindingMode": "Immediate",
        }
    )
    claim = {
        "metadata": {"name": "data"},
        "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}},
    }
    report = ask(
        [node("a"), storage], workload("StatefulSet", replicas=2, volumeClaimTemplates=[claim])
    )
    assert report.fits, report.workloads
    assert () == report.notes
    limited = ask(
        [node("a"), storage, make_pool("x", "fast", capacity="1Gi")],
        workload("StatefulSet", replicas=2, volumeClaimTemplates=[claim]),
    )
    assert ["its CSIStorageCapacities stay as they are."] == [
        note.partition(": ")[2] for note in limited.notes
    ]


# What is evicted, and what stops.


def test_evicted_pods_have_a_new_node() -> None:
    """A controller replaces the victim, and the replacement is placed."""
    objects: list[KubeObject] = [
        node("a", big="yes"),
        node("b"),
        running("low", "a", "3", owner="low", priority=-1),
    ]
    report = ask(objects, workload(cpu="4", pod={"nodeSelector": {"big": "yes"}}))
    assert report.fits
    (found,) = report.evictions
    assert (found.pod, found.node, found.new_node) == ("default/low", "a", "b")
    assert not report.other_evictions


def test_the_reason_why_no_further_pod_fits() -> None:
    """The search ends with the scheduler's reasons."""
    report = ask([node("a", "4")], workload(replicas=1), more=True)
    assert report.more is not None
    assert report.more.count == 3
    assert report.more.stopped_by is not None
    assert report.more.stopped_by.reasons == ("Insufficient cpu",)


@pytest.mark.parametrize(("priority", "expected"), [(10, (3, 1, 2)), (0, (1, 1, 0))])
def test_further_pods_without_evictions(priority: int, expected: tuple[int, int, int]) -> None:
    """A node has room for one; two more take the place of pods of lower priority."""
    objects = [node("a", "4"), running("low-1", "a"), running("low-2", "a")]
    asked = workload(replicas=1, pod={"priority": priority})
    more = ask(objects, asked, more=True).more
    assert more is not None
    assert expected == (more.count, more.without_evictions, len(more.evicted))


def test_pods_that_use_what_an_eviction_left_over() -> None:
    """They do not fit without evictions, although nothing is evicted for them."""
    objects = [node("a", "4"), node("b", "6"), running("low", "b", "6")]
    more = ask(objects, workload(replicas=1, pod={"priority": 10}), more=True).more
    assert more is not None
    assert (more.count, more.without_evictions, len(more.evicted)) == (9, 3, 1)


# Missing nodes.


@pytest.mark.parametrize(("replicas", "number"), [(2, 1), (4, 1), (5, 2), (13, 4)])
def test_missing_nodes_of_one_shape(replicas: int, number: int) -> None:
    """Three pods fit on each new node, and one on the existing node."""
    found = missing([node("a", "1")], workload(replicas=replicas), "cpu=3,memory=8Gi,name=new")
    assert found.enough
    assert {"new": number} == {one.shape: one.count for one in found.nodes}


def test_new_nodes_go_to_the_pods_of_highest_priority() -> None:
    """Pods that back off when the nodes come do not lose them to others."""
    low = [running(f"low-{at}", "a", "2", owner="low") for at in range(2)]
    waiting = [make_pod(f"wait-{at}", requests={"cpu": "2"}) for at in range(20)]
    high = make_pod("high", requests={"cpu": "2"}, priority=5)
    asked = workload(cpu="2", replicas=2, pod={"priority": 10, "preemptionPolicy": "Never"})
    assert missing([node("a"), *low, *waiting, high], asked, "cpu=2,memory=8Gi,name=new").enough


def test_the_cheapest_mix() -> None:
    """Two small nodes and a large one are cheaper than two large ones."""
    shapes = ("cpu=8,memory=8Gi,name=large,price=10", "cpu=2,memory=8Gi,name=small,price=3")
    found = missing([], workload(replicas=11), *shapes)
    assert {"large": 1, "small": 2} == {one.shape: one.count for one in found.nodes}
    assert (found.price, found.exact, found.enough) == (16.0, True, True)


def test_a_shape_that_does_not_help() -> None:
    """The report says why the pods do not fit even then."""
    found = missing([node("a")], workload(cpu="16"), "cpu=2,memory=8Gi")
    assert (False, ()) == (found.enough, found.nodes)
    assert found.left[0].reasons == ("Insufficient cpu",)


def test_daemon_sets_use_a_part_of_each_new_node() -> None:
    """Two CPUs of each new node are left for two pods."""
    objects = [node("a", "1"), workload("DaemonSet")]
    found = missing(objects, workload("StatefulSet", replicas=4), "cpu=3,memory=8Gi")
    assert [2] == [one.count for one in found.nodes]


def test_pods_that_wait_for_claims_are_one_group() -> None:
    """The message of each has its name; the note says what is missing."""
    claims = [{"name": "x", "resourceClaimTemplateName": "gpu"}]
    report = ask([node("a")], workload(replicas=3, pod={"resourceClaims": claims}))
    ((found,),) = (one.not_placed for one in report.workloads)
    assert (3, ("ResourceClaim not created yet",)) == (len(found.pods), found.reasons)
    assert "ResourceClaimTemplate default/gpu does not exist; pods wait for it." in report.notes
