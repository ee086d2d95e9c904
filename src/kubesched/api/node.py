"""Node: a machine with its resources and taints; and selectors of nodes.

Upstream: staging/src/k8s.io/api/core/v1/types.go, Node, NodeSelector (v1.36)
Differs:  nodeInfo, daemon endpoints and configuration sources are not read.
"""

from __future__ import annotations

from msgspec import field

from kubesched.api.integers import Int32, Int64
from kubesched.api.meta import KubeObject, KubeStruct, LabelSelectorRequirement
from kubesched.api.quantity import Quantity


class Taint(KubeStruct):
    """Repels pods that do not tolerate it. Hashable."""

    key: str = ""
    value: str = ""
    effect: str = ""
    time_added: str | None = None


class NodeSpec(KubeStruct):
    """The desired state of a node."""

    pod_cidr: str = field(default="", name="podCIDR")
    provider_id: str = field(default="", name="providerID")
    unschedulable: bool = False
    taints: tuple[Taint, ...] = ()


class NodeCondition(KubeStruct):
    """One observation of a node's state."""

    type: str = ""
    status: str = ""
    last_heartbeat_time: str | None = None
    last_transition_time: str | None = None
    reason: str = ""
    message: str = ""


class NodeAddress(KubeStruct):
    """A host name or IP address of a node."""

    type: str = ""
    address: str = ""


class ContainerImage(KubeStruct):
    """An image on the node, with all its names."""

    names: tuple[str, ...] = ()
    size_bytes: Int64 = 0


class AttachedVolume(KubeStruct):
    """A volume attached to the node."""

    name: str = ""
    device_path: str = ""


class NodeStatus(KubeStruct):
    """The observed state of a node."""

    capacity: dict[str, Quantity] = {}
    allocatable: dict[str, Quantity] = {}
    phase: str = ""
    conditions: tuple[NodeCondition, ...] = ()
    addresses: tuple[NodeAddress, ...] = ()
    images: tuple[ContainerImage, ...] = ()
    volumes_in_use: tuple[str, ...] = ()
    volumes_attached: tuple[AttachedVolume, ...] = ()
    declared_features: tuple[str, ...] = ()


class Node(KubeObject):
    """A machine."""

    spec: NodeSpec = NodeSpec()
    status: NodeStatus = NodeStatus()


# Selectors of nodes.


class NodeSelectorRequirement(LabelSelectorRequirement):
    """One expression on a node: In, NotIn, Exists, DoesNotExist, Gt or Lt."""


class NodeSelectorTerm(KubeStruct):
    """Expressions that must all match; a term without any matches no node."""

    match_expressions: tuple[NodeSelectorRequirement, ...] = ()
    match_fields: tuple[NodeSelectorRequirement, ...] = ()


class NodeSelector(KubeStruct):
    """Terms of which one must match."""

    node_selector_terms: tuple[NodeSelectorTerm, ...] = ()


class PreferredSchedulingTerm(KubeStruct):
    """A preferred term with its weight, 1 to 100."""

    weight: Int32 = 0
    preference: NodeSelectorTerm = NodeSelectorTerm()


class TopologySelectorLabelRequirement(KubeStruct):
    """A node label that must have one of the values."""

    key: str = ""
    values: tuple[str, ...] = ()


class TopologySelectorTerm(KubeStruct):
    """Node labels of a storage topology, which must all match."""

    match_label_expressions: tuple[TopologySelectorLabelRequirement, ...] = ()
