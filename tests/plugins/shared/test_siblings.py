from __future__ import annotations

from typing import Any, TypeAlias

import msgspec
import pytest

from kubesched.api.apps import ReplicaSet, StatefulSet
from kubesched.api.core import ReplicationController, Service
from kubesched.plugins.shared.siblings import (
    ServiceIndex,
    default_selector,
    matching_selector,
    versions_of_siblings,
)
from kubesched.snapshot.objects import ObjectStore
from kubesched.snapshot.pod_info import PodInfo
from kubesched.testing.builders import make_pod

Json: TypeAlias = "dict[str, Any]"

KINDS: dict[str, Any] = {
    "Service": Service,
    "ReplicationController": ReplicationController,
    "ReplicaSet": ReplicaSet,
    "StatefulSet": StatefulSet,
}
LABELS = {"app": "foo", "tier": "x"}
WRONG: Json = {"matchExpressions": [{"key": "app", "operator": "Near"}]}
FOO = ("Service", "s", {"app": "foo"})
SET_OF_B = ("ReplicaSet", "o", {"matchLabels": {"a": "b"}})
POD = PodInfo(make_pod(labels=LABELS))


def make_store(*written: tuple[str, str, Json | None]) -> ObjectStore:
    """Objects of kind, name and selector in namespace default."""
    store = ObjectStore()
    for kind, name, selector in written:
        spec = {} if selector is None else {"selector": selector}
        metadata = {"name": name, "namespace": "default"}
        store.put(msgspec.convert({"metadata": metadata, "spec": spec}, KINDS[kind]))
    return store


def owned_by(api_version: str, kind: str, name: str = "o", controller: bool = True) -> PodInfo:
    """A pod with an owner."""
    owner = {"apiVersion": api_version, "kind": kind, "name": name, "controller": controller}
    return PodInfo(make_pod(labels=LABELS, metadata={"ownerReferences": [owner]}))


OWNED = owned_by("apps/v1", "ReplicaSet")


@pytest.mark.parametrize(
    ("pod", "objects", "expected"),
    [
        pytest.param(POD, [], "", id="nothing"),
        pytest.param(
            POD,
            [
                FOO,
                ("Service", "t", {"tier": "x"}),
                ("Service", "u", {"app": "bar"}),
                ("Service", "v", {}),
                ("Service", "w", None),
            ],
            "app=foo,tier=x",
            id="services-that-match",
        ),
        pytest.param(
            PodInfo(make_pod(namespace="other", labels=LABELS)),
            [FOO],
            "",
            id="service-of-another-namespace",
        ),
        pytest.param(
            owned_by("v1", "ReplicationController"),
            [("ReplicationController", "o", {"app": "bar"}), FOO],
            "app=bar",
            id="controller-wins-over-services",
        ),
        pytest.param(OWNED, [SET_OF_B, FOO], "a=b,app=foo", id="replica-set-adds"),
        pytest.param(
            owned_by("apps/v1", "StatefulSet"),
            [("StatefulSet", "o", {"matchExpressions": [{"key": "a", "operator": "Exists"}]})],
            "a",
            id="stateful-set",
        ),
        pytest.param(OWNED, [("ReplicaSet", "o", None)], "", id="no-selector"),
        pytest.param(OWNED, [("ReplicaSet", "o", WRONG)], "", id="wrong-selector"),
        pytest.param(
            owned_by("extensions/v1beta1", "ReplicaSet"), [SET_OF_B], "", id="other-group"
        ),
        pytest.param(
            owned_by("apps/v1", "ReplicaSet", controller=False),
            [SET_OF_B],
            "",
            id="owner-that-is-no-controller",
        ),
        pytest.param(OWNED, [], "", id="owner-gone"),
        pytest.param(owned_by("batch/v1", "Job"), [FOO], "app=foo", id="job"),
    ],
)
def test_default_selector(
    pod: PodInfo, objects: list[tuple[str, str, Json | None]], expected: str
) -> None:
    """The selectors of matching services and of the pod's controller are combined."""
    selector = default_selector(pod, make_store(*objects), ServiceIndex())
    assert expected == str(selector)
    assert selector.is_empty == (not expected)


@pytest.mark.parametrize(
    ("objects", "expected"),
    [
        pytest.param([], "", id="nothing"),
        pytest.param(
            [
                FOO,
                ("ReplicationController", "c", {"tier": "x"}),
                ("ReplicationController", "d", {"tier": "y"}),
                ("ReplicationController", "e", {}),
            ],
            "app=foo,tier=x",
            id="labels-are-merged",
        ),
        pytest.param(
            [
                ("ReplicaSet", "r", {"matchLabels": {"app": "foo"}}),
                ("ReplicaSet", "q", {"matchLabels": {"app": "bar"}}),
                ("ReplicaSet", "e", {}),
                ("ReplicaSet", "n", None),
                ("ReplicaSet", "w", WRONG),
                ("StatefulSet", "t", {"matchLabels": {"tier": "x"}}),
            ],
            "app=foo,tier=x",
            id="sets-that-match",
        ),
    ],
)
def test_matching_selector(objects: list[tuple[str, str, Json | None]], expected: str) -> None:
    """The selectors of all objects that select the pod are combined; empty ones do not count."""
    selector = matching_selector(POD, make_store(*objects), ServiceIndex())
    assert expected == str(selector)


def test_versions_of_siblings() -> None:
    """A change of each of the kinds changes the versions."""
    store = make_store()
    for kind in KINDS.values():
        before = versions_of_siblings(store)
        metadata = {"name": "x", "namespace": "default"}
        store.put(msgspec.convert({"metadata": metadata}, kind))
        assert before != versions_of_siblings(store)
