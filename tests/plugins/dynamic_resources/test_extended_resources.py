"""Extended resources backed by devices: the requests of the special claim."""

from __future__ import annotations

import pytest

from kubesched.api.core import Container, Pod, PodSpec, ResourceRequirements
from kubesched.api.meta import ObjectMeta, OwnerReference
from kubesched.api.resource import EXTENDED_RESOURCE_CLAIM_ANNOTATION
from kubesched.framework.dra.devices import DeviceClasses
from kubesched.plugins.dynamic_resources.extended_resources import (
    IN_MEMORY_NAME,
    ExtendedResources,
    NodeClaim,
    new_special_claim,
)
from tests.plugins.dynamic_resources.objects import device_class

GPU = "example.com/gpu"
CLASSES = DeviceClasses([device_class("gpu", extended_resource_name=GPU)])


def container(name: str, gpus: int | str = 0, *, restart_policy: str = "") -> Container:
    """A container that requests CPU and GPUs."""
    requests: dict[str, str | int | float] = {"cpu": "1"}
    if gpus:
        requests[GPU] = gpus
    return Container(
        name=name, resources=ResourceRequirements(requests=requests), restart_policy=restart_policy
    )


def pod(*containers: Container, init: tuple[Container, ...] = ()) -> Pod:
    """A pod of these containers."""
    return Pod(
        metadata=ObjectMeta(name="p", namespace="default", uid="u"),
        spec=PodSpec(containers=containers, init_containers=init),
    )


def special_claim(asking: Pod) -> NodeClaim:
    """The claim on nodes without GPUs."""
    extended = ExtendedResources(asking, [GPU], CLASSES, new_special_claim(asking))
    return extended.claim_for([GPU])


@pytest.mark.parametrize(
    ("asking", "requests", "mappings"),
    [
        pytest.param(
            pod(container("a", 2), container("b"), container("c", 1)),
            [("container-0-request-1", 2), ("container-2-request-1", 1)],
            [("a", "container-0-request-1"), ("c", "container-2-request-1")],
            id="containers",
        ),
        pytest.param(
            pod(container("a", 2), init=(container("i", 1),)),
            [("container-1-request-1", 2)],
            [("a", "container-1-request-1"), ("i", "container-1-request-1")],
            id="init-reuses",
        ),
        pytest.param(
            pod(container("a", 1), init=(container("i", 3),)),
            [("container-0-request-1", 2), ("container-1-request-1", 1)],
            [
                ("a", "container-1-request-1"),
                ("i", "container-1-request-1"),
                ("i", "container-0-request-1"),
            ],
            id="init-needs-more",
        ),
        pytest.param(
            pod(container("a"), init=(container("i", 1), container("j", 3))),
            [("container-1-request-1", 3)],
            [("i", "container-1-request-1"), ("j", "container-1-request-1")],
            id="inits-share-the-largest",
        ),
        pytest.param(
            pod(container("a"), init=(container("s", 1, restart_policy="Always"),)),
            [("container-0-request-1", 1)],
            [("s", "container-0-request-1")],
            id="sidecar",
        ),
        pytest.param(
            pod(
                container("a"),
                init=(container("s", 1, restart_policy="Always"), container("i", 1)),
            ),
            [("container-0-request-1", 1), ("container-1-request-1", 1)],
            [("s", "container-0-request-1"), ("i", "container-1-request-1")],
            id="init-after-a-sidecar",
        ),
        pytest.param(pod(container("a", "500m")), [], [], id="not-whole"),
    ],
)
def test_requests_and_mappings(
    asking: Pod, requests: list[tuple[str, int]], mappings: list[tuple[str, str]]
) -> None:
    """Long-lived containers have requests of their own, init containers reuse and share."""
    found = special_claim(asking)
    assert found.claim is not None
    assert requests == [
        (one.name, one.exactly.count)
        for one in found.claim.spec.devices.requests
        if one.exactly is not None
    ]
    assert mappings == [(one.container_name, one.request_name) for one in found.mappings]


def test_requests_are_named_by_position() -> None:
    """The number in the name is the resource's place among the container's sorted requests."""
    requests: dict[str, str | int | float] = {"memory": "1", "a.com/x": 1, GPU: 1, "cpu": 1}
    asking = pod(Container(name="a", resources=ResourceRequirements(requests=requests)))
    (one,) = special_claim(asking).mappings
    assert "container-0-request-2" == one.request_name


def test_new_special_claim() -> None:
    """It belongs to the pod, which controls it."""
    new = new_special_claim(pod(container("a", 1)))
    assert IN_MEMORY_NAME == new.metadata.name
    assert "p-extended-resources-" == new.metadata.generate_name
    owner = OwnerReference(api_version="v1", kind="Pod", name="p", uid="u", controller=True)
    assert (owner,) == new.metadata.owner_references
    assert "true" == new.metadata.annotations[EXTENDED_RESOURCE_CLAIM_ANNOTATION]
