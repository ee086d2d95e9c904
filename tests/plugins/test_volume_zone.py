"""VolumeZone: zones and regions of volumes against those of nodes."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubesched.api.meta import KubeObject
from kubesched.api.volume import PersistentVolume
from kubesched.framework.cycle_state import CycleState
from kubesched.framework.plugin import UNSIGNED
from kubesched.framework.status import SUCCESS, unresolvable
from kubesched.plugins.volume_zone import (
    VolumeZone,
    after_storage_class_addition,
    after_volume_change,
)
from kubesched.plugins.volumes.claims import after_named_claim_change
from kubesched.testing.builders import make_node, make_pod, make_pod_info, make_snapshot
from kubesched.testing.handle import FakeHandle
from tests.plugins.by_node import filter_all
from tests.plugins.volume_objects import (
    BETA_REGION,
    BETA_ZONE,
    REGION,
    ZONE,
    claim_volumes,
    make_claim,
    make_class,
    make_volume,
)

REJECTED = unresolvable("node(s) had no available volume zone")
PLUGIN = VolumeZone(None, FakeHandle())


@pytest.mark.parametrize(
    ("volume", "node", "fits"),
    [
        pytest.param({ZONE: "a"}, {}, True, id="node without any topology"),
        pytest.param({ZONE: "a"}, {ZONE: "a"}, True, id="same zone"),
        pytest.param({ZONE: "a"}, {ZONE: "b"}, False, id="other zone"),
        pytest.param({ZONE: "a"}, {REGION: "a"}, False, id="node has a region only"),
        pytest.param({ZONE: "a__b"}, {ZONE: "b"}, True, id="one of several zones"),
        pytest.param({ZONE: " a __ b"}, {ZONE: "b"}, True, id="blanks are cut off"),
        pytest.param({BETA_ZONE: "a"}, {ZONE: "a"}, True, id="beta volume, current node"),
        pytest.param({ZONE: "a"}, {BETA_ZONE: "a"}, False, id="current volume, beta node"),
        pytest.param(
            {BETA_ZONE: "a"}, {BETA_ZONE: "b", ZONE: "a"}, False, id="beta node label wins"
        ),
        pytest.param({BETA_REGION: "r"}, {REGION: "r"}, True, id="beta region"),
        pytest.param({ZONE: "a", REGION: "r"}, {ZONE: "a", REGION: "s"}, False, id="both count"),
        pytest.param({ZONE: "a", REGION: "r__"}, {ZONE: "a"}, True, id="empty part is left out"),
    ],
)
def test_filter(volume: dict[str, str], node: dict[str, str], fits: bool) -> None:
    """A node with a zone or region must have those of the volume."""
    objects: list[KubeObject] = [make_claim("c", volume="v"), make_volume("v", labels=volume)]
    snapshot = make_snapshot([make_node("n", labels=node)], objects=objects)
    pod = make_pod_info(volumes=claim_volumes("c"))
    result = PLUGIN.pre_filter(CycleState(), pod, snapshot)
    assert result.state is not None
    expected = SUCCESS if fits else REJECTED
    assert {"n": expected} == filter_all(PLUGIN, result.state, pod, snapshot.nodes)
    assert fits == (PLUGIN.describe(result.state, pod, snapshot.nodes) == "") or not node


@pytest.mark.parametrize(
    ("claim", "reason"),
    [
        pytest.param("", "PersistentVolumeClaim had no name", id="no claim name"),
        pytest.param("gone", 'persistentvolumeclaim "gone" not found', id="no claim"),
        pytest.param("no-volume", 'persistentvolume "gone" not found', id="no volume"),
        pytest.param(
            "no-class",
            "PersistentVolumeClaim had no pv name and storageClass name",
            id="neither volume nor class",
        ),
        pytest.param(
            "class-gone", 'storageclass.storage.k8s.io "gone" not found', id="class is missing"
        ),
        pytest.param(
            "no-mode", 'VolumeBindingMode not set for StorageClass "no-mode"', id="no mode"
        ),
        pytest.param("immediate", "PersistentVolume had no name", id="not bound yet"),
    ],
)
def test_pre_filter_rejects(claim: str, reason: str) -> None:
    """Claims without a volume or class reject the pod on all nodes."""
    objects: list[KubeObject] = [
        make_claim("no-volume", volume="gone"),
        make_claim("no-class"),
        make_claim("class-gone", storage_class="gone"),
        make_claim("no-mode", storage_class="no-mode"),
        make_claim("immediate", storage_class="immediate"),
        make_class("no-mode", mode=None),
        make_class("immediate", mode="Immediate"),
    ]
    pod = make_pod_info(volumes=claim_volumes(claim))
    result = PLUGIN.pre_filter(CycleState(), pod, make_snapshot(objects=objects))
    assert unresolvable(reason) == result.status


@pytest.mark.parametrize(
    "volumes",
    [
        pytest.param([], id="no volumes"),
        pytest.param([{"name": "v", "ephemeral": {}}], id="ephemeral claims do not count"),
        pytest.param(claim_volumes("waiting"), id="waits for the first consumer"),
        pytest.param(claim_volumes("beta"), id="class by annotation"),
        pytest.param(claim_volumes("unlabelled"), id="volume without zones"),
    ],
)
def test_pre_filter_skips(volumes: list[dict[str, object]]) -> None:
    """Without a zone or region on a bound volume there is nothing to do."""
    beta = {"volume.beta.kubernetes.io/storage-class": "wait"}
    objects: list[KubeObject] = [
        make_claim("waiting", storage_class="wait"),
        make_claim("beta", storage_class="other", annotations=beta),
        make_class("wait"),
        make_claim("unlabelled", volume="v"),
        make_volume("v", labels={ZONE: "a__"}),
    ]
    pod = make_pod_info(volumes=volumes)
    assert PLUGIN.pre_filter(CycleState(), pod, make_snapshot(objects=objects)).status.is_skip


def test_sign() -> None:
    """Only pods without claims share their answers."""
    assert () == PLUGIN.sign(make_pod_info())
    assert UNSIGNED is PLUGIN.sign(make_pod_info(volumes=claim_volumes("c")))


KEYS = (BETA_ZONE, BETA_REGION, ZONE, REGION)
PARTS = st.sampled_from(["a", "b", " a", ""])
VOLUME_LABELS = st.dictionaries(
    st.sampled_from(KEYS), st.lists(PARTS, min_size=1, max_size=3).map("__".join), max_size=3
)
NODE_LABELS = st.dictionaries(st.sampled_from(KEYS), st.sampled_from(["a", "b"]), max_size=3)


def slow_fits(volumes: list[dict[str, str]], node: dict[str, str]) -> bool:
    """Answer for one node, straight from the rule."""
    if not any(key in node for key in KEYS):
        return True
    for labels in volumes:
        for key, text in labels.items():
            values = [part.strip() for part in text.split("__")]
            if "" in values:
                continue
            current = key.replace("failure-domain.beta", "topology")
            if node.get(key, node.get(current)) not in values:
                return False
    return True


@given(st.lists(VOLUME_LABELS, min_size=1, max_size=2), st.lists(NODE_LABELS, max_size=6))
def test_filter_equals_twin(volumes: list[dict[str, str]], nodes: list[dict[str, str]]) -> None:
    """The columns answer as the rule does for each node."""
    objects: list[KubeObject] = [
        item
        for i, labels in enumerate(volumes)
        for item in (make_claim(f"c{i}", volume=f"v{i}"), make_volume(f"v{i}", labels=labels))
    ]
    built = [make_node(f"n{i}", labels=labels) for i, labels in enumerate(nodes)]
    snapshot = make_snapshot(built, objects=objects)
    pod = make_pod_info(volumes=claim_volumes(*(f"c{i}" for i in range(len(volumes)))))
    result = PLUGIN.pre_filter(CycleState(), pod, snapshot)
    expected = {f"n{i}": slow_fits(volumes, labels) for i, labels in enumerate(nodes)}
    if result.status.is_skip:
        assert all(expected.values())
        return
    assert result.state is not None
    found = filter_all(PLUGIN, result.state, pod, snapshot.nodes)
    assert expected == {name: status.is_success for name, status in found.items()}


def test_events() -> None:
    """Added storage classes, added or relabelled nodes, claims and volumes."""
    labels = [one.event.label for one in PLUGIN.events_to_register()]
    assert "storage.k8s.io/StorageClassAdd" == labels[0]
    assert [1, 9, 8189, 8189] == [int(one.event.action) for one in PLUGIN.events_to_register()]


@pytest.mark.parametrize(
    ("mode", "queues"),
    [("WaitForFirstConsumer", True), ("Immediate", False), (None, False)],
)
def test_after_storage_class_addition(mode: str | None, queues: bool) -> None:
    """Only a class that waits for the first consumer helps."""
    assert queues == after_storage_class_addition(make_pod(), None, make_class("c", mode=mode))


def test_after_named_claim_change() -> None:
    """Only a claim that the pod names helps."""
    pod = make_pod(volumes=[*claim_volumes("c"), {"name": "e", "ephemeral": {}}])
    assert after_named_claim_change(pod, None, make_claim("c"))
    assert not after_named_claim_change(pod, None, make_claim("other"))
    assert not after_named_claim_change(pod, None, make_claim("pod-e"))
    assert not after_named_claim_change(pod, None, make_claim("c", metadata={"namespace": "other"}))


@pytest.mark.parametrize(
    ("old", "queues"),
    [
        pytest.param(None, True, id="a new volume"),
        pytest.param(make_volume("v", labels={ZONE: "b"}), True, id="another zone"),
        pytest.param(make_volume("v", labels={ZONE: "b__a"}), True, id="fewer zones"),
        pytest.param(make_volume("v", labels={ZONE: "a", "x": "y"}), False, id="other labels"),
        pytest.param(make_volume("v", labels={ZONE: "a__a"}), False, id="the same set"),
    ],
)
def test_after_volume_change(old: PersistentVolume | None, queues: bool) -> None:
    """A volume helps if it is new, or its zones or regions changed."""
    assert queues == after_volume_change(make_pod(), old, make_volume("v", labels={ZONE: "a"}))
