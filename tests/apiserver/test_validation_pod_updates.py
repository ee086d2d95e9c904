"""Changes of pods through their subresources."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import pytest

from kubesched.apiserver.plain import Plain

from .verdicts import changed, created, resource_of

_POD = resource_of("Pod")


def _stored(**spec: Any) -> Plain:
    containers = [
        {"name": "c", "image": "i", "resources": {"limits": {"cpu": "1", "example.com/gpu": "1"}}}
    ]
    body = {"metadata": {"name": "p"}, "spec": {"containers": containers, **spec}}
    pod: Plain = created(_POD, body)["object"]
    return {**pod, "metadata": {**pod["metadata"], "resourceVersion": "1"}}


def _causes(old: Plain, new: Plain, subresource: str) -> list[tuple[str, str]]:
    verdict = changed(_POD, old, new, subresource)
    return [(reason, field) for reason, field, _ in verdict.get("causes", ())]


@pytest.mark.parametrize(
    ("kind", "name", "amount", "expected"),
    [
        pytest.param("containers", "cpu", "2", [], id="cpu"),
        pytest.param(
            "containers",
            "example.com/gpu",
            "2",
            [("FieldValueForbidden", "spec")],
            id="what is no cpu and no memory",
        ),
        pytest.param(
            "initContainers",
            "cpu",
            "2",
            [("FieldValueForbidden", "spec")],
            id="a container that runs before the others",
        ),
    ],
)
def test_resizing(kind: str, name: str, amount: str, expected: list[tuple[str, str]]) -> None:
    """Only cpu and memory of containers that run on can be changed."""
    init = {"name": "i", "image": "i", "resources": {"limits": {"cpu": "1"}}}
    old = _stored(initContainers=[init])
    new = deepcopy(old)
    resources = new["spec"][kind][0]["resources"]
    for amounts in resources.values():
        amounts[name] = amount
    assert expected == _causes(old, new, "resize")


def test_claims_for_extended_resources() -> None:
    """The status that a scheduler writes must be complete."""
    old = _stored()
    new = deepcopy(old)
    new["status"]["extendedResourceClaimStatus"] = {"requestMappings": []}
    path = "status.extendedResourceClaimStatus"
    expected = [
        ("FieldValueRequired", f"{path}.requestMappings"),
        ("FieldValueRequired", f"{path}.resourceClaimName"),
    ]
    assert expected == _causes(old, new, "status")
