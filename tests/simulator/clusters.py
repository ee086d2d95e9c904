"""Small clusters, and their simulations and rehearsals as functions."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from typing import TypeVar, cast

from kubesched.api.core import Node
from kubesched.api.meta import KubeObject
from kubesched.config.args import exhaustive
from kubesched.config.feature_gates import FeatureGates
from kubesched.config.load import default_configuration, load_configuration
from kubesched.config.types import Configuration
from kubesched.framework.plugin import Plugin
from kubesched.framework.registry import SchedulerSetup
from kubesched.plugins.registry import in_tree_registry, in_tree_setup
from kubesched.simulator import virtual_loop
from kubesched.simulator.cluster import ClusterState
from kubesched.simulator.rehearsal import Rehearsal
from kubesched.simulator.report import SimulationReport
from kubesched.simulator.simulation import Simulation, Watch
from kubesched.testing.builders import make_node

T = TypeVar("T")

GATES = FeatureGates.parse("")


def node(name: str, cpu: int | str = 4, zone: str = "") -> Node:
    """Return a node with 32Gi of memory."""
    labels = {"kubernetes.io/hostname": name}
    if zone:
        labels["topology.kubernetes.io/zone"] = zone
    return make_node(name, allocatable={"cpu": cpu, "memory": "32Gi", "pods": 110}, labels=labels)


def configuration_of(gates: FeatureGates = GATES, **fields: object) -> Configuration:
    """Return a configuration with these fields."""
    kind = {"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration"}
    return load_configuration({**kind, **fields}, gates)


def cluster_of(
    *objects: KubeObject, gates: FeatureGates = GATES, remembers: bool = False
) -> ClusterState:
    """Return a cluster of the objects, whose profile considers every node."""
    setup = in_tree_setup(gates, exhaustive(default_configuration(gates)))
    cluster = ClusterState(setup, remembers=remembers)
    cluster.load(objects)
    return cluster


def rehearse(
    steps: Callable[[Rehearsal], Awaitable[T]],
    *plugins: type[Plugin],
    gates: str = "",
    seed: int = 0,
) -> T:
    """Run steps in an empty cluster; check its scheduler and return the steps' result."""
    feature_gates = FeatureGates.parse(gates)
    registry = in_tree_registry()
    for plugin in plugins:
        registry.register(plugin.name, plugin)
    enabled = [{"name": plugin.name} for plugin in plugins]
    profile = {"plugins": {"multiPoint": {"enabled": enabled}}}
    configuration = configuration_of(feature_gates, profiles=[profile])

    async def main() -> T:
        rehearsal = Rehearsal(SchedulerSetup(configuration, registry, feature_gates), seed=seed)
        result = await steps(rehearsal)
        scheduler = rehearsal.scheduler
        scheduler.cache.check()
        scheduler.queue.check()
        return result

    return virtual_loop.run(main())


def simulate(
    objects: Iterable[object],
    *plugins: type[Plugin],
    gates: str = "",
    seed: int = 0,
    watch: Watch | None = None,
) -> SimulationReport:
    """Run a simulation to its end, or until the watch returns False."""

    async def steps(rehearsal: Rehearsal) -> SimulationReport:
        loaded = cast("Iterable[KubeObject]", objects)
        simulation = Simulation(rehearsal, loaded, seed, watch)
        await rehearsal.settle()
        return simulation.report()

    return rehearse(steps, *plugins, gates=gates, seed=seed)


def placed(report: SimulationReport) -> dict[str, str]:
    """Return pod name -> node name."""
    return {found.pod.partition("/")[2]: found.node for found in report.placements}
