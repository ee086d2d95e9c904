"""Clusters for simulations, and a simulation as a function."""

from __future__ import annotations

from collections.abc import Iterable
from typing import cast

from kubesched.config.feature_gates import FeatureGates
from kubesched.config.load import default_configuration
from kubesched.config.types import Configuration
from kubesched.framework.plugin import Plugin
from kubesched.framework.registry import PluginFactory
from kubesched.plugins.registry import in_tree_registry
from kubesched.simulator.cluster import Cluster
from kubesched.simulator.report import SimulationReport
from kubesched.simulator.simulation import Simulation
from kubesched.snapshot.objects import KubernetesObject

GATES = FeatureGates.parse("")


def make_cluster(
    objects: Iterable[object],
    *plugins: type[Plugin],
    configuration: Configuration | None = None,
    seed: int = 0,
) -> Cluster:
    """Return a cluster with the default profile, or another."""
    registry = in_tree_registry()
    for plugin in plugins:
        registry.register(plugin.name, PluginFactory(plugin))
    configuration = configuration or default_configuration(GATES)
    cluster = Cluster(configuration, registry, GATES, seed=seed)
    cluster.load(cast("Iterable[KubernetesObject]", objects))
    return cluster


def simulate(cluster: Cluster, *, steps: int | None = None) -> SimulationReport:
    """Run a simulation to its end, or so many steps, and check the cluster."""
    simulation = Simulation(cluster)
    partial = False
    for step, _ in enumerate(simulation.run(), 1):
        if step == steps:
            partial = True
            break
    cluster.cache.check()
    cluster.nominator.check()
    return simulation.report(partial=partial)


def placed(report: SimulationReport) -> dict[str, str]:
    """Return pod name -> node name."""
    return {found.pod.partition("/")[2]: found.node for found in report.placements}
