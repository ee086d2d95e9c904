"""Columns that are kept decide as new ones do; the rules themselves are in test_volume_binding."""

from random import Random

import msgspec
import pytest

from kubesched.api.core import Node
from kubesched.api.storage import CSIStorageCapacity
from kubesched.api.volume import ObjectReference, PersistentVolume, PersistentVolumeClaim
from kubesched.framework.status import Status
from kubesched.plugins.volumes.assume_cache import AssumeCache
from kubesched.plugins.volumes.decisions import Decider, PodVolumes, StorageColumns
from kubesched.plugins.volumes.matching import VolumesByClass
from kubesched.snapshot.objects import ObjectStore
from kubesched.snapshot.snapshot import Snapshot
from kubesched.testing.builders import make_node, make_table
from tests.plugins.volume_objects import (
    HOSTNAME,
    ZONE,
    make_claim,
    make_class,
    make_driver,
    make_pool,
    make_volume,
)

CLASSES = ("local", "made")
NODES = 7
MODES = ("ReadWriteOnce", "ReadOnlyMany")


@pytest.mark.parametrize("seed", range(20))
def test_random_histories(seed: int) -> None:
    """Volumes, stored or assumed, pools and nodes change."""
    random, objects = Random(seed), ObjectStore()
    assumed = AssumeCache(PersistentVolume, "persistentvolumes")
    for item in (
        make_class("local", provisioner="kubernetes.io/no-provisioner"),
        make_class("made"),
        make_driver("csi.example.com", storageCapacity=True),
    ):
        objects.put(item)
    for number in range(random.choice([5, 40])):
        objects.put(random_volume(random, f"v{number:03}"))
    table = make_table([random_node(random, row) for row in range(NODES)])
    snapshot, kept = Snapshot(table, objects), StorageColumns(assumed)
    bound = made = 0
    for _ in range(60):
        # The log of changes does not reach back over many.
        for _ in range(random.choice([0, 1, 1, 3, 1500 if seed == 0 else 50])):
            change(random, objects, assumed)
        if random.random() < 0.1:
            table.update_node(random_node(random, random.randrange(NODES)))
        claims = [random_claim(random, f"c{i}") for i in range(random.choice([1, 1, 2, 3]))]
        claims += random.choices(claims, k=random.choice([0, 0, 1]))
        found = decide(claims, snapshot, kept)
        assert found == decide(claims, snapshot, StorageColumns(assumed))
        bound += sum(len(one.static_bindings) for one in found if isinstance(one, PodVolumes))
        made += sum(len(one.dynamic_provisions) for one in found if isinstance(one, PodVolumes))
    assert bound > 20
    assert made > 20


def decide(
    claims: list[PersistentVolumeClaim], snapshot: Snapshot, columns: StorageColumns
) -> list[Status | PodVolumes]:
    """Return per row the volumes of the claims, or why there are none."""
    decisions = Decider([], claims, snapshot, columns).decide()
    return [
        decisions.pod_volumes(row)
        if decisions.statuses[row].is_success
        else decisions.statuses[row]
        for row in range(NODES)
    ]


def test_volumes_come_and_go() -> None:
    """Volumes that are gone keep no positions when new ones come."""
    objects, assumed = ObjectStore(), AssumeCache(PersistentVolume, "persistentvolumes")
    kept = VolumesByClass(assumed)
    for number in range(3):
        volume = make_volume(f"v{number}", storage_class="local", nodes={HOSTNAME: [f"n{number}"]})
        objects.put(volume)
        assert [volume] == kept.of(objects, "local").volumes
        objects.delete(volume)


def test_what_nodes_reach_is_kept_until_labels_change() -> None:
    """Nodes report amounts and images all the time; what volumes they reach depends on labels."""
    table = make_table([make_node("a"), make_node("b")])
    kept = StorageColumns(AssumeCache(PersistentVolume, "persistentvolumes"))
    access = kept.access(table)
    table.update_node(make_node("a", allocatable={"cpu": 9}))
    assert kept.access(table) is access
    table.update_node(make_node("a", labels={"x": "y"}))
    assert kept.access(table) is not access


def change(random: Random, objects: ObjectStore, assumed: AssumeCache[PersistentVolume]) -> None:
    """Store, delete, assume or restore a volume, or change a pool."""
    volumes = list(objects.list(PersistentVolume))
    what = random.choice(["put", "put", "delete", "assume", "assume", "restore", "write", "pool"])
    if what == "pool":
        pool = random_pool(random, f"pool-{random.randrange(12):02}")
        (objects.delete if random.random() < 0.2 else objects.put)(pool)
    elif what == "put" or not volumes:
        objects.put(random_volume(random, f"v{random.randrange(60):03}"))
    elif what == "delete":
        objects.delete(random.choice(volumes))
    elif what == "restore":
        assumed.restore(assumed.current(random.choice(volumes)))
    else:
        volume = random.choice(volumes)
        reference = ObjectReference(name=f"c{random.randrange(3)}", namespace="default")
        spec = msgspec.structs.replace(volume.spec, claim_ref=reference)
        taken = msgspec.structs.replace(volume, spec=spec)
        if what == "assume":
            assumed.assume(objects, taken)
        else:
            objects.put(taken)


def random_node(random: Random, row: int) -> Node:
    """Make a node in one of three zones."""
    return make_node(f"n{row}", labels={HOSTNAME: f"n{row}", ZONE: f"z{random.randrange(3)}"})


def random_volume(random: Random, name: str) -> PersistentVolume:
    """Make a volume; every other one is as most are."""
    local, zone = {HOSTNAME: [f"n{random.randrange(NODES)}"]}, {ZONE: [f"z{random.randrange(4)}"]}
    is_odd = random.random() < 0.5
    claim = {"name": f"c{random.randrange(3)}", "namespace": "default"}
    return make_volume(
        name,
        storage_class=random.choice(CLASSES),
        storage=random.choice(["1Gi", "1Gi", "2Gi", "2048Mi", "9Pi"]),
        nodes=random.choice([local, local, zone, None]),
        labels=random.choice([{}, {"disk": "fast"}]),
        phase=random.choice(["Available", "Available", "Released"]) if is_odd else "Available",
        claim=random.choice([None, None, claim]) if is_odd else None,
        access_modes=random.choice([MODES, MODES[:1]]),
        metadata=random.choice([{}, {}, {"deletionTimestamp": "2026-01-01T00:00:00Z"}])
        if is_odd
        else {},
        volumeMode=random.choice(["Filesystem", "Filesystem", "Block"]) if is_odd else None,
    )


def random_claim(random: Random, name: str) -> PersistentVolumeClaim:
    """Make a claim; some have a selector."""
    odd: list[dict[str, object]] = [
        {"selector": {"matchLabels": {"disk": "fast"}}},
        {"volumeMode": "Block"},
    ]
    return make_claim(
        name,
        storage_class=random.choice(CLASSES),
        storage=random.choice([None, "1Gi", "1Gi", "2Gi", "10Gi"]),
        access_modes=random.choice([MODES[:1], MODES[:1], MODES, ()]),
        spec=random.choice([{}, {}, *odd]),
    )


def random_pool(random: Random, name: str) -> CSIStorageCapacity:
    """Make a pool; it usually keeps its class and topology."""
    source = Random(name) if random.random() < 0.8 else random
    topologies = [
        {"matchLabels": {HOSTNAME: f"n{source.randrange(NODES)}"}},
        {"matchLabels": {ZONE: f"z{source.randrange(3)}"}},
        {},
        None,
    ]
    return make_pool(
        name,
        source.choice(["made", "made", "other"]),
        topology=source.choice(topologies),
        capacity=random.choice(["1Gi", "3Gi", "12Gi", None]),
        largest=random.choice([None, None, "2Gi"]),
    )
