from __future__ import annotations

from kubesched.plugins.registry import in_tree_registry

IN_TREE = {
    "DefaultBinder",
    "DefaultPreemption",
    "DynamicResources",
    "GangScheduling",
    "ImageLocality",
    "InterPodAffinity",
    "NodeAffinity",
    "NodeDeclaredFeatures",
    "NodeName",
    "NodePorts",
    "NodeResourcesBalancedAllocation",
    "NodeResourcesFit",
    "NodeUnschedulable",
    "NodeVolumeLimits",
    "PodGroupPodsCount",
    "PodTopologySpread",
    "PrioritySort",
    "SchedulingGates",
    "SelectorSpread",
    "TaintToleration",
    "TopologyPlacementGenerator",
    "VolumeBinding",
    "VolumeRestrictions",
    "VolumeZone",
}


def test_every_plugin_is_there_under_its_class_name() -> None:
    """The name in the configuration is the name of the class."""
    registry = in_tree_registry()
    assert IN_TREE == set(registry)
    assert IN_TREE == {factory.plugin.__name__ for factory in registry.values()}


def test_each_registry_is_new() -> None:
    """What one owner adds or removes, another does not see."""
    first = in_tree_registry()
    first.unregister("NodeName")
    assert "NodeName" in in_tree_registry()
