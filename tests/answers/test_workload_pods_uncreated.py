"""A workload whose pods were never created: the answer is the API server's message."""

from __future__ import annotations

from typing import Any

import pytest

from kubesched import Cluster
from kubesched.inputs.errors import UserError
from tests.cli.cluster import owned, pod

QUOTA = 'pods "web-7c-x" is forbidden: exceeded quota: compute, requested: cpu=1, used: cpu=20'
FAILURE = {"type": "ReplicaFailure", "status": "True", "reason": "FailedCreate", "message": QUOTA}


def workload(kind: str, status: dict[str, Any] | None = None, **spec: Any) -> dict[str, Any]:
    """Return a workload as an API server has it."""
    return {
        "apiVersion": "batch/v1" if kind == "Job" else "apps/v1",
        "kind": kind,
        "metadata": {"name": "web", "namespace": "shop", "uid": "w"},
        "spec": {"selector": {"matchLabels": {"app": "web"}}, "template": {}, **spec},
        "status": status or {},
    }


def event(kind: str, time: str, message: str) -> dict[str, Any]:
    """Return an event about the workload."""
    return {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"name": f"web.{time}", "namespace": "shop"},
        "involvedObject": {"kind": kind, "namespace": "shop", "name": "web"},
        "reason": "FailedCreate",
        "message": message,
        "lastTimestamp": time,
    }


def of_web(name: str) -> dict[str, Any]:
    """Return a running pod of the ReplicaSet web."""
    return owned(pod(name, node_name="a"), "web")


NODE = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "a"}}


@pytest.mark.parametrize(
    ("name", "objects", "sentence"),
    [
        pytest.param(
            "deploy/web",
            [workload("Deployment", {"conditions": [FAILURE]}, replicas=3)],
            f"Deployment shop/web has 0 of 3 pods: {QUOTA}.",
            id="condition",
        ),
        pytest.param(
            "sts/web",
            [
                workload("StatefulSet"),
                event("StatefulSet", "2026-01-01T00:00:02Z", f"create Pod failed error: {QUOTA}"),
                event("StatefulSet", "2026-01-01T00:00:01Z", "older"),
                event("Job", "2026-01-01T00:00:03Z", "of another"),
            ],
            f"StatefulSet shop/web has 0 of 1 pod: {QUOTA}.",
            id="event",
        ),
        pytest.param(
            "job/web",
            [workload("Job")],
            "Job shop/web has 0 of 1 pod: the input does not tell why; "
            "`kubectl describe job web -n shop` shows its events.",
            id="unknown",
        ),
        pytest.param(
            "rs/web",
            [workload("ReplicaSet", replicas=0)],
            "ReplicaSet shop/web asks for no pods.",
            id="none wanted",
        ),
    ],
)
def test_no_pods(name: str, objects: list[dict[str, Any]], sentence: str) -> None:
    """The sentence has the reason; `explain` has nothing to explain."""
    cluster = Cluster.from_objects([NODE, *objects])
    report = cluster.why(name)
    assert ("NotCreated", "", sentence) == (report.state, report.pod, report.sentence)
    assert (report,) == cluster.why_page(name)
    with pytest.raises(UserError, match="shop/web"):
        cluster.explain(name)


def test_some_pods() -> None:
    """The answer is about a pod; a note names the reason for the others."""
    asked = workload("ReplicaSet", {"conditions": [FAILURE]}, replicas=2)
    report = Cluster.from_objects([NODE, asked, of_web("web-1")]).why("rs/web")
    assert "shop/web-1" == report.pod
    assert (f"ReplicaSet shop/web has 1 of 2 pods: {QUOTA}.",) == report.notes


def test_all_pods() -> None:
    """An old failure does not matter once the workload has its pods."""
    asked = workload("ReplicaSet", {"conditions": [FAILURE]}, replicas=1)
    assert () == Cluster.from_objects([NODE, asked, of_web("web-1")]).why("rs/web").notes


@pytest.mark.parametrize("asked", ["deploy/wep", "sts/web", "web"])
def test_a_workload_without_pods_is_suggested(asked: str) -> None:
    """It is found among the objects, because no pod names it as its owner."""
    cluster = Cluster.from_objects([NODE, workload("Deployment")])
    with pytest.raises(UserError, match=r"did you mean deployment/web\?"):
        cluster.why(asked)
