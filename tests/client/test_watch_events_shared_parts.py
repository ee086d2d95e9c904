"""Objects that share their parts are the objects they were."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubesched.api.core import Node, Pod
from kubesched.api.scheme import KINDS, Kind
from kubesched.api.volume import PersistentVolume, PersistentVolumeClaim
from kubesched.client import watch_events
from kubesched.client.watch_events import SharedParts


def pod(number: int, template: int = 0, node_name: str = "n1") -> Any:
    """Return a running pod as a server writes it, of a template."""
    return {
        "metadata": {
            "name": f"app-{template}-{number}",
            "namespace": "default",
            "uid": f"uid-{number}",
            "labels": {"app": f"app-{template}"},
        },
        "spec": {
            "containers": [{"name": "main", "resources": {"requests": {"cpu": f"{template}m"}}}],
            "volumes": [
                {"name": "cache", "emptyDir": {}},
                {"name": f"kube-api-access-{number}", "projected": {}},
            ],
            "tolerations": [{"key": "k", "operator": "Exists"}],
            "nodeName": node_name,
        },
        "status": {
            "phase": "Running",
            "conditions": [{"type": "Ready", "status": "True", "reason": f"r{template}"}],
            "containerStatuses": [{"name": "main", "image": "pause", "restartCount": number}],
        },
    }


def read(parts: SharedParts, type_: Any, plain: Any) -> Any:
    """Return a typed object whose parts are shared."""
    item = msgspec.json.decode(msgspec.json.encode(plain), type=type_)
    parts.share(item)
    return item


def test_pods_of_a_template_share_its_parts() -> None:
    """Equal parts are the same object; different ones are not."""
    parts = SharedParts(Pod)
    a, b, c = (
        read(parts, Pod, pod(*which)) for which in ((1, 0, "n1"), (2, 0, "n2"), (3, 7, "n1"))
    )
    assert a.spec.containers is b.spec.containers
    assert a.metadata.labels is b.metadata.labels
    assert a.spec.volumes[0] is b.spec.volumes[0]
    assert a.spec.node_name is c.spec.node_name
    assert a.spec.tolerations == c.spec.tolerations
    assert a.status.conditions[0].type is c.status.conditions[0].type
    assert ("n1", "n2") == (a.spec.node_name, b.spec.node_name)
    assert ({"app": "app-0"}, {"app": "app-7"}) == (b.metadata.labels, c.metadata.labels)


def test_lists_whose_elements_are_shared_are_shared() -> None:
    """Equal conditions of two pods are one tuple, as are empty dicts and equal times."""
    parts = SharedParts(Pod)
    plains = [pod(number) for number in (1, 1, 2)]
    for plain in plains:
        plain["metadata"]["creationTimestamp"] = "2026-01-01T00:00:00Z"
    a, b, c = (read(parts, Pod, plain) for plain in plains)
    assert a.status.conditions is b.status.conditions is c.status.conditions
    assert a.status.container_statuses is b.status.container_statuses
    assert {} == a.metadata.annotations
    assert a.metadata.annotations is c.metadata.annotations
    assert a.metadata.creation_timestamp is c.metadata.creation_timestamp


def test_pods_without_node_and_volumes_share_the_spec() -> None:
    """Pods that wait have nothing of their own."""
    parts = SharedParts(Pod)
    plain = pod(1, node_name="")
    del plain["spec"]["volumes"]
    assert read(parts, Pod, plain).spec is read(parts, Pod, plain).spec


@pytest.mark.slow
@pytest.mark.parametrize("most", [0, 1, 1000])
@given(st.lists(st.tuples(st.integers(0, 9), st.integers(0, 3), st.sampled_from(("", "n", "m")))))
def test_sharing_changes_nothing(most: int, which: list[tuple[int, int, str]]) -> None:
    """Every object equals what was written, whatever came before it and was forgotten."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(watch_events, "_PARTS_MAX", most)
        patch.setattr(watch_events, "_OBJECTS_BETWEEN_CHECKS", 2)
        parts = SharedParts(Pod)
        plains = [pod(*one) for one in which]
        shared = [read(parts, Pod, deepcopy(plain)) for plain in plains]
    assert [msgspec.convert(plain, Pod) for plain in plains] == shared


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: f"{kind.group}/{kind.kind}")
def test_all_kinds_can_be_shared(kind: Kind) -> None:
    """Sections that a kind does not have, or that are empty, are no obstacle."""
    parts = SharedParts(kind.type)
    plain = {"metadata": {"name": "a", "labels": {"b": "c"}}}
    assert msgspec.convert(plain, kind.type) == read(parts, kind.type, plain)


def test_parts_of_other_kinds() -> None:
    """Nodes share images and conditions' words, volumes and claims their capacities."""
    nodes = SharedParts(Node)
    plain = {
        "status": {
            "images": [{"names": ["a"], "sizeBytes": 3}],
            "conditions": [{"type": "Ready", "status": "True", "lastHeartbeatTime": "x"}],
        }
    }
    a, b = read(nodes, Node, plain), read(nodes, Node, plain)
    assert a.status.images is b.status.images
    for type_, spec in (
        (PersistentVolume, {"capacity": {"storage": "1Gi"}}),
        (PersistentVolumeClaim, {"accessModes": ["ReadWriteOnce"]}),
    ):
        parts = SharedParts(type_)
        first, second = (read(parts, type_, {"spec": spec}).spec for _ in range(2))
        name = "capacity" if type_ is PersistentVolume else "access_modes"
        assert getattr(first, name) is getattr(second, name)
