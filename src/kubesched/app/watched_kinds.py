"""Which kinds a scheduler watches follows from the plugins that its profiles run.

Upstream: pkg/scheduler/scheduler.go, eventhandlers.go, and the factories of the plugins (v1.36)
Differs:  kinds that only a plugin's own client knows are not watched.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from kubesched.api.apps import ReplicaSet, StatefulSet
from kubesched.api.core import (
    Namespace,
    Node,
    PersistentVolume,
    PersistentVolumeClaim,
    Pod,
    ReplicationController,
    Service,
)
from kubesched.api.meta import KubeStruct
from kubesched.api.policy import PodDisruptionBudget
from kubesched.api.resource import DeviceClass, DeviceTaintRule, ResourceClaim, ResourceSlice
from kubesched.api.scheduling import PodGroup
from kubesched.api.scheme import KINDS, Kind, kind_of
from kubesched.api.storage import (
    CSIDriver,
    CSINode,
    CSIStorageCapacity,
    StorageClass,
    VolumeAttachment,
)
from kubesched.config.feature_gates import FeatureGates
from kubesched.framework.plugin import Plugin

UNFINISHED_PODS: Final = "status.phase!=Succeeded,status.phase!=Failed"
"""The field selector for pods."""

_Classes = tuple[type[KubeStruct], ...]

_ALWAYS: Final[_Classes] = (Node, Namespace)
_VOLUMES: Final[_Classes] = (
    PersistentVolume,
    PersistentVolumeClaim,
    StorageClass,
    CSINode,
    CSIDriver,
    CSIStorageCapacity,
    VolumeAttachment,
)
_OWNERS: Final[_Classes] = (Service, ReplicationController, ReplicaSet, StatefulSet)
_READ_BY: Final[Mapping[str, _Classes]] = {
    "PodTopologySpread": _OWNERS,
    "SelectorSpread": _OWNERS,
    "VolumeBinding": _VOLUMES,
    "VolumeRestrictions": (PersistentVolumeClaim,),
    "VolumeZone": (PersistentVolume, PersistentVolumeClaim, StorageClass),
    "NodeVolumeLimits": _VOLUMES,
    "DefaultPreemption": (PodDisruptionBudget,),
    "DynamicResources": (ResourceClaim, ResourceSlice, DeviceClass),
    "NodeResourcesFit": (DeviceClass,),
}
_BY_RESOURCE: Final = {
    f"{kind.group}/{kind.kind}" if kind.group else kind.kind: kind
    for kind in KINDS
    if kind.plural != "events"
}


def watched_kinds(plugins: Iterable[Plugin], gates: FeatureGates) -> tuple[Kind, ...]:
    """Return the kinds to watch, pods last, so that what pods need is known before them.

    Args:
        plugins: All plugins of all profiles.
        gates: Which features are on.
    """
    found = {type_: kind_of(type_) for type_ in _ALWAYS}
    for plugin in plugins:
        found.update((type_, kind_of(type_)) for type_ in _READ_BY.get(plugin.name, ()))
        for registration in plugin.events_to_register() or ():
            kind = _BY_RESOURCE.get(registration.event.resource)
            if kind is not None and kind.type is not Pod:
                found[kind.type] = kind
    if gates.enabled("GenericWorkload"):
        found[PodGroup] = kind_of(PodGroup)
    else:
        found.pop(PodGroup, None)
    if gates.enabled("DRADeviceTaintRules"):
        found[DeviceTaintRule] = kind_of(DeviceTaintRule)
    return (*found.values(), kind_of(Pod))
