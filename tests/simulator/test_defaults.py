"""Defaults: fields that an API server sets and a manifest may lack."""

from __future__ import annotations

from typing import Final

import pytest

from kubesched.api.core import (
    Affinity,
    Container,
    ContainerPort,
    Namespace,
    Node,
    NodeStatus,
    Pod,
    PodAffinity,
    PodAffinityTerm,
    PodAntiAffinity,
    PodSpec,
    PodTemplateSpec,
    ReplicationController,
    ReplicationControllerSpec,
    ResourceRequirements,
    WeightedPodAffinityTerm,
)
from kubesched.api.meta import KubeObject, LabelSelector, LabelSelectorRequirement, ObjectMeta
from kubesched.api.quantity import Quantity
from kubesched.api.scheduling import PodGroup, PodGroupSpec, PriorityClass
from kubesched.api.storage import StorageClass
from kubesched.api.volume import PersistentVolumeClaim, PersistentVolumeClaimSpec
from kubesched.cluster.controllers.claims import default_class_name
from kubesched.simulator.defaults import (
    PriorityClasses,
    claim_with_defaults,
    own_defaults,
    pod_group_with_defaults,
    pod_with_defaults,
)

NO_CLASSES = PriorityClasses(())


def completed(spec: PodSpec, *classes: PriorityClass) -> PodSpec:
    """Return the specification with defaults."""
    pod = Pod(metadata=ObjectMeta(name="p", namespace="ns"), spec=spec)
    return pod_with_defaults(pod, PriorityClasses(classes)).spec


def priority_class(name: str, value: int, *, default: bool = False) -> PriorityClass:
    """Return a class."""
    return PriorityClass(metadata=ObjectMeta(name=name), value=value, global_default=default)


def test_limits_are_default_requests() -> None:
    """A given request does not change."""
    resources = ResourceRequirements(
        requests={"cpu": "1"}, limits={"cpu": "2", "memory": "1Gi", "nvidia.com/gpu": "1"}
    )
    spec = completed(PodSpec(containers=(Container(name="c", resources=resources),)))
    expected = {"cpu": "1", "memory": "1Gi", "nvidia.com/gpu": "1"}
    assert expected == spec.containers[0].resources.requests


@pytest.mark.parametrize(
    ("requests", "expected"),
    [
        ({}, {"cpu": "3", "memory": "1Gi", "hugepages-2Mi": "2Mi"}),
        ({"cpu": "4"}, {"cpu": "4", "memory": "1Gi", "hugepages-2Mi": "2Mi"}),
    ],
)
def test_requests_of_pods_with_limits(
    requests: dict[str, Quantity], expected: dict[str, Quantity]
) -> None:
    """What containers request counts, or else the pod's limits."""
    limits: dict[str, Quantity] = {"cpu": "8", "memory": "1Gi", "hugepages-2Mi": "2Mi"}
    containers = tuple(
        Container(name=name, resources=ResourceRequirements(limits={"cpu": cpu}))
        for name, cpu in (("a", "2500m"), ("b", "500m"))
    )
    resources = ResourceRequirements(requests=requests, limits=limits)
    spec = completed(PodSpec(containers=containers, resources=resources, overhead={"cpu": "1"}))
    assert spec.resources is not None
    assert expected == spec.resources.requests


def test_label_keys_are_merged_into_selectors_once() -> None:
    """The pod's labels count at its creation; keys that it lacks do not."""
    has_team = LabelSelectorRequirement(key="team", operator="Exists")
    term = PodAffinityTerm(
        label_selector=LabelSelector(match_labels={"app": "web"}, match_expressions=(has_team,)),
        match_label_keys=("version", "absent"),
        mismatch_label_keys=("team",),
    )
    selector = LabelSelector(
        match_labels={"app": "web"},
        match_expressions=(
            has_team,
            LabelSelectorRequirement(key="version", operator="In", values=("1",)),
            LabelSelectorRequirement(key="team", operator="NotIn", values=("a",)),
        ),
    )
    spec = PodSpec(
        affinity=Affinity(
            pod_affinity=PodAffinity(
                preferred_during_scheduling_ignored_during_execution=(
                    WeightedPodAffinityTerm(weight=1, pod_affinity_term=term),
                )
            ),
            pod_anti_affinity=PodAntiAffinity(
                required_during_scheduling_ignored_during_execution=(term,)
            ),
        )
    )
    for labels in ({"version": "1", "team": "a"}, {"version": "2", "team": "b"}):
        metadata = ObjectMeta(name="p", namespace="ns", labels=labels)
        spec = pod_with_defaults(Pod(metadata=metadata, spec=spec), NO_CLASSES).spec
        assert spec.affinity is not None
        near, far = spec.affinity.pod_affinity, spec.affinity.pod_anti_affinity
        assert near is not None
        assert far is not None
        (preferred,) = near.preferred_during_scheduling_ignored_during_execution
        (required,) = far.required_during_scheduling_ignored_during_execution
        assert selector == preferred.pod_affinity_term.label_selector
        assert selector == required.label_selector


def test_host_network_makes_host_ports() -> None:
    """A given host port does not change."""
    ports = (ContainerPort(container_port=80), ContainerPort(container_port=81, host_port=9))
    containers = (Container(name="c", ports=ports),)
    on_host = completed(PodSpec(containers=containers, host_network=True))
    assert [80, 9] == [port.host_port for port in on_host.containers[0].ports]
    assert containers == completed(PodSpec(containers=containers)).containers


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        pytest.param(PodSpec(priority_class_name="high"), 100, id="named"),
        pytest.param(PodSpec(priority_class_name="high", priority=7), 7, id="resolved before"),
        pytest.param(PodSpec(), 3, id="lowest of the defaults"),
        pytest.param(
            PodSpec(priority_class_name="system-node-critical"), 2_000_001_000, id="of the system"
        ),
        pytest.param(PodSpec(priority_class_name="none"), None, id="unknown"),
    ],
)
def test_priority_comes_from_the_class(spec: PodSpec, expected: int | None) -> None:
    """Without a name, the default class counts."""
    classes = (
        priority_class("high", 100),
        priority_class("usual", 5, default=True),
        priority_class("lower", 3, default=True),
    )
    assert expected == completed(spec, *classes).priority


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        (PodGroupSpec(priority_class_name="high"), 10),
        (PodGroupSpec(priority_class_name="high", priority=3), 3),
        (PodGroupSpec(), None),
    ],
)
def test_the_priority_of_a_group_comes_from_its_class(
    spec: PodGroupSpec, expected: int | None
) -> None:
    """A given priority stays; without a class there is none."""
    group = PodGroup(metadata=ObjectMeta(name="g", namespace="ns"), spec=spec)
    classes = PriorityClasses([priority_class("high", 10)])
    assert expected == pod_group_with_defaults(group, classes).spec.priority


def test_unknown_classes_are_collected() -> None:
    """A warning can name them."""
    classes = PriorityClasses(())
    pod = Pod(spec=PodSpec(priority_class_name="none"))
    pod_with_defaults(pod, classes)
    assert ["none"] == list(classes.unknown)


def test_preemption_policy_comes_from_the_class() -> None:
    """A class with Never makes pods with Never."""
    polite = PriorityClass(metadata=ObjectMeta(name="a"), value=9, preemption_policy="Never")
    assert "Never" == completed(PodSpec(priority_class_name="a"), polite).preemption_policy


def test_a_complete_pod_is_returned_unchanged() -> None:
    """It is the same object."""
    spec = PodSpec(containers=(Container(name="c"),), priority=0)
    pod = Pod(metadata=ObjectMeta(name="p", namespace="ns", uid="1"), spec=spec)
    assert pod is pod_with_defaults(pod, NO_CLASSES)


def test_a_missing_uid_is_set() -> None:
    """Each pod gets a different one."""
    pod = Pod(metadata=ObjectMeta(name="p", namespace="ns"))
    assert "ns/p" == pod_with_defaults(pod, NO_CLASSES).metadata.uid


TEMPLATE: Final = PodTemplateSpec(metadata=ObjectMeta(labels={"app": "web"}))


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (
            Node(status=NodeStatus(capacity={"cpu": "4"})),
            Node(status=NodeStatus(capacity={"cpu": "4"}, allocatable={"cpu": "4"})),
        ),
        (
            Namespace(metadata=ObjectMeta(name="shop", labels={"team": "a"})),
            Namespace(
                metadata=ObjectMeta(
                    name="shop", labels={"team": "a", "kubernetes.io/metadata.name": "shop"}
                )
            ),
        ),
        (StorageClass(), StorageClass(volume_binding_mode="Immediate")),
        (
            ReplicationController(spec=ReplicationControllerSpec(template=TEMPLATE)),
            ReplicationController(
                spec=ReplicationControllerSpec(template=TEMPLATE, selector={"app": "web"})
            ),
        ),
    ],
)
def test_own_defaults(given: KubeObject, expected: KubeObject) -> None:
    """They depend on no other object, and are filled in once."""
    assert expected == own_defaults(given)
    assert expected == own_defaults(expected)


def test_own_defaults_leave_given_values() -> None:
    """Such an object is not changed."""
    for given in (
        Node(status=NodeStatus(capacity={"cpu": "4"}, allocatable={"cpu": "3"})),
        StorageClass(volume_binding_mode="WaitForFirstConsumer"),
        ReplicationController(
            spec=ReplicationControllerSpec(template=TEMPLATE, selector={"app": "db"})
        ),
    ):
        assert given is own_defaults(given)


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        pytest.param(PersistentVolumeClaimSpec(), "b", id="newest"),
        pytest.param(PersistentVolumeClaimSpec(storage_class_name=""), "", id="no class"),
        pytest.param(PersistentVolumeClaimSpec(volume_name="v"), None, id="bound"),
    ],
)
def test_claims_get_the_default_class(
    spec: PersistentVolumeClaimSpec, expected: str | None
) -> None:
    """Unless they name one, or none, or have a volume."""
    default = {"storageclass.kubernetes.io/is-default-class": "true"}
    classes = [
        StorageClass(metadata=ObjectMeta(name=name, annotations=marks, creation_timestamp=time))
        for name, marks, time in (
            ("a", default, "2026-01-01T00:00:00Z"),
            ("c", default, "2026-01-02T00:00:00Z"),
            ("b", default, "2026-01-02T00:00:00Z"),
            ("d", {}, "2026-01-03T00:00:00Z"),
        )
    ]
    found = claim_with_defaults(
        PersistentVolumeClaim(spec=spec), default_class_name(one.metadata for one in classes)
    )
    assert expected == found.spec.storage_class_name
