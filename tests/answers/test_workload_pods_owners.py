"""The owner of a pod is the topmost workload that the input shows."""

from __future__ import annotations

from typing import Any

import pytest

from kubesched.answers.workload_pods import Owners
from kubesched.api.apps import Job, ReplicaSet
from kubesched.api.meta import ObjectMeta, OwnerReference
from kubesched.testing.builders import make_pod_info

from .trials import owner_metadata


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
