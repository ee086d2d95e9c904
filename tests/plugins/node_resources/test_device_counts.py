"""Counts of the devices that back extended resources, kept from pod to pod."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest

from kubesched.snapshot.objects import ObjectStore
from kubesched.snapshot.snapshot import Snapshot
from kubesched.testing.builders import make_node, make_pod, make_table
from tests.plugins.dynamic_resources.objects import (
    allocation_of,
    claim,
    device,
    device_class,
    node_selector,
    result,
    slice_of,
)
from tests.plugins.node_resources.fits import GPU, new_plugin, scored, strategy_args

STEPS = 60
# A device counts on the node it names if its slice leaves the choice to the devices.
DEVICES = [device(f"d{at}", {"size": 5 + 10 * at}, node_name="n1") for at in range(3)]
ARGS = strategy_args("MostAllocated", (GPU, 1))
SELECTORS = ('device.attributes["gpu.example.com"].size > 10', "device.driver == 'none'", "1 / 0")


class Cluster:
    """Four nodes, slices and claims, which change at random."""

    def __init__(self, seed: int) -> None:
        self.random = Random(seed)
        self.store = ObjectStore()
        self.snapshot = Snapshot(make_table(make_node(f"n{at}") for at in range(4)), self.store)
        self.put_class(SELECTORS[0])

    def put_class(self, expression: str) -> None:
        """Let the class select other devices."""
        self.store.put(device_class("gpu", expression, extended_resource_name=GPU))

    def change(self) -> None:
        """Change nodes, slices, the class, or most often which devices are allocated."""
        draw = self.random.random()
        if draw < 0.05:
            self.put_class(self.random.choices(SELECTORS, (8, 1, 1))[0])
        elif draw < 0.15:
            zone = {"zone": self.random.choice("ab")}
            self.snapshot.nodes.update_node(make_node(f"n{self.random.randrange(4)}", labels=zone))
        elif draw < 0.35:
            self.change_slice(self.random.randrange(6))
        else:
            self.change_claim(self.random.randrange(8))

    def change_slice(self, at: int) -> None:
        """Publish a slice for a node, a zone, all nodes or a node per device; or withdraw it."""
        zone = node_selector("zone", self.random.choice("ab"))
        devices = DEVICES[: self.random.randrange(4)]
        name = f"s{at}"
        places: tuple[dict[str, Any], ...] = (
            {"node_name": f"n{self.random.randrange(4)}"},
            {"node_selector": zone},
            {"all_nodes": True},
            {"per_device_node_selection": True},
        )
        published = slice_of(devices, name, pool=name, **self.random.choice(places))
        if devices:
            self.store.put(published)
        else:
            self.store.delete(published)

    def change_claim(self, at: int) -> None:
        """Allocate a device for a claim, or release it."""
        pool = f"s{self.random.randrange(6)}"
        taken = result(f"d{self.random.randrange(3)}", pool)
        allocation = allocation_of(taken) if self.random.random() < 0.6 else None
        self.store.put(claim(name=f"c{at}", allocation=allocation))


@pytest.mark.parametrize("seed", range(12))
def test_kept_counts_equal_new_ones(seed: int) -> None:
    """They are compared after each change, and after several."""
    cluster, plugin, seen = Cluster(seed), new_plugin(ARGS), set[int]()
    pod = make_pod(requests={GPU: 1})
    for _ in range(STEPS):
        for _ in range(cluster.random.choice((1, 1, 3))):
            cluster.change()
        found = scored(plugin, pod, cluster.snapshot)
        assert scored(new_plugin(ARGS), pod, cluster.snapshot) == found
        seen.update(found)
    assert len(seen) > 3, "hardly anything was counted"
