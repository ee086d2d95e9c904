"""What several parts of the scheduler read of DeviceClasses and ResourceSlices.

Upstream: staging/src/k8s.io/dynamic-resource-allocation/{deviceclass/extendedresourcecache,
          resourceslice/tracker/tracker.go}; pkg/scheduler/util/utils.go, IsDRAExtendedResourceName;
          component-helpers/scheduling/corev1/nodeaffinity/nodeaffinity.go (v1.36)
Reads:    DeviceClasses, ResourceSlices, DeviceTaintRules; node.metadata.name, node.metadata.labels
Differs:  if two classes claim a resource, the result is that of a freshly started kube-scheduler,
          which reads classes in name order; in a running one it depends on earlier events.
          DeviceTaintRules add their taints, as in 1.36.2; 1.36.0 and 1.36.1 ignore the rules, or
          panic (kubernetes#139651). The taints of several rules are in order of the rules'
          creation; upstream's order varies.
          The snapshot and queueing hints hold the slices as published.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from weakref import WeakKeyDictionary

from msgspec.structs import replace

from kubesched.api import selectors
from kubesched.api.core import Node
from kubesched.api.meta import NodeSelector
from kubesched.api.names import is_extended_resource_name
from kubesched.api.resource import (
    IMPLICIT_EXTENDED_RESOURCE_PREFIX,
    Device,
    DeviceClass,
    DeviceTaintRule,
    DeviceTaintSelector,
    ResourceSlice,
    ResourceSliceSpec,
)
from kubesched.api.times import parse_time
from kubesched.framework.plugin import NeededKind
from kubesched.snapshot.objects import ObjectName, Objects
from kubesched.snapshot.pod_info import PodInfo
from kubesched.snapshot.snapshot import Snapshot

# Classes.

# Go's zero time in nanoseconds, which does not fit 64 bits.
_ZERO_TIME = -6_795_364_578_871_345_152


def is_dra_extended_resource_name(name: str) -> bool:
    """Whether devices can back a resource of this name."""
    return is_extended_resource_name(name) or name.startswith(IMPLICIT_EXTENDED_RESOURCE_PREFIX)


def resources_without_node(pod: PodInfo, snapshot: Snapshot) -> list[str]:
    """Return the requested resources that devices could back and that no node offers."""
    return [
        name
        for name, amount in pod.template.requests.items()
        if amount
        and is_dra_extended_resource_name(name)
        and not snapshot.nodes.allocatable_of(name).any()
    ]


def needed_classes(pod: PodInfo, snapshot: Snapshot) -> NeededKind | None:
    """Return DeviceClass if no node offers a requested resource that devices could back."""
    lacking = resources_without_node(pod, snapshot)
    if not lacking:
        return None
    why = f"no node offers {' and '.join(lacking)}, and they say whether devices do"
    return NeededKind(DeviceClass, why)


class DeviceClasses:
    """Device classes by name and by the extended resource they back.

    Attributes:
        by_name: Name -> class.
        by_resource: Extended resource -> the class that backs it.
    """

    def __init__(self, classes: Iterable[DeviceClass]) -> None:
        ordered = sorted(classes, key=lambda item: item.metadata.name)
        self.by_name: Mapping[str, DeviceClass] = {item.metadata.name: item for item in ordered}
        self.by_resource: Mapping[str, DeviceClass] = _by_resource(ordered)

    def backs(self, resource: str) -> bool:
        """Whether a class backs the resource."""
        return resource in self.by_resource


def _by_resource(classes: Iterable[DeviceClass]) -> dict[str, DeviceClass]:
    """Return the class that gets each resource: the newest, of equally old ones the first."""
    found: dict[str, DeviceClass] = {}
    for item in classes:
        explicit = item.spec.extended_resource_name
        if explicit is not None:
            rival = found.get(explicit)
            if rival is not None and _created(item) <= _created(rival):
                # As upstream, this class does not get its implicit resource name either.
                continue
            found[explicit] = item
        found[IMPLICIT_EXTENDED_RESOURCE_PREFIX + item.metadata.name] = item
    return found


def device_classes_of(objects: Objects) -> DeviceClasses:
    """Return the cluster's device classes; cached until one of them changes."""
    version = objects.version(DeviceClass)
    known = _remembered.get(objects)
    if known is None or known[0] != version:
        known = _remembered[objects] = (version, DeviceClasses(objects.list(DeviceClass)))
    return known[1]


_remembered: WeakKeyDictionary[Objects, tuple[int, DeviceClasses]] = WeakKeyDictionary()


def _created(item: DeviceClass) -> int:
    timestamp = item.metadata.creation_timestamp
    return parse_time(timestamp) if timestamp else _ZERO_TIME


# The nodes of slices.


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


# The taints that rules add.

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


def slices_with_taints(
    objects: Objects, names: Iterable[ObjectName], rules: Iterable[DeviceTaintRule]
) -> dict[str, ResourceSlice | None]:
    """Return what `with_taints` yields for slices, by name; None for those that are gone."""
    found = {name: objects.get(ResourceSlice, name) for _, name in names}
    existing = (item for item in found.values() if item is not None)
    return found | {item.metadata.name: item for item in with_taints(existing, rules)}


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
