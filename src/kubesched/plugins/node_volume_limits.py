"""NodeVolumeLimits: keep the volumes on a node within the limits of its CSI drivers.

Upstream: pkg/scheduler/framework/plugins/nodevolumelimits (v1.36)
Reads:    pod.spec.volumes; nodes.pods; claims, volumes, storage classes, CSINodes, CSIDrivers,
          volume attachments
Rejects:  Unschedulable, because evicting pods frees volumes; UnschedulableAndUnresolvable if a
          claim is missing.
Invariants: a what-if table of many rows only lacks pods, so the counts of the whole table are upper
          bounds for it.
Differs:  of several missing drivers, the message names the first in order of the pod's volumes;
          upstream names any.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable, Iterator, Sequence
from typing import ClassVar, Final

import numpy as np
from numpy.typing import NDArray

from kubesched.api.core import Pod
from kubesched.api.storage import CSIDriver, CSINode, VolumeAttachment
from kubesched.framework.cluster_event import (
    CSI_NODE,
    PERSISTENT_VOLUME_CLAIM,
    POD,
    VOLUME_ATTACHMENT,
    Action,
    ClusterEventWithHint,
    retry_on,
)
from kubesched.framework.cycle_state import CycleState
from kubesched.framework.handle import Handle
from kubesched.framework.needed_kinds import NeededKind
from kubesched.framework.plugin import (
    PRE_FILTER_SKIP,
    UNSIGNED,
    FilterPlugin,
    PreFilterPlugin,
    PreFilterResult,
    Scope,
)
from kubesched.framework.status import NodeToStatus, Status, failure, unresolvable, unschedulable
from kubesched.plugins.volumes.attachable import (
    AttachableError,
    Attachables,
    add_volumes_of,
    attached_to,
    count_at_most,
    may_attach,
)
from kubesched.plugins.volumes.claims import after_claim_change
from kubesched.plugins.volumes.csi_nodes import CsiNodeColumns, CsiNodes, limits_of
from kubesched.plugins.volumes.csi_translation import plugin_of
from kubesched.plugins.volumes.describing import kinds_of_claims, kinds_of_limits
from kubesched.plugins.volumes.row_tally import RowTally
from kubesched.snapshot.node_columns import NodeColumns
from kubesched.snapshot.node_table import NodeTable
from kubesched.snapshot.objects import Objects
from kubesched.snapshot.pod_info import PodInfo
from kubesched.snapshot.snapshot import Snapshot

_FEW_ROWS: Final = 16
"""Up to this number of rows, volumes are counted pod by pod."""


class NewVolumes:
    """The volumes of the pod to place."""

    def __init__(self, pod: Pod, snapshot: Snapshot) -> None:
        self.snapshot = snapshot
        self._pod = pod
        self._found: dict[bool, Attachables | Status] = {}

    def on_nodes(self, *, has_csi_node: bool) -> Attachables | Status:
        """Return those on nodes with or without a CSINode; a status if they are not identified."""
        known = self._found.get(has_csi_node)
        if known is None:
            known, objects = Attachables(), self.snapshot.objects
            try:
                add_volumes_of(self._pod, objects, known, has_csi_node=has_csi_node, is_new=True)
            except AttachableError as error:
                known = unresolvable(str(error)) if error.is_missing else failure(str(error))
            self._found[has_csi_node] = known
        return known


def _has_attachable(pod: PodInfo) -> bool:
    return bool(pod.spec.volumes) and any(map(may_attach, pod.spec.volumes))


class NodeVolumeLimits(PreFilterPlugin[NewVolumes], FilterPlugin[NewVolumes]):
    """Count the volumes of a node's pods and attachments per driver."""

    name: ClassVar = "NodeVolumeLimits"
    scope: ClassVar = Scope.ROW
    fewer_pods_help: ClassVar = True
    signs_base: ClassVar = True
    survivors_only: ClassVar = True
    rejection: ClassVar = unschedulable("node(s) exceed max volume count")

    def __init__(self, args: object, handle: Handle) -> None:
        super().__init__(args, handle)
        self._needs_driver = handle.feature_gates.enabled("VolumeLimitScaling")
        self._csi_nodes = CsiNodes()
        self._attachments = _AttachmentsByNode()
        self._in_use_at_most = RowTally(lambda pod: count_at_most(pod.spec.volumes))

    def events_to_register(self) -> Sequence[ClusterEventWithHint]:
        """Return changes that add or raise limits, or remove volumes."""
        return (
            retry_on(CSI_NODE, Action.ADD),
            retry_on(CSI_NODE, Action.UPDATE, after_csi_node_update),
            retry_on(POD, Action.DELETE, after_pod_deletion),
            retry_on(PERSISTENT_VOLUME_CLAIM, Action.ADD, after_claim_change),
            retry_on(VOLUME_ATTACHMENT, Action.DELETE, after_attachment_deletion),
        )

    def sign(self, pod: PodInfo) -> Hashable:
        """Return () for pods without attachable volumes; otherwise UNSIGNED."""
        return UNSIGNED if _has_attachable(pod) else ()

    def pre_filter(
        self, cycle: CycleState, pod: PodInfo, snapshot: Snapshot
    ) -> PreFilterResult[NewVolumes]:
        """Skip pods without attachable volumes."""
        if not _has_attachable(pod):
            return PRE_FILTER_SKIP
        return PreFilterResult(NewVolumes(pod.pod, snapshot))

    def filter_state(self, cycle: CycleState, pod: PodInfo, snapshot: Snapshot) -> NewVolumes:
        """Return the state of `pre_filter`, also for pods that it would skip."""
        return NewVolumes(pod.pod, snapshot)

    def ignores(self, state: NewVolumes, pod: PodInfo, other: PodInfo) -> bool:
        """Return whether the other pod has no attachable volumes, or no node has a limit."""
        if not _has_attachable(other):
            return True
        snapshot = state.snapshot
        return not self._csi_nodes.of(snapshot.nodes, snapshot.objects).limited

    def filter(self, state: NewVolumes, pod: PodInfo, nodes: NodeTable) -> NodeToStatus:
        """Reject rows where a driver would exceed its limit."""
        snapshot = state.snapshot
        csi_nodes = self._csi_nodes.of(snapshot.nodes, snapshot.objects)
        rows = snapshot.rows_of(nodes)
        rejections: list[tuple[NDArray[np.bool_], Status]] = []
        for has_csi_node in csi_nodes.cases:
            volumes = state.on_nodes(has_csi_node=has_csi_node)
            if isinstance(volumes, Status):
                rejections.append((csi_nodes.exists[rows] == has_csi_node, volumes))
            elif volumes and self._needs_driver:
                where = csi_nodes.exists[rows] == has_csi_node
                for name in _required_drivers(volumes, snapshot.objects):
                    text = f"{name} CSI driver is not installed on the node"
                    missing = where & ~csi_nodes.has_driver(name)[rows]
                    rejections.append((missing, unschedulable(text)))
        new = state.on_nodes(has_csi_node=True) if csi_nodes.limited else {}
        if new and not isinstance(new, Status):
            doubtful = self._may_exceed(new, nodes, rows, snapshot, csi_nodes)
            if doubtful is not None and np.count_nonzero(doubtful):
                doubtful &= csi_nodes.has_limits[rows]
                for rejected, _ in rejections:
                    doubtful &= ~rejected
                rejections += self._exceeding(new, nodes, doubtful, snapshot.objects)
        if not rejections:
            return NodeToStatus.passing(len(nodes))
        return NodeToStatus.first_of(rejections, len(nodes))

    def kinds_needed(self, pod: PodInfo, snapshot: Snapshot) -> Iterable[NeededKind]:
        """Return claims, CSINodes and volume attachments, with what they depend on."""
        yield from kinds_of_claims(pod.pod, snapshot.objects)
        limited = self._csi_nodes.of(snapshot.nodes, snapshot.objects).limited
        yield from kinds_of_limits(pod.pod, snapshot.objects, limited)

    def describe(self, state: NewVolumes, pod: PodInfo, nodes: NodeTable) -> str:
        """Return the counts and the limit of the first driver that exceeds it."""
        new = state.on_nodes(has_csi_node=True)
        if isinstance(new, Status):
            return ""
        try:
            return self._excess(new, nodes, 0, state.snapshot.objects)
        except AttachableError:
            return ""

    def _may_exceed(
        self,
        new: Attachables,
        nodes: NodeTable,
        rows: NDArray[np.intp] | slice,
        snapshot: Snapshot,
        csi_nodes: CsiNodeColumns,
    ) -> NDArray[np.bool_] | None:
        """Return the rows where an exact count may exceed a limit, or fail; None if no row.

        An exact count reads all pods of a row. Most rows are far from their limits, so volumes of
        pods and attachments are counted at most first. `rows` are those of `nodes` in the whole
        table.
        """
        if len(nodes) <= _FEW_ROWS:
            return np.ones(len(nodes), np.bool_)
        counts: dict[str, int] = {}
        for driver in new.values():
            counts[driver] = counts.get(driver, 0) + 1
        of_pods = self._in_use_at_most.of(snapshot.nodes)
        attached = self._attachments.counts(snapshot.nodes, snapshot.objects)
        most = self._in_use_at_most.most + self._attachments.most
        if all(most + count <= csi_nodes.least_limit(name) for name, count in counts.items()):
            doubtful = None
        else:
            in_use = of_pods[rows] + attached[rows]
            doubtful = np.zeros(len(nodes), np.bool_)
            for name, count in counts.items():
                doubtful |= in_use + count > csi_nodes.limit(name)[rows]
        if nodes is snapshot.nodes:
            return doubtful
        has_more_pods = nodes.pod_counts > snapshot.nodes.pod_counts[rows]
        return has_more_pods if doubtful is None else doubtful | has_more_pods

    def _exceeding(
        self, new: Attachables, nodes: NodeTable, doubtful: NDArray[np.bool_], objects: Objects
    ) -> Iterator[tuple[NDArray[np.bool_], Status]]:
        """Count the volumes of doubtful rows; yield each rejection and the rows that it is for."""
        rows_with: dict[Status, list[int]] = {}
        for row in np.flatnonzero(doubtful).tolist():
            try:
                if self._excess(new, nodes, row, objects):
                    rows_with.setdefault(self.rejection, []).append(row)
            except AttachableError as error:
                rows_with.setdefault(failure(str(error)), []).append(row)
        for status, rows in rows_with.items():
            rejected = np.zeros(len(nodes), np.bool_)
            rejected[rows] = True
            yield rejected, status

    def _excess(self, new: Attachables, nodes: NodeTable, row: int, objects: Objects) -> str:
        """Return which driver exceeds its limit on a row, and by how many volumes; "" if none."""
        in_use, left = self._in_use(new, nodes, row, objects)
        limits = limits_of(objects.get(CSINode, nodes.names[row]))
        for driver, count in Counter(left.values()).items():
            if driver in limits and in_use[driver] + count > limits[driver]:
                return f"{driver}: {count} new volumes, {in_use[driver]} of {limits[driver]} in use"
        return ""

    def _in_use(
        self, new: Attachables, nodes: NodeTable, row: int, objects: Objects
    ) -> tuple[Counter[str], Attachables]:
        """Return the volumes in use per driver, and the new volumes that no pod on the node uses.

        As upstream, a new volume that is attached but not used by a pod counts twice.
        """
        used: Attachables = {}
        for other in nodes.pods[row].values():
            if other.pod.spec.volumes:
                add_volumes_of(other.pod, objects, used, has_csi_node=True, is_new=False)
        in_use = Counter(used.values())
        attached = attached_to(self._attachments.on(nodes.names[row], objects), objects)
        in_use.update(driver for name, driver in attached.items() if name not in used)
        return in_use, {name: driver for name, driver in new.items() if name not in used}


class _AttachmentsByNode:
    """The volume attachments of each node, cached until one changes.

    Attributes:
        most: The largest number of attachments of a node, when they were last read.
    """

    def __init__(self) -> None:
        self.most = 0
        self._objects: Objects | None = None
        self._version = -1
        self._by_node: dict[str, list[VolumeAttachment]] = {}
        self._counted: tuple[NodeColumns, int] | None = None
        self._counts = np.zeros(0, np.int64)

    def on(self, node_name: str, objects: Objects) -> Sequence[VolumeAttachment]:
        """Return the attachments of a node in order of arrival."""
        self._refresh(objects)
        return self._by_node.get(node_name, ())

    def counts(self, table: NodeColumns, objects: Objects) -> NDArray[np.int64]:
        """Return the number of attachments per row of the table, as int64."""
        self._refresh(objects)
        counted = self._counted
        if counted is None or counted[0] is not table or counted[1] != table.epoch:
            self._counted = (table, table.epoch)
            self._counts = np.zeros(len(table), np.int64)
            for name, attachments in self._by_node.items():
                row = table.row_of.get(name)
                if row is not None:
                    self._counts[row] = len(attachments)
        return self._counts

    def _refresh(self, objects: Objects) -> None:
        version = objects.version(VolumeAttachment)
        if objects is self._objects and version == self._version:
            return
        self._objects, self._version, self._counted = objects, version, None
        self._by_node = {}
        for attachment in objects.list(VolumeAttachment):
            self._by_node.setdefault(attachment.spec.node_name, []).append(attachment)
        self.most = max(map(len, self._by_node.values()), default=0)


def _required_drivers(volumes: Attachables, objects: Objects) -> Iterator[str]:
    """Yield the drivers whose CSIDriver prevents scheduling where they are missing."""
    for name in dict.fromkeys(volumes.values()):
        driver = objects.get(CSIDriver, name)
        if driver is not None and driver.spec.prevent_pod_scheduling_if_missing:
            yield name


def after_csi_node_update(pod: Pod, old: object | None, new: object | None) -> bool:
    """Whether the limit of a driver increased; a missing limit counts as 0."""
    if not isinstance(old, CSINode) or not isinstance(new, CSINode):
        return True
    before = limits_of(old)
    return any(limit > before.get(driver, 0) for driver, limit in limits_of(new).items())


def after_pod_deletion(pod: Pod, old: object | None, new: object | None) -> bool:
    """Whether the deleted pod had a node or a nomination, and perhaps attached volumes."""
    if not isinstance(old, Pod):
        return True
    has_node = old.spec.node_name != "" or old.status.nominated_node_name != ""
    return has_node and any(map(may_attach, old.spec.volumes))


def after_attachment_deletion(pod: Pod, old: object | None, new: object | None) -> bool:
    """Whether the pod has a claim, or an in-tree volume of the attachment's driver."""
    if not isinstance(old, VolumeAttachment):
        return True
    for volume in pod.spec.volumes:
        if volume.persistent_volume_claim is not None:
            return True
        plugin = plugin_of(volume)
        if plugin is not None and plugin.driver == old.spec.attacher:
            return True
    return False
