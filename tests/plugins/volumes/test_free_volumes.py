"""Volumes in columns give what the rule of upstream gives, volume by volume and node by node."""

from random import Random

import msgspec
import numpy as np
import pytest
from numpy.typing import NDArray

from kubesched.api.quantity import nano_value
from kubesched.api.selectors import compile_label_selector
from kubesched.api.volume import ObjectReference, PersistentVolume, PersistentVolumeClaim
from kubesched.plugins.volumes.assume_cache import AssumeCache
from kubesched.plugins.volumes.claims import class_of_volume
from kubesched.plugins.volumes.free_volumes import VolumesByClass
from kubesched.plugins.volumes.matching import (
    OfferedVolumes,
    by_size,
    find_matching_volumes,
    is_bound_to,
)
from kubesched.plugins.volumes.node_access import NodeAccess, TableAccess, required_of
from kubesched.snapshot.objects import ObjectStore
from kubesched.testing.builders import make_node, make_table
from tests.plugins.volume_objects import HOSTNAME, ZONE, make_claim, make_volume

CLASSES = ("local", "zonal")
NODES = 7
MODES = ("ReadWriteOnce", "ReadOnlyMany")


@pytest.mark.parametrize("seed", range(20))
def test_random_histories(seed: int) -> None:
    """After each change, assumed or stored, every claim gets the volumes of the plain rule."""
    random = Random(seed)
    objects, assumed = ObjectStore(), AssumeCache(PersistentVolume, "persistentvolumes")
    kept, tables = VolumesByClass(assumed), TableAccess()
    table = make_table(
        [make_node(f"n{i}", labels={HOSTNAME: f"n{i}", ZONE: f"z{i % 3}"}) for i in range(NODES)]
    )
    for volume in range(random.choice([5, 40])):
        objects.put(random_volume(random, f"v{volume:03}"))
    served = 0
    for _ in range(60):
        # Many at once make the columns start anew.
        for _ in range(random.choice([0, 1, 1, 2, 100])):
            change(random, objects, assumed)
        access = tables.of(table)
        name = random.choice(CLASSES)
        claims = [random_claim(random, f"c{i}") for i in range(random.choice([1, 1, 2, 3]))]
        claims += random.choices(claims, k=random.choice([0, 0, 1]))
        free = kept.of(objects, name)
        reserved = {one.metadata.name: one for c in claims for one in free.reserved_for(c)}
        offered = OfferedVolumes(free, tuple(reserved[key] for key in sorted(reserved)))
        found = []
        taken: list[NDArray[np.int32]] = []
        for claim in by_size(claims):
            match = find_matching_volumes(claim, offered, taken, access)
            taken.append(match.chosen)
            found.append([name_of(match.volume_on(row)) for row in range(NODES)])
        current = map(assumed.current, objects.list(PersistentVolume))
        volumes = [one for one in current if class_of_volume(one) == name]
        assert found == plain_matches(by_size(claims), volumes, access)
        served += sum(bool(one) for row in found for one in row)
    assert served > 50


def test_volumes_of_many_nodes_come_and_go() -> None:
    """The nodes that were reached by volumes which are gone are not remembered forever."""
    objects, assumed = ObjectStore(), AssumeCache(PersistentVolume, "persistentvolumes")
    kept = VolumesByClass(assumed)
    for number in range(300):
        volume = make_volume(f"v{number}", storage_class="local", nodes={HOSTNAME: [f"n{number}"]})
        objects.put(volume)
        free = kept.of(objects, "local")
        assert [volume] == free.volumes
        assert not free.is_outgrown
        objects.delete(volume)


def plain_matches(
    claims: list[PersistentVolumeClaim], volumes: list[PersistentVolume], access: NodeAccess
) -> list[list[str]]:
    """Return the name of the volume of each claim per row, "" for none."""
    reach = {
        one.metadata.name: set(access.of_selector(required_of(one.spec.node_affinity)).tolist())
        for one in volumes
    }
    rows: list[list[str]] = [[] for _ in claims]
    for row in range(NODES):
        taken: list[str] = []
        for at, claim in enumerate(claims):
            volume = plain_match(claim, volumes, taken, {n for n in reach if row in reach[n]})
            rows[at].append(volume)
            taken.append(volume)
    return rows


def plain_match(
    claim: PersistentVolumeClaim,
    volumes: list[PersistentVolume],
    taken: list[str],
    reachable: set[str],
) -> str:
    """Return the volume that upstream's rule finds on one node."""
    best: tuple[int, str] | None = None
    wanted = claim.spec
    size = nano_value(wanted.resources.requests.get("storage", 0))
    for volume in sorted(volumes, key=lambda one: one.metadata.name):
        held, name = volume.spec, volume.metadata.name
        is_own = is_bound_to(volume, claim)
        capacity = nano_value(held.capacity["storage"])
        if (
            name in taken
            or (held.claim_ref is not None and not is_own)
            or capacity < size
            or (held.volume_mode or "Filesystem") != (wanted.volume_mode or "Filesystem")
            or volume.metadata.deletion_timestamp is not None
        ):
            continue
        if is_own:
            return name if name in reachable else ""
        if (
            volume.status.phase == "Available"
            and name in reachable
            and set(wanted.access_modes) <= set(held.access_modes)
            and (
                wanted.selector is None
                or compile_label_selector(wanted.selector).matches(volume.metadata.labels)
            )
            and (best is None or (capacity, name) < best)
        ):
            best = capacity, name
    return "" if best is None else best[1]


def change(random: Random, objects: ObjectStore, assumed: AssumeCache[PersistentVolume]) -> None:
    """Store, delete, assume or restore a volume."""
    volumes = list(objects.list(PersistentVolume))
    what = random.choice(["put", "put", "delete", "assume", "assume", "restore", "write"])
    if what == "put" or not volumes:
        objects.put(random_volume(random, f"v{random.randrange(60):03}"))
        return
    volume = random.choice(volumes)
    if what == "delete":
        objects.delete(volume)
    elif what == "restore":
        assumed.restore(assumed.current(volume))
    else:
        bound = ObjectReference(name=f"c{random.randrange(3)}", namespace="default")
        taken = msgspec.structs.replace(
            volume, spec=msgspec.structs.replace(volume.spec, claim_ref=bound)
        )
        if what == "assume":
            assumed.assume(objects, taken)
        else:
            objects.put(taken)


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
        storage=random.choice([None, "1Gi", "1Gi", "2Gi", "10Gi"]),
        access_modes=random.choice([MODES[:1], MODES[:1], MODES, ()]),
        spec=random.choice([{}, {}, *odd]),
    )


def name_of(volume: PersistentVolume | None) -> str:
    """Return the name, "" for None."""
    return "" if volume is None else volume.metadata.name
