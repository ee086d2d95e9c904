"""The scale subresource: reading it from a workload, and writing it back."""

from __future__ import annotations

from typing import Any

import pytest

from kubesched.apiserver.resources import RESOURCES, Resource
from kubesched.apiserver.status import StatusError
from kubesched.apiserver.subresources import scale_of, scaled

DEPLOYMENTS = Resource("deployments", "Deployment", "apps", "v1")
METADATA = {"name": "w", "namespace": "default", "uid": "u", "resourceVersion": "7"}


@pytest.mark.parametrize(
    ("plural", "group", "selector", "expected"),
    [
        pytest.param("replicationcontrollers", "", {"b": "2", "a": "1"}, "a=1,b=2", id="map"),
        pytest.param("replicasets", "apps", {"matchLabels": {"a": "1"}}, "a=1", id="labels"),
        pytest.param(
            "replicasets",
            "apps",
            {
                "matchLabels": {"m": "1"},
                "matchExpressions": [
                    {"key": "z", "operator": "DoesNotExist"},
                    {"key": "a", "operator": "In", "values": ["y", "x"]},
                    {"key": "n", "operator": "NotIn", "values": ["x"]},
                    {"key": "b", "operator": "Exists"},
                ],
            },
            "a in (x,y),b,m=1,n notin (x),!z",
            id="expressions",
        ),
    ],
)
def test_selector(plural: str, group: str, selector: dict[str, Any], expected: str) -> None:
    """The selector is a string, in canonical form."""
    resource = RESOURCES.find(group, "v1", plural)
    assert resource is not None
    workload = {
        "metadata": METADATA,
        "spec": {"replicas": 2, "selector": selector},
        "status": {"replicas": 1},
    }
    assert scale_of(resource, workload) == {
        "kind": "Scale",
        "apiVersion": "autoscaling/v1",
        "metadata": METADATA,
        "spec": {"replicas": 2},
        "status": {"replicas": 1, "selector": expected},
    }


def test_scaled() -> None:
    """Replicas and resource version are taken from the scale; the input is not changed."""
    workload = {"metadata": METADATA, "spec": {"replicas": 2, "paused": True}}
    scale = {"metadata": {"resourceVersion": "5"}, "spec": {"replicas": 9}}
    changed = scaled(DEPLOYMENTS, workload, scale)
    assert changed["spec"] == {"replicas": 9, "paused": True}
    assert changed["metadata"] == {**METADATA, "resourceVersion": "5"}
    assert scaled(DEPLOYMENTS, workload, {"metadata": {}})["spec"]["replicas"] == 0
    assert workload["spec"] == {"replicas": 2, "paused": True}


def test_negative_replicas() -> None:
    """Replicas must not be negative."""
    with pytest.raises(StatusError, match="greater than or equal to 0"):
        scaled(DEPLOYMENTS, {"metadata": METADATA}, {"spec": {"replicas": -1}})
