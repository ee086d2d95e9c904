"""The recorded run of kube-scheduler, replayed to our event handlers on virtual time."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from random import Random
from typing import Any, Final

from msgspec.structs import replace

from kubesched.api.core import Node, Pod
from kubesched.app.metrics.pages import Pages
from kubesched.config.feature_gates import FeatureGates
from kubesched.plugins.registry import in_tree_setup
from kubesched.scheduler.assembly import NO_WRITERS, Writers, assemble
from kubesched.simulator.virtual_loop import run
from kubesched.testing.builders import make_node, make_pod
from tests.app.port_records import exchanges
from tests.scheduler.running import FakeApi

Families = dict[str, dict[str, Any]]

_DELETED: Final = "2024-05-01T10:00:00Z"


class PatientApi(FakeApi):
    """Deletes pods gracefully: they stay until the test deletes them like a kubelet."""

    async def delete_pod(self, pod: Pod) -> None:
        """Set the deletion timestamp."""
        known = self.pods[pod.metadata.name]
        self.update(replace(known, metadata=replace(known.metadata, deletion_timestamp=_DELETED)))


class Measured:
    """A scheduler with metrics.

    Attributes:
        api: The API server.
        pages: The metrics.
        scheduler: The scheduler.
    """

    def __init__(
        self, gates: FeatureGates, draw: Callable[[], float], writers: Writers = NO_WRITERS
    ) -> None:
        clock = asyncio.get_running_loop().time
        self.pages = Pages(gates, clock, draw)
        self.api = PatientApi()
        self.scheduler, self.api.handlers = assemble(
            in_tree_setup(gates),
            self.api,
            random=Random(1),
            instruments=self.pages.scheduler,
            writers=writers,
        )

    def page(self) -> str:
        """Return the page of /metrics."""
        return self.pages.metrics.page().decode()


@asynccontextmanager
async def measured(
    draw: Callable[[], float] = lambda: 0.0,
    gates: FeatureGates | None = None,
    writers: Writers = NO_WRITERS,
) -> AsyncIterator[Measured]:
    """Run a scheduler with metrics; by default the plugins of every cycle are timed."""
    found = Measured(gates or FeatureGates(), draw, writers)
    running = asyncio.ensure_future(found.scheduler.run())
    try:
        yield found
    finally:
        found.scheduler.stop()
        await running
        await found.scheduler.drain()


def nodes() -> tuple[Node, ...]:
    """Return the nodes of the record."""
    return tuple(
        make_node(
            name,
            labels={"kubernetes.io/hostname": name},
            allocatable={"cpu": cpu, "memory": "8Gi", "pods": "110"},
            taints=taints,
        )
        for name, cpu, taints in (
            ("n1", "4", ()),
            ("n2", "2", ()),
            ("full", "1", ({"key": "only", "effect": "NoSchedule"},)),
        )
    )


async def recorded_run(found: Measured) -> None:
    """Repeat the steps of the recorded run, with its pauses."""
    everything = ({"operator": "Exists"},)
    found.api.create(*nodes())
    found.api.create(
        make_pod("v", node_name="full", priority=5, requests={"cpu": "1"}, tolerations=everything)
    )
    for name, cpu in (("m0", "1"), ("m1", "2"), ("m2", "9")):
        found.api.create(make_pod(name, priority=0, requests={"cpu": cpu}))
        await asyncio.sleep(0.45)
    found.api.create(
        make_pod(
            "boss",
            priority=50,
            requests={"cpu": "1"},
            node_selector={"kubernetes.io/hostname": "full"},
            tolerations=everything,
        )
    )
    await asyncio.sleep(0.6)
    # Like a kubelet after the grace period: a last status update, then the deletion.
    found.api.update(found.api.pods["v"])
    found.api.delete("v")
    await asyncio.sleep(0.15)
    found.api.create(make_pod("gated", scheduling_gates=("g",)))
    await asyncio.sleep(2.7)


def page_of_recorded_run() -> str:
    """Return the page of /metrics at the end of the recorded run."""

    async def main() -> str:
        async with measured() as found:
            await recorded_run(found)
            return found.page()

    return run(main())


def recorded_families(at: int = -1) -> Families:
    """Return the families of a recorded page of /metrics, by name."""
    pages = [each for each in exchanges() if each["path"] == "/metrics" and "families" in each]
    return {family["name"]: family for family in pages[at]["families"]}


def families_of(page: str) -> Families:
    """Parse a page to the form of the record: type, help, series, buckets."""
    families: Families = {}
    for line in page.splitlines():
        if line.startswith("# HELP "):
            name, _, text = line[7:].partition(" ")
            families[name] = {"name": name, "help": text, "series": {}, "buckets": []}
        elif line.startswith("# TYPE "):
            name, _, kind = line[7:].partition(" ")
            families[name]["type"] = kind
        else:
            _read_sample(line, families)
    return families


def _read_sample(line: str, families: Families) -> None:
    sample, _, value = line.rpartition(" ")
    name, _, written = sample.partition("{")
    labels = dict(
        pair.split("=", 1) for pair in written.rstrip("}").replace('",', '"\0').split("\0") if pair
    )
    labels = {key: text.strip('"') for key, text in labels.items()}
    bound = labels.pop("le", None)
    key = tuple(sorted(labels.items()))
    if name in families:
        families[name]["series"][key] = value
        return
    name, _, part = name.rpartition("_")
    family = families[name]
    if bound is not None and bound not in family["buckets"]:
        family["buckets"].append(bound)
    if part == "count":
        family["series"][key] = value
