"""The owner of a pod is the topmost workload that the input shows."""

from __future__ import annotations

from typing import Any

import pytest

from kubesched.answers.workload_pods import Owners
from kubesched.api.apps import Job, ReplicaSet
from kubesched.api.meta import ObjectMeta, OwnerReference
from kubesched.testing.builders import make_pod_info


def owned(kind: str, name: str, **labels: str) -> dict[str, Any]:
    """Return the metadata of a pod with a controller."""
    owner = {"apiVersion": "v1", "kind": kind, "name": name, "uid": name, "controller": True}
    return {"ownerReferences": [owner], "labels": labels}


def owned_by(kind: str, name: str, own: str) -> ObjectMeta:
    """Return the metadata of an object between a workload and its pods."""
    owner = OwnerReference(kind=kind, name=name, controller=True)
    return ObjectMeta(name=own, namespace="default", owner_references=(owner,))


HASHED = {"pod-template-hash": "5d"}


@pytest.mark.parametrize(
    ("metadata", "between", "expected"),
    [
        ({}, [], "Pod default/p"),
        (owned("StatefulSet", "db"), [], "StatefulSet default/db"),
        (owned("Node", "n"), [], "Node n"),
        (owned("ReplicaSet", "web-5d", **HASHED), [], "Deployment default/web"),
        (owned("ReplicaSet", "web-5d"), [], "ReplicaSet default/web-5d"),
        (
            owned("ReplicaSet", "web-5d"),
            [ReplicaSet(metadata=owned_by("Rollout", "web", "web-5d"))],
            "Rollout default/web",
        ),
        (
            owned("ReplicaSet", "web-5d", **HASHED),
            [ReplicaSet(metadata=ObjectMeta(name="web-5d", namespace="default"))],
            "ReplicaSet default/web-5d",
        ),
        (owned("Job", "night-1"), [], "Job default/night-1"),
        (
            owned("Job", "night-1"),
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
