"""ResourceSlices: the nodes that their selectors match, and the taints that DeviceTaintRules add.

Upstream: component-helpers/scheduling/corev1/nodeaffinity/nodeaffinity.go,
          staging/src/k8s.io/dynamic-resource-allocation/resourceslice/tracker/tracker.go (v1.36)
Reads:    node.metadata.name, node.metadata.labels; ResourceSlices, DeviceTaintRules
Differs:  DeviceTaintRules add their taints, as in 1.36.2; 1.36.0 and 1.36.1 ignore the rules, or
          panic (kubernetes#139651). The taints of several rules are in order of the rules'
          creation; upstream's order varies.
          The snapshot and queueing hints hold the slices as published.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from msgspec.structs import replace

from kubesched.api import selectors
from kubesched.api.core import Node
from kubesched.api.meta import NodeSelector
from kubesched.api.resource import (
    Device,
    DeviceTaintRule,
    DeviceTaintSelector,
    ResourceSlice,
    ResourceSliceSpec,
)

# Nodes.


class NodeSelectorError(ValueError):
    """A node selector is invalid; the text is upstream's."""


def check_node_selector(selector: NodeSelector) -> None:
    """Raise NodeSelectorError if a term is invalid."""
    errors = tuple(dict.fromkeys(selectors.node_selector_errors(selector)))
    if errors:
        raise NodeSelectorError(errors[0] if len(errors) == 1 else f"[{', '.join(errors)}]")


def matches_node_selector(selector: NodeSelector, node: Node) -> bool:
    """Whether one of the terms matches the node. Raises NodeSelectorError."""
    check_node_selector(selector)
    return selectors.matches_node_selector(selector, node.metadata.labels, node.metadata.name)


def is_for_node(where: Device | ResourceSliceSpec, node: Node) -> bool:
    """Whether the node selection of a slice or device includes the node.

    Raises NodeSelectorError.
    """
    if where.node_name:
        return node.metadata.name == where.node_name
    if where.all_nodes:
        return True
    return where.node_selector is not None and matches_node_selector(where.node_selector, node)


# Taints.

_EVERYTHING = DeviceTaintSelector()


def with_taints(
    slices: Iterable[ResourceSlice], rules: Iterable[DeviceTaintRule]
) -> Iterator[ResourceSlice]:
    """Yield the slices with the taints of all rules added to their devices."""
    rules = tuple(rules)
    for item in slices:
        concerned = [rule for rule in rules if _concerns(rule, item)]
        if concerned:
            devices = tuple(_tainted(device, concerned) for device in item.spec.devices)
            yield replace(item, spec=replace(item.spec, devices=devices))
        else:
            yield item


def _concerns(rule: DeviceTaintRule, item: ResourceSlice) -> bool:
    """Whether a rule applies to a device of the slice."""
    selector = _selector(rule)
    if selector.driver not in (None, item.spec.driver):
        return False
    if selector.pool not in (None, item.spec.pool.name):
        return False
    return any(_is_selected(device, selector) for device in item.spec.devices)


def _tainted(device: Device, rules: Sequence[DeviceTaintRule]) -> Device:
    added = tuple(rule.spec.taint for rule in rules if _is_selected(device, _selector(rule)))
    return replace(device, taints=(*device.taints, *added)) if added else device


def _selector(rule: DeviceTaintRule) -> DeviceTaintSelector:
    """Return the rule's selector; as upstream, a rule without one selects all devices."""
    return rule.spec.device_selector or _EVERYTHING


def _is_selected(device: Device, selector: DeviceTaintSelector) -> bool:
    return selector.device in (None, device.name)
