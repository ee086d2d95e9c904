"""The in-tree registry: the plugins of kube-scheduler 1.36, and SelectorSpread.

Upstream: pkg/scheduler/framework/plugins/registry.go (v1.36)
Differs:  has SelectorSpread, which 1.36 lacks and no default profile enables.
"""

from __future__ import annotations

from kubesched.config.feature_gates import FeatureGates
from kubesched.config.load import default_configuration
from kubesched.config.types import Configuration
from kubesched.framework.registry import Registry, SchedulerSetup
from kubesched.plugins.default_binder import DefaultBinder
from kubesched.plugins.default_preemption import DefaultPreemption
from kubesched.plugins.dynamic_resources import DynamicResources
from kubesched.plugins.gang_scheduling import GangScheduling
from kubesched.plugins.image_locality import ImageLocality
from kubesched.plugins.inter_pod_affinity import InterPodAffinity
from kubesched.plugins.node_affinity import NodeAffinity
from kubesched.plugins.node_declared_features import NodeDeclaredFeatures
from kubesched.plugins.node_name import NodeName
from kubesched.plugins.node_ports import NodePorts
from kubesched.plugins.node_resources import NodeResourcesBalancedAllocation, NodeResourcesFit
from kubesched.plugins.node_unschedulable import NodeUnschedulable
from kubesched.plugins.node_volume_limits import NodeVolumeLimits
from kubesched.plugins.pod_group_pods_count import PodGroupPodsCount
from kubesched.plugins.pod_topology_spread import PodTopologySpread
from kubesched.plugins.priority_sort import PrioritySort
from kubesched.plugins.scheduling_gates import SchedulingGates
from kubesched.plugins.selector_spread import SelectorSpread
from kubesched.plugins.taint_toleration import TaintToleration
from kubesched.plugins.topology_placement_generator import TopologyPlacementGenerator
from kubesched.plugins.volume_binding import VolumeBinding
from kubesched.plugins.volume_restrictions import VolumeRestrictions
from kubesched.plugins.volume_zone import VolumeZone


def in_tree_registry() -> Registry:
    """Return a new registry of the in-tree plugins; callers may add others."""
    return Registry(
        DefaultBinder,
        DefaultPreemption,
        DynamicResources,
        GangScheduling,
        ImageLocality,
        InterPodAffinity,
        NodeAffinity,
        NodeDeclaredFeatures,
        NodeName,
        NodePorts,
        NodeResourcesBalancedAllocation,
        NodeResourcesFit,
        NodeUnschedulable,
        NodeVolumeLimits,
        PodGroupPodsCount,
        PodTopologySpread,
        PrioritySort,
        SchedulingGates,
        SelectorSpread,
        TaintToleration,
        TopologyPlacementGenerator,
        VolumeBinding,
        VolumeRestrictions,
        VolumeZone,
    )


def in_tree_setup(
    gates: FeatureGates, configuration: Configuration | None = None
) -> SchedulerSetup:
    """Return a scheduler's setup with the in-tree plugins; None is the default configuration."""
    configuration = configuration or default_configuration(gates)
    return SchedulerSetup(configuration, in_tree_registry(), gates)
