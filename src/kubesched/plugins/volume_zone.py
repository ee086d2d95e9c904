"""VolumeZone: place pods in the zones and regions of their volumes' labels.

Upstream: pkg/scheduler/framework/plugins/volumezone (v1.36)
Reads:    pod.spec.volumes; claims, storage classes; persistentvolume.metadata.labels; nodes.labels
Rejects:  UnschedulableAndUnresolvable, because evicting a pod does not move a volume.
Differs:  nothing.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from typing import ClassVar, Final

import msgspec
import numpy as np
from numpy.typing import NDArray

from kubesched.api.core import Pod
from kubesched.api.storage import StorageClass
from kubesched.api.volume import PersistentVolume, PersistentVolumeClaim
from kubesched.api.well_known import BETA_REGION, BETA_ZONE, REGION, ZONE
from kubesched.framework.cluster_event import (
    NODE,
    PERSISTENT_VOLUME,
    PERSISTENT_VOLUME_CLAIM,
    STORAGE_CLASS,
    Action,
    ClusterEventWithHint,
    retry_on,
)
from kubesched.framework.cycle_state import CycleState
from kubesched.framework.plugin import (
    PRE_FILTER_SKIP,
    UNSIGNED,
    FilterPlugin,
    NeededKind,
    NoState,
    PreFilterPlugin,
    PreFilterResult,
    Scope,
)
from kubesched.framework.status import NodeToStatus, unresolvable
from kubesched.plugins.volumes.claims import (
    BY_CLAIM,
    WAIT_FOR_FIRST_CONSUMER,
    after_named_claim_change,
    claim_not_found,
    class_of_claim,
    no_binding_mode,
)
from kubesched.plugins.volumes.describing import describe_unbound_claims, kinds_of_claims
from kubesched.snapshot.node_table import NodeTable
from kubesched.snapshot.objects import Objects
from kubesched.snapshot.pod_info import PodInfo
from kubesched.snapshot.snapshot import Snapshot

_KEYS: Final = (BETA_ZONE, BETA_REGION, ZONE, REGION)
_CURRENT: Final = {BETA_ZONE: ZONE, BETA_REGION: REGION}
_DELIMITER: Final = "__"


class VolumeTopology(msgspec.Struct, frozen=True):
    """A label of a volume: the node must have one of the values."""

    volume_name: str
    key: str
    values: frozenset[str]


Topologies = tuple[VolumeTopology, ...]


class _PodError(Exception):
    """The pod cannot be placed anywhere; the text has the reason."""


class VolumeZone(PreFilterPlugin[Topologies], FilterPlugin[Topologies]):
    """Compare zone and region labels of bound volumes with those of nodes."""

    name: ClassVar = "VolumeZone"
    scope: ClassVar = Scope.NODE
    signs_base: ClassVar = True
    rejection: ClassVar = unresolvable("node(s) had no available volume zone")

    def events_to_register(self) -> Sequence[ClusterEventWithHint]:
        """Return changes of storage classes, claims, volumes and node labels."""
        add_update = Action.ADD | Action.UPDATE
        return (
            retry_on(STORAGE_CLASS, Action.ADD, after_storage_class_addition),
            retry_on(NODE, Action.ADD | Action.UPDATE_NODE_LABEL),
            retry_on(
                PERSISTENT_VOLUME_CLAIM, add_update, after_named_claim_change, filing=BY_CLAIM
            ),
            retry_on(PERSISTENT_VOLUME, add_update, after_volume_change),
        )

    def sign(self, pod: PodInfo) -> Hashable:
        """Return () for pods without claims; UNSIGNED with claims, as their volumes matter."""
        return UNSIGNED if pod.claim_names else ()

    def pre_filter(
        self, cycle: CycleState, pod: PodInfo, snapshot: Snapshot
    ) -> PreFilterResult[Topologies]:
        """Return the zones and regions of the pod's bound volumes."""
        if not pod.claim_names:
            return PRE_FILTER_SKIP
        found: list[VolumeTopology] = []
        try:
            for name in pod.claim_names:
                found += _topologies_of_claim(name, pod.namespace, snapshot.objects)
        except _PodError as error:
            return PreFilterResult(status=unresolvable(str(error)))
        if not found:
            return PRE_FILTER_SKIP
        return PreFilterResult(tuple(found))

    def kinds_needed(self, pod: PodInfo, snapshot: Snapshot) -> Iterable[NeededKind]:
        """Return claims and the kinds that their volumes depend on."""
        return kinds_of_claims(pod.pod, snapshot.objects)

    def describe_rejection(self, pod: PodInfo, snapshot: Snapshot) -> str:
        """Return the claims that have no volume."""
        return describe_unbound_claims(pod.pod, snapshot.objects)

    def filter_state(
        self, cycle: CycleState, pod: PodInfo, snapshot: Snapshot
    ) -> Topologies | NoState:
        """Return the state of `pre_filter`; its rejection applies to every row."""
        result = self.pre_filter(cycle, pod, snapshot)
        if result.status.is_rejected:
            return NoState(result.status)
        return result.state or ()

    def ignores(self, state: Topologies, pod: PodInfo, other: PodInfo) -> bool:
        """Return True: answers depend on volumes and nodes, not on pods."""
        return True

    def filter(self, state: Topologies, pod: PodInfo, nodes: NodeTable) -> NodeToStatus:
        """Reject rows whose zone or region is not that of the volumes."""
        has_topology = np.zeros(len(nodes), np.bool_)
        for key in _KEYS:
            has_topology |= ~nodes.label(key).equals(None)
        # A node without zone labels is taken to belong to a cluster with a single zone.
        rejected = np.zeros(len(nodes), np.bool_)
        for topology in state:
            rejected |= ~_matches(topology, nodes)
        return NodeToStatus.rejecting(has_topology & rejected, self.rejection)

    def describe(self, state: Topologies, pod: PodInfo, nodes: NodeTable) -> str:
        """Return the first label that differs."""
        for topology in state:
            if not _matches(topology, nodes)[0]:
                wanted = _DELIMITER.join(sorted(topology.values))
                found = nodes.label(topology.key)[0]
                if found is None:
                    found = nodes.label(_CURRENT.get(topology.key, topology.key))[0]
                volume = f"volume {topology.volume_name}: {topology.key}={wanted}"
                return f"{volume}, node has {'none' if found is None else found}"
        return ""


def _matches(topology: VolumeTopology, nodes: NodeTable) -> NDArray[np.bool_]:
    """Return, as bool per row, whether the label fits; if absent, its current name counts."""
    column = nodes.label(topology.key)
    fits = column.is_in(topology.values)
    current = _CURRENT.get(topology.key)
    if current is not None:
        fits = fits | (column.equals(None) & nodes.label(current).is_in(topology.values))
    return fits


def _topologies_of_claim(name: str, namespace: str, objects: Objects) -> Topologies:
    if not name:
        raise _PodError("PersistentVolumeClaim had no name")
    claim = objects.get(PersistentVolumeClaim, name, namespace)
    if claim is None:
        raise _PodError(claim_not_found(name))
    volume_name = claim.spec.volume_name
    if not volume_name:
        _check_waiting(claim, objects)
        return ()
    volume = objects.get(PersistentVolume, volume_name)
    if volume is None:
        raise _PodError(f'persistentvolume "{volume_name}" not found')
    return topologies_of(volume)


def _check_waiting(claim: PersistentVolumeClaim, objects: Objects) -> None:
    """Raise _PodError unless the claim gets a volume when the pod has a node."""
    name = class_of_claim(claim)
    if not name:
        raise _PodError("PersistentVolumeClaim had no pv name and storageClass name")
    storage_class = objects.get(StorageClass, name)
    if storage_class is None:
        raise _PodError(f'storageclass.storage.k8s.io "{name}" not found')
    if storage_class.volume_binding_mode is None:
        raise _PodError(no_binding_mode(name))
    if storage_class.volume_binding_mode != WAIT_FOR_FIRST_CONSUMER:
        raise _PodError("PersistentVolume had no name")


def topologies_of(volume: PersistentVolume) -> Topologies:
    """Return the zones and regions of a volume, without labels that have an empty part."""
    found: list[VolumeTopology] = []
    for key in _KEYS:
        text = volume.metadata.labels.get(key)
        if text is None:
            continue
        values = frozenset(part.strip() for part in text.split(_DELIMITER))
        if "" not in values:
            found.append(VolumeTopology(volume.metadata.name, key, values))
    return tuple(found)


def after_storage_class_addition(pod: Pod, old: object | None, new: object | None) -> bool:
    """Whether the class has binding mode WaitForFirstConsumer."""
    if not isinstance(new, StorageClass):
        return True
    return new.volume_binding_mode == WAIT_FOR_FIRST_CONSUMER


def after_volume_change(pod: Pod, old: object | None, new: object | None) -> bool:
    """Whether the volume is new, or its zones or regions changed."""
    if not isinstance(old, PersistentVolume) or not isinstance(new, PersistentVolume):
        return True
    return topologies_of(old) != topologies_of(new)
