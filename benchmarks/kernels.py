"""Measures the operations on whole tables, in microseconds, at several sizes.

`python -m benchmarks.kernels --nodes N` prints JSON: kernel -> µs. Names with a dot are a plugin's
filter or score for a pod that needs it; the others are the building blocks of a cycle.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from random import Random
from typing import Final

import msgspec
import numpy as np

from benchmarks import templates
from benchmarks.plugins import AIMS, measure_plugins
from benchmarks.scene import LARGE, PLAIN, Scene
from benchmarks.timing import time_us
from kubesched.framework.cycle_state import CycleState
from kubesched.framework.plugin import PostFilterPlugin
from kubesched.scheduler.cycle import SchedulingCycle
from kubesched.scheduler.memory import Memory
from kubesched.scheduler.sampling import NodeSampler
from kubesched.scheduler.select_host import select_host
from kubesched.simulator.cluster import ClusterState
from kubesched.snapshot.label_groups import LabelGroup
from kubesched.snapshot.node_columns import NodeColumns
from kubesched.snapshot.node_selection import match_required_node_affinity
from kubesched.snapshot.pod_info import PodInfo
from kubesched.snapshot.pod_sums import PodSum

SIZES: Final = (500, 5000, 15_000, 100_000)
_POINTS: Final = ("filter", "score")

Kernel = Callable[[], object]


def kernels(scene: Scene) -> Iterator[tuple[str, Kernel]]:
    """Yield names and functions to time; each leaves the cluster unchanged."""
    nodes = scene.snapshot.nodes
    yield from _columns(nodes, scene.pods["node-affinity"])
    yield from _changes(scene.cluster, scene.pods[PLAIN])
    yield from _choice(scene)
    yield from _decisions(scene)
    # Last, because it leaves thousands of sums that every later pod would have to update.
    yield from _groups(nodes)


def _columns(nodes: NodeColumns, affine: PodInfo) -> Iterator[tuple[str, Kernel]]:
    rows = np.arange(0, len(nodes), 10)
    yield "coded map", lambda: nodes.taints.map(len, np.int64)
    yield "coded equals", lambda: nodes.label("disk").equals("ssd")
    yield "node selector match", lambda: match_required_node_affinity(affine, nodes)
    yield "take a tenth of the rows", lambda: nodes.take(rows).requested
    yield "view one row", lambda: nodes.row_view(len(nodes) // 2).requested


def _is_app_1(group: LabelGroup) -> int:
    return group.labels.get("app") == "app-1"


def _groups(nodes: NodeColumns) -> Iterator[tuple[str, Kernel]]:
    zones = nodes.label(templates.ZONE)
    kept = PodSum(_is_app_1)
    counts = nodes.groups.count(kept)
    yield "groups count, kept", lambda: nodes.groups.count(kept)
    yield "sum by zone", lambda: counts.by_code(zones)
    # A selector that was not counted before.
    yield "groups count, new", lambda: nodes.groups.count(PodSum(_is_app_1))


def _changes(cluster: ClusterState, pod: PodInfo) -> Iterator[tuple[str, Kernel]]:
    nodes = cluster.cache.nodes
    row = len(nodes) // 2
    there = pod.on_node(nodes.names[row])

    def come_and_go() -> None:
        nodes.add_pod(there, row)
        nodes.remove_pod(there, row)

    yield "add_pod and remove_pod", come_and_go
    yield "pod info of a known template", lambda: PodInfo(pod.pod)


def _choice(scene: Scene) -> Iterator[tuple[str, Kernel]]:
    nodes, pod, snapshot = scene.cluster.cache.nodes, scene.pods[PLAIN], scene.snapshot
    random = Random(1)
    totals = np.array([random.randrange(400) for _ in range(len(nodes))], np.int64)
    yield "select_host", lambda: select_host(totals, random)
    memory = Memory(scene.cluster.profiles["default-scheduler"])
    for _ in range(2):
        # Answers per row are remembered from the second pod of a template on.
        remembered, _is_hinted = memory.recall(pod, snapshot)
    assert remembered is not None, "a plain pod is remembered"
    yield "masked totals", lambda: remembered.totals_where(remembered.feasible, pod)
    there = pod.on_node(nodes.names[0])

    def renew() -> None:
        nodes.add_pod(there, 0)
        memory.recall(pod, snapshot)
        nodes.remove_pod(there, 0)
        memory.recall(pod, snapshot)

    yield "a pod comes and goes, recall each time", renew

    def recall_anew() -> None:
        Memory(scene.cluster.profiles["default-scheduler"]).recall(pod, snapshot)

    yield "recall of an unknown template", recall_anew


def _decisions(scene: Scene) -> Iterator[tuple[str, Kernel]]:
    pod, snapshot = scene.pods[PLAIN], scene.snapshot
    profile = scene.cluster.profiles["default-scheduler"]
    forgetful = SchedulingCycle(profile, NodeSampler(), remembers=False)
    yield "decide, nothing changed", lambda: scene.cluster.schedule_one(pod)
    yield "decide, nothing remembered", lambda: forgetful.schedule_one(pod, snapshot)
    yield "preemption, four victims a node", _preemption(scene)


def _preemption(scene: Scene) -> Kernel:
    profile, pod, snapshot = (
        scene.cluster.profiles["default-scheduler"],
        scene.pods[LARGE],
        scene.snapshot,
    )
    cycle = CycleState()
    for plugin in profile.pre_filter_plugins:
        result = plugin.pre_filter(cycle, pod, snapshot)
        cycle.filter_states[plugin.name] = result.state
        if result.status.is_skip:
            cycle.skip_filter.add(plugin.name)
    rows = np.arange(len(snapshot.nodes))
    statuses = profile.filter_rows(cycle, pod, snapshot.nodes.take(rows))
    preemption = profile.plugins["DefaultPreemption"]
    assert isinstance(preemption, PostFilterPlugin), "it finds whom to evict"
    assert preemption.post_filter(cycle, pod, snapshot, statuses).nominated_node_name, "it can"
    return lambda: preemption.post_filter(cycle, pod, snapshot, statuses)


def measure_kernels(nodes: int, only: str = "") -> dict[str, float]:
    """Return kernel -> microseconds.

    Args:
        nodes: The size of the cluster.
        only: Run only kernels whose names contain this, ignoring case.
    """
    scene = Scene(nodes)
    plugins: dict[str, float] = {}
    for kind, costs in measure_plugins(scene, only).items():
        plugins |= dict(_whole_table(kind, costs))
    found = {
        name: time_us(kernel) for name, kernel in kernels(scene) if only.lower() in name.lower()
    }
    return found | plugins


def _whole_table(
    kind: str, costs: Mapping[str, Mapping[str, float]]
) -> Iterator[tuple[str, float]]:
    aimed_at = {name for names in AIMS.values() for name in names}
    for plugin, points in costs.items():
        if kind == PLAIN and plugin in aimed_at:
            # A pod that needs the plugin is more telling.
            continue
        for point in _POINTS:
            if point in points:
                yield f"{plugin}.{point}", points[point]


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure at one size and print the figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--nodes", type=int, required=True)
    parser.add_argument("--only", default="")
    options = parser.parse_args(arguments)
    found = measure_kernels(options.nodes, options.only)
    sys.stdout.write(msgspec.json.encode(found).decode() + "\n")


if __name__ == "__main__":
    main()
