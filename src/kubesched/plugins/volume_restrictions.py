"""VolumeRestrictions: separate pods that must not share a disk or a claim.

Upstream: pkg/scheduler/framework/plugins/volumerestrictions (v1.36)
Reads:    pod.spec.volumes; access modes of claims; nodes.pods
Rejects:  Unschedulable, because evicting the pod that uses the disk or claim frees it.
Differs:  nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from operator import attrgetter
from typing import ClassVar, Final

import numpy as np

from kubesched.api.core import Pod
from kubesched.api.volume import PersistentVolumeClaim, Volume
from kubesched.framework.cluster_event import (
    NODE,
    PERSISTENT_VOLUME_CLAIM,
    POD,
    Action,
    ClusterEventWithHint,
    retry_on,
)
from kubesched.framework.cycle_state import CycleState
from kubesched.framework.handle import Handle
from kubesched.framework.plugin import (
    PRE_FILTER_SKIP,
    UNSIGNED,
    FilterPlugin,
    NeededKind,
    NoState,
    PreFilterExtensions,
    PreFilterResult,
    Scope,
)
from kubesched.framework.status import (
    SUCCESS,
    NodeToStatus,
    Status,
    failure,
    unresolvable,
    unschedulable,
)
from kubesched.plugins.volumes.claims import (
    BY_CLAIM,
    after_named_claim_change,
    claim_not_found,
    named_claims,
)
from kubesched.plugins.volumes.describing import kinds_of_pod
from kubesched.snapshot.changes import RowVersions
from kubesched.snapshot.node_columns import NodeColumns
from kubesched.snapshot.node_table import NodeTable
from kubesched.snapshot.pod_info import PodInfo
from kubesched.snapshot.snapshot import Snapshot

_READ_WRITE_ONCE_POD: Final = "ReadWriteOncePod"
_EBS: Final = "aws_elastic_block_store"
_RBD: Final = "rbd"
# The field of a volume with a disk -> the disk's name.
_DISKS: Final[Mapping[str, Callable[..., Hashable]]] = {
    "gce_persistent_disk": attrgetter("pd_name"),
    _EBS: attrgetter("volume_id"),
    "iscsi": attrgetter("iqn"),
    _RBD: attrgetter("pool", "image"),
}
_disks_in: Final = attrgetter(*_DISKS)
_NO_DISKS: Final = (None,) * len(_DISKS)

DiskName = tuple[str, Hashable]
"""A field of volumes, and the name of a disk of that kind."""


@dataclass(slots=True, eq=False)
class ClaimConflicts:
    """The pod's exclusive claims, and how often other pods use them.

    Attributes:
        claim_names: The pod's claims with access mode ReadWriteOncePod.
        count: How often pods on nodes use them.
        disks: The pod's in-tree disks.
        error: Why the uses could not be counted, or "".
    """

    claim_names: frozenset[str]
    count: int
    disks: tuple[Volume, ...]
    error: str = ""

    def clone(self) -> ClaimConflicts:
        """Return a copy that can be changed independently."""
        return replace(self)

    def uses_by(self, pod: PodInfo) -> int:
        """Return the number of uses by a pod; as upstream, in any namespace."""
        return sum(name in self.claim_names for name in pod.claim_names)


class VolumeRestrictions(PreFilterExtensions[ClaimConflicts], FilterPlugin[ClaimConflicts]):
    """Allow one pod per disk on a node, and one pod per ReadWriteOncePod claim in the cluster."""

    name: ClassVar = "VolumeRestrictions"
    scope: ClassVar = Scope.ROW
    fewer_pods_help: ClassVar = True
    signs_base: ClassVar = True
    disk_conflict: ClassVar = unschedulable("node(s) had no available disk")
    claim_conflict: ClassVar = unschedulable(
        "node(s) unavailable due to PersistentVolumeClaim with ReadWriteOncePod access mode "
        "already in-use by another pod"
    )
    no_filter_state: ClassVar = 'cannot read "PreFilterVolumeRestrictions" from cycleState'

    def __init__(self, args: object, handle: Handle) -> None:
        super().__init__(args, handle)
        self._versions = RowVersions()
        self._names_on: dict[int, set[DiskName]] = {}
        self._rows_with: dict[DiskName, set[int]] = {}

    def events_to_register(self) -> Sequence[ClusterEventWithHint]:
        """Return pod deletions, and additions of nodes and claims."""
        return (
            retry_on(POD, Action.DELETE, after_pod_deletion),
            retry_on(NODE, Action.ADD),
            retry_on(
                PERSISTENT_VOLUME_CLAIM, Action.ADD, after_named_claim_change, filing=BY_CLAIM
            ),
        )

    def sign(self, pod: PodInfo) -> Hashable:
        """Return the disks; UNSIGNED with claims, whose use changes with every pod."""
        if pod.claim_names:
            return UNSIGNED
        return _disks_of(pod.spec.volumes)

    def pre_filter(
        self, cycle: CycleState, pod: PodInfo, snapshot: Snapshot
    ) -> PreFilterResult[ClaimConflicts]:
        """Count the uses of the pod's exclusive claims."""
        disks = _disks_of(pod.spec.volumes)
        exclusive: dict[str, None] = {}
        for name in pod.claim_names:
            claim = snapshot.objects.get(PersistentVolumeClaim, name, pod.namespace)
            if claim is None:
                return PreFilterResult(status=unresolvable(claim_not_found(name)))
            if _READ_WRITE_ONCE_POD in claim.spec.access_modes:
                exclusive[name] = None
        count = sum(snapshot.nodes.claim_users(pod.namespace, name) > 0 for name in exclusive)
        if not disks and count == 0:
            return PRE_FILTER_SKIP
        return PreFilterResult(ClaimConflicts(frozenset(exclusive), count, disks))

    def add_pod(
        self, state: ClaimConflicts, pod: PodInfo, added: PodInfo, nodes: NodeTable
    ) -> Status:
        """Add the uses by `added`."""
        state.count += state.uses_by(added)
        return SUCCESS

    def remove_pod(
        self, state: ClaimConflicts, pod: PodInfo, removed: PodInfo, nodes: NodeTable
    ) -> Status:
        """Subtract the uses by `removed`."""
        state.count -= state.uses_by(removed)
        return SUCCESS

    def filter_state(
        self, cycle: CycleState, pod: PodInfo, snapshot: Snapshot
    ) -> ClaimConflicts | NoState:
        """Return a state with the pod's disks, which fails on rows where no disk conflicts."""
        disks = _disks_of(pod.spec.volumes)
        if not disks:
            return NoState(failure(self.no_filter_state))
        return ClaimConflicts(frozenset(), 0, disks, self.no_filter_state)

    def filter(self, state: ClaimConflicts, pod: PodInfo, nodes: NodeTable) -> NodeToStatus:
        """Reject rows where a disk is in use; all rows if a claim is."""
        rejected = np.zeros(len(nodes), np.bool_)
        if state.disks:
            for row in self._rows_to_look_at(state.disks, nodes):
                rejected[row] = _is_taken(state.disks, nodes.pods[row].values())
        if state.error or state.count > 0:
            index = np.where(rejected, 1, 2).astype(np.int32)
            others = failure(state.error) if state.error else self.claim_conflict
            return NodeToStatus(index, (SUCCESS, self.disk_conflict, others))
        return NodeToStatus.rejecting(rejected, self.disk_conflict)

    def kinds_needed(self, pod: PodInfo, snapshot: Snapshot) -> Iterable[NeededKind]:
        """Return claims, which may have access mode ReadWriteOncePod."""
        return kinds_of_pod(pod.pod)

    def describe(self, state: ClaimConflicts, pod: PodInfo, nodes: NodeTable) -> str:
        """Return the pod that uses the disk, or the claims in use."""
        for other in nodes.pods[0].values():
            if _is_taken(state.disks, (other,)):
                return f"disk in use by pod {other.key}"
        if state.count > 0:
            return f"claims for one pod: {', '.join(sorted(state.claim_names))}"
        return ""

    def _rows_to_look_at(self, disks: Iterable[Volume], nodes: NodeTable) -> Iterable[int]:
        """Return the rows on which a pod may have one of the disks."""
        if not isinstance(nodes, NodeColumns):
            return range(len(nodes))
        for row in self._versions.changed(nodes):
            for name in self._names_on.pop(row, ()):
                self._rows_with[name].discard(row)
                if not self._rows_with[name]:
                    del self._rows_with[name]
            volumes = [disk for pod in nodes.pods[row].values() for disk in pod.spec.volumes]
            names = _names_of(_disks_of(volumes))
            if names:
                self._names_on[row] = names
            for name in names:
                self._rows_with.setdefault(name, set()).add(row)
        found = [row for name in _names_of(disks) for row in self._rows_with.get(name, ())]
        return [row for row in found if row < len(nodes)]


def _names_of(disks: Iterable[Volume]) -> set[DiskName]:
    """Return the names of disks; two disks conflict only if their names are equal."""
    return {
        (field, name_of(source))
        for disk in disks
        for field, name_of in _DISKS.items()
        if (source := getattr(disk, field)) is not None
    }


def _disks_of(volumes: Sequence[Volume]) -> tuple[Volume, ...]:
    """Return the volumes of kinds that pods may not always share."""
    if not volumes:
        return ()
    return tuple([volume for volume in volumes if _disks_in(volume) != _NO_DISKS])


def _is_taken(disks: tuple[Volume, ...], pods: Iterable[PodInfo]) -> bool:
    return any(
        conflicts(disk, other) for pod in pods for other in pod.spec.volumes for disk in disks
    )


def conflicts(mine: Volume, theirs: Volume) -> bool:
    """Whether two pods with these volumes must not run on the same node."""
    for field, name_of in _DISKS.items():
        a, b = getattr(mine, field), getattr(theirs, field)
        if a is None or b is None or name_of(a) != name_of(b):
            continue
        if field != _RBD or not {*a.monitors}.isdisjoint(b.monitors):
            # Pods may share a disk that all of them only read, but no EBS disk.
            return field == _EBS or not (a.read_only and b.read_only)
    return False


def after_pod_deletion(pod: Pod, old: object | None, new: object | None) -> bool:
    """Whether the deleted pod had a disk or a claim of the pod."""
    if not isinstance(old, Pod):
        return True
    if old.metadata.namespace != pod.metadata.namespace:
        return False
    disks = _disks_of(pod.spec.volumes)
    if any(conflicts(disk, other) for disk in disks for other in old.spec.volumes):
        return True
    return not set(named_claims(pod)).isdisjoint(named_claims(old))
