"""Storage pools in columns give the pool that the plain rule gives."""

from random import Random

import pytest

from kubesched.api.quantity import value
from kubesched.api.storage import CSIStorageCapacity
from kubesched.plugins.volumes.node_access import NodeAccess
from kubesched.plugins.volumes.provisioning import NO_POOL, StoragePools
from kubesched.snapshot.objects import ObjectStore
from kubesched.testing.builders import make_node, make_table
from tests.plugins.volume_objects import HOSTNAME, ZONE, make_pool

NODES = 6


@pytest.mark.parametrize("seed", range(10))
def test_random_histories(seed: int) -> None:
    """After each change, each row gets the first pool by name that has room and that it reaches."""
    random = Random(seed)
    objects, pools = ObjectStore(), StoragePools()
    table = make_table(
        [make_node(f"n{i}", labels={HOSTNAME: f"n{i}", ZONE: f"z{i % 2}"}) for i in range(NODES)]
    )
    access, with_room = NodeAccess(table), 0
    for _ in range(120):
        for _ in range(random.choice([0, 1, 1, 3])):
            change(random, objects)
        name, size = random.choice("ab"), value(random.choice(["0", "1Gi", "2Gi", "4Gi"]))
        offered = pools.of(objects, name)
        found = [
            None if at == NO_POOL else offered.pools[at]
            for at in offered.first_with_room(size, access).tolist()
        ]
        assert found == [plain_pool(objects, name, size, row, access) for row in range(NODES)]
        with_room += sum(pool is not None for pool in found)
    assert with_room > 100


def plain_pool(
    objects: ObjectStore, storage_class: str, size: int, row: int, access: NodeAccess
) -> CSIStorageCapacity | None:
    """Return the pool that upstream's rule finds on one node, the first by name."""
    for pool in sorted(objects.list(CSIStorageCapacity), key=lambda one: one.metadata.name):
        largest = pool.capacity if pool.maximum_volume_size is None else pool.maximum_volume_size
        if (
            pool.storage_class_name == storage_class
            and row in access.of_labels(pool.node_topology)
            and largest is not None
            and value(largest) >= size
        ):
            return pool
    return None


def change(random: Random, objects: ObjectStore) -> None:
    """Add, replace or delete a pool; a pool usually keeps its class and topology."""
    name = f"pool-{random.randrange(12):02}"
    kept = Random(name)
    source = kept if random.random() < 0.8 else random
    topologies = [
        {"matchLabels": {HOSTNAME: f"n{source.randrange(NODES)}"}},
        {"matchLabels": {ZONE: f"z{source.randrange(3)}"}},
        {},
        None,
    ]
    pool = make_pool(
        name,
        source.choice("ab"),
        topology=source.choice(topologies),
        capacity=random.choice(["1Gi", "3Gi", "5Gi", None]),
        largest=random.choice([None, None, "2Gi"]),
    )
    if random.random() < 0.2:
        objects.delete(pool)
    else:
        objects.put(pool)
