"""Measures each plugin per pod and extension point, without remembered answers.

`python -m benchmarks.plugins` prints JSON: kind of pod -> plugin -> extension point -> µs.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping, Sequence
from typing import Final

import msgspec
import numpy as np

from benchmarks.scene import PLAIN, Scene
from benchmarks.timing import time_us
from kubesched.framework.cycle_state import CycleState
from kubesched.framework.plugin import (
    FilterPlugin,
    Plugin,
    PreFilterPlugin,
    PreScorePlugin,
    ScorePlugin,
)
from kubesched.snapshot.pod_info import PodInfo

NODES: Final = 5000
CLAIM_NODES_MAX: Final = 5000
POINTS: Final = ("pre_filter", "filter", "pre_score", "score", "normalize")

Costs = dict[str, dict[str, dict[str, float]]]

AIMS: Final[Mapping[str, tuple[str, ...]]] = {
    PLAIN: (),
    "node-affinity": ("NodeAffinity",),
    "host-port": ("NodePorts",),
    "spreading": ("PodTopologySpread",),
    "pod-affinity": ("InterPodAffinity",),
    "volume": ("VolumeBinding", "VolumeZone", "NodeVolumeLimits", "VolumeRestrictions"),
    "disk": ("VolumeRestrictions",),
    "claim": ("DynamicResources",),
}
"""Kind of pod -> the plugins to measure with it; empty for all."""


def measure_plugins(scene: Scene, only: str = "") -> Costs:
    """Return kind of pod -> plugin -> extension point -> microseconds.

    Args:
        scene: The cluster and the pods.
        only: Measure only plugins whose names contain this, ignoring case.
    """
    found: Costs = {}
    profile = scene.cluster.profiles["default-scheduler"]
    for kind, names in AIMS.items():
        if kind == "claim" and len(scene.snapshot.nodes) > CLAIM_NODES_MAX:
            continue
        cycle = _after_pre_filter(scene, scene.pods[kind])
        for name, plugin in profile.plugins.items():
            if (names and name not in names) or only.lower() not in name.lower():
                continue
            costs = _measure(plugin, scene, scene.pods[kind], cycle)
            if costs:
                found.setdefault(kind, {})[name] = costs
    return found


def _after_pre_filter(scene: Scene, pod: PodInfo) -> CycleState:
    cycle, snapshot = CycleState(), scene.snapshot
    for plugin in scene.cluster.profiles["default-scheduler"].pre_filter_plugins:
        result = plugin.pre_filter(cycle, pod, snapshot)
        cycle.filter_states[plugin.name] = result.state
        if result.status.is_skip:
            cycle.skip_filter.add(plugin.name)
    return cycle


def _measure(plugin: Plugin, scene: Scene, pod: PodInfo, cycle: CycleState) -> dict[str, float]:
    """Return extension point -> µs; a skipped filter or score costs nothing."""
    snapshot = scene.snapshot
    found: dict[str, float] = {}
    if isinstance(plugin, PreFilterPlugin):
        found["pre_filter"] = time_us(lambda: plugin.pre_filter(CycleState(), pod, snapshot))
    if isinstance(plugin, FilterPlugin) and plugin.name not in cycle.skip_filter:
        state = cycle.filter_states.get(plugin.name)
        found["filter"] = time_us(lambda: plugin.filter(state, pod, snapshot.nodes))
    if isinstance(plugin, ScorePlugin):
        found |= _measure_score(plugin, scene, pod, cycle)
    return found


def _measure_score(
    plugin: ScorePlugin[object], scene: Scene, pod: PodInfo, cycle: CycleState
) -> dict[str, float]:
    snapshot, found = scene.snapshot, dict[str, float]()
    nodes = snapshot.nodes
    feasible = np.ones(len(nodes), np.bool_)
    state = None
    if not isinstance(plugin, PreScorePlugin):
        state = plugin.score_state(cycle, pod, snapshot, feasible)
    else:
        result = plugin.pre_score(cycle, pod, snapshot, feasible)
        found["pre_score"] = time_us(lambda: plugin.pre_score(cycle, pod, snapshot, feasible))
        if result.status.is_skip:
            return found
        state = result.state
    found["score"] = time_us(lambda: plugin.score(state, pod, nodes))
    if plugin.normalizes:
        raw, rows = plugin.score(state, pod, nodes), np.arange(len(nodes))
        found["normalize"] = time_us(lambda: plugin.normalize_score(state, pod, raw, rows))
    return found


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure at one size and print the figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--nodes", type=int, default=NODES)
    parser.add_argument("--only", default="")
    options = parser.parse_args(arguments)
    found = measure_plugins(Scene(options.nodes), options.only)
    sys.stdout.write(msgspec.json.encode(found).decode() + "\n")


if __name__ == "__main__":
    main()
