"""The part of dynamic resource allocation that several plugins use."""

from kubesched.framework.dra.claim_tracker import AllocatedState, ClaimTracker, DeviceID
from kubesched.framework.dra.claim_writer import ClaimWriter
from kubesched.framework.dra.device_classes import (
    DeviceClasses,
    device_classes_of,
    is_dra_extended_resource_name,
    needed_classes,
    resources_without_node,
)
from kubesched.framework.dra.slices import (
    NodeSelectorError,
    check_node_selector,
    is_for_node,
    matches_node_selector,
    with_taints,
)

__all__ = [
    "AllocatedState",
    "ClaimTracker",
    "ClaimWriter",
    "DeviceClasses",
    "DeviceID",
    "NodeSelectorError",
    "check_node_selector",
    "device_classes_of",
    "is_dra_extended_resource_name",
    "is_for_node",
    "matches_node_selector",
    "needed_classes",
    "resources_without_node",
    "with_taints",
]
