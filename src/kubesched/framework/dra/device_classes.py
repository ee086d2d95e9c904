"""Device classes: which of them back extended resources.

Upstream: staging/src/k8s.io/dynamic-resource-allocation/deviceclass/extendedresourcecache;
          pkg/scheduler/util/utils.go, IsDRAExtendedResourceName (v1.36)
Reads:    DeviceClasses
Differs:  if two classes claim a resource, the result is that of a freshly started kube-scheduler,
          which reads classes in name order; in a running one it depends on earlier events.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from weakref import WeakKeyDictionary

from kubesched.api.names import is_extended_resource_name
from kubesched.api.resource import IMPLICIT_EXTENDED_RESOURCE_PREFIX, DeviceClass
from kubesched.api.times import parse_time
from kubesched.framework.needed_kinds import NeededKind
from kubesched.snapshot.objects import Objects
from kubesched.snapshot.pod_info import PodInfo
from kubesched.snapshot.snapshot import Snapshot

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
    found: dict[str, DeviceClass] = {}
    for item in classes:
        explicit = item.spec.extended_resource_name
        if explicit is not None:
            rival = found.get(explicit)
            if rival is not None and not _precedes(item, rival):
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


def _precedes(item: DeviceClass, rival: DeviceClass) -> bool:
    """Whether `item` wins the resource: the newer class wins, then the first by name."""
    if _created(item) != _created(rival):
        return _created(item) > _created(rival)
    return item.metadata.name < rival.metadata.name
