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
from collections.abc import Hashable, Iterable, Sequence
from functools import cached_property
from typing import ClassVar, Final

import numpy as np
from numpy.typing import NDArray

from kubesched.api.core import PersistentVolumeClaim, Pod
from kubesched.api.storage import CSIDriver, CSINode, VolumeAttachment
from kubesched.framework.cluster_event import (
    CSI_NODE,
    PERSISTENT_VOLUME_CLAIM,
    POD,
    VOLUME_ATTACHMENT,
    Action,
    ClusterEvent,
    ClusterEventWithHint,
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
from kubesched.framework.status import (
    SUCCESS,
    NodeToStatus,
    Status,
    failure,
    unresolvable,
    unschedulable,
)
from kubesched.plugins.volumes.attachable import (
    UNCERTAIN,
    AttachableError,
    Attachables,
    add_volumes_of,
    attached_to,
    count_at_most,
    may_attach,
)
from kubesched.plugins.volumes.claims import uses_claim
from kubesched.plugins.volumes.csi_nodes import NO_LIMIT, CsiNodeColumns, CsiNodes, limits_of
from kubesched.plugins.volumes.csi_translation import (
    TranslationError,
    plugin_of_inline_volume,
    translate_inline_volume,
)
from kubesched.plugins.volumes.needed import kinds_of_claims, kinds_of_limits
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

    @cached_property
    def with_csi_node(self) -> Attachables | Status:
        """The volumes on nodes with a CSINode; a status if they cannot be identified."""
        return _volumes_of(self._pod, self.snapshot.objects, has_csi_node=True)

    @cached_property
    def without(self) -> Attachables | Status:
        """The volumes on nodes without a CSINode; a status if they cannot be identified."""
        return _volumes_of(self._pod, self.snapshot.objects, has_csi_node=False)


class NodeVolumeLimits(PreFilterPlugin[NewVolumes], FilterPlugin[NewVolumes]):
    """Count the volumes of a node's pods and attachments per driver."""

    name: ClassVar = "NodeVolumeLimits"
    scope: ClassVar = Scope.ROW
    signs_base: ClassVar = True
    survivors_only: ClassVar = True
    rejection: ClassVar = unschedulable("node(s) exceed max volume count")

    def __init__(self, args: object, handle: Handle) -> None:
        super().__init__(args, handle)
        self._needs_driver = handle.feature_gates.enabled("VolumeLimitScaling")
        self._csi_nodes = CsiNodes()
        self._attachments = _AttachmentsByNode()
        self._room = _Room(self._attachments)

    def events_to_register(self) -> Sequence[ClusterEventWithHint]:
        """Return changes that add or raise limits, or remove volumes."""
        return (
            ClusterEventWithHint(ClusterEvent(CSI_NODE, Action.ADD)),
            ClusterEventWithHint(ClusterEvent(CSI_NODE, Action.UPDATE), after_csi_node_update),
            ClusterEventWithHint(ClusterEvent(POD, Action.DELETE), after_pod_deletion),
            ClusterEventWithHint(
                ClusterEvent(PERSISTENT_VOLUME_CLAIM, Action.ADD), after_claim_addition
            ),
            ClusterEventWithHint(
                ClusterEvent(VOLUME_ATTACHMENT, Action.DELETE), after_attachment_deletion
            ),
        )

    def sign(self, pod: PodInfo) -> Hashable:
        """Return () for pods without attachable volumes; otherwise UNSIGNED."""
        return UNSIGNED if any(map(may_attach, pod.spec.volumes)) else ()

    def pre_filter(
        self, cycle: CycleState, pod: PodInfo, snapshot: Snapshot
    ) -> PreFilterResult[NewVolumes]:
        """Skip pods without attachable volumes."""
        volumes = pod.spec.volumes
        if not volumes or not any(map(may_attach, volumes)):
            return PRE_FILTER_SKIP
        return PreFilterResult(NewVolumes(pod.pod, snapshot))

    def filter_state(self, cycle: CycleState, pod: PodInfo, snapshot: Snapshot) -> NewVolumes:
        """Return the state of `pre_filter`, also for pods that it would skip."""
        return NewVolumes(pod.pod, snapshot)

    def filter(self, state: NewVolumes, pod: PodInfo, nodes: NodeTable) -> NodeToStatus:
        """Reject rows where a driver would exceed its limit."""
        filtered = _FilteredRows(nodes, state.snapshot, self._csi_nodes)
        csi_nodes, answers = filtered.csi_nodes, _Answers(len(nodes))
        for has_csi_node in csi_nodes.cases:
            volumes = state.with_csi_node if has_csi_node else state.without
            if isinstance(volumes, Status):
                answers.give(filtered.has_csi_node == has_csi_node, volumes)
            elif volumes and self._needs_driver:
                where = filtered.has_csi_node == has_csi_node
                _check_drivers(volumes, where, filtered, answers)
        new = state.with_csi_node if csi_nodes.has_any_limit else {}
        if isinstance(new, Status) or not new:
            return answers.statuses()
        doubtful = self._may_exceed(new, filtered)
        if doubtful is not None and np.count_nonzero(doubtful):
            doubtful &= answers.without() & filtered.csi_nodes.has_limits[filtered.rows]
            for row in np.flatnonzero(doubtful).tolist():
                status = self._count(new, nodes, row, filtered.objects)
                if status is not SUCCESS:
                    answers.give_one(row, status)
        return answers.statuses()

    def kinds_needed(self, pod: PodInfo, snapshot: Snapshot) -> Iterable[NeededKind]:
        """Return claims, CSINodes and volume attachments, with what they depend on."""
        yield from kinds_of_claims(pod.pod, snapshot.objects)
        yield from kinds_of_limits(pod.pod, snapshot.objects)

    def describe(self, state: NewVolumes, pod: PodInfo, nodes: NodeTable) -> str:
        """Return the counts and the limit of the first driver that exceeds it."""
        objects, new = state.snapshot.objects, state.with_csi_node
        if isinstance(new, Status):
            return ""
        try:
            in_use, left = self._in_use(new, nodes, 0, objects)
        except AttachableError:
            return ""
        limits = limits_of(objects.get(CSINode, nodes.names[0]))
        for driver, count in Counter(left.values()).items():
            if driver in limits and in_use[driver] + count > limits[driver]:
                return f"{driver}: {count} new volumes, {in_use[driver]} of {limits[driver]} in use"
        return ""

    def _may_exceed(self, new: Attachables, filtered: _FilteredRows) -> NDArray[np.bool_] | None:
        """Return the rows where an exact count may exceed a limit, or fail; None if no row.

        An exact count reads all pods of a row. Most rows are far from their limits, so an upper
        bound for the number of volumes comes first.
        """
        nodes, table, rows = filtered.nodes, filtered.table, filtered.rows
        if len(nodes) <= _FEW_ROWS:
            return np.ones(len(nodes), np.bool_)
        counts = Counter(new.values())
        is_whole = nodes is table
        if is_whole and all(self._room.has(*item, filtered) for item in counts.items()):
            return None
        doubtful = np.zeros(len(nodes), np.bool_)
        for driver, count in counts.items():
            doubtful |= self._room.of(driver, filtered)[rows] < count
        if not is_whole:
            doubtful |= nodes.pod_counts > table.pod_counts[rows]
        return doubtful

    def _count(self, new: Attachables, nodes: NodeTable, row: int, objects: Objects) -> Status:
        """Count the volumes of one row that has limits."""
        try:
            in_use, left = self._in_use(new, nodes, row, objects)
        except AttachableError as error:
            return failure(str(error))
        limits = limits_of(objects.get(CSINode, nodes.names[row]))
        for driver, count in Counter(left.values()).items():
            if driver in limits and in_use[driver] + count > limits[driver]:
                return self.rejection
        return SUCCESS

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


class _FilteredRows:
    """The rows to filter, and their CSINodes.

    Attributes:
        nodes: The table of these rows.
        table: The whole table.
        rows: The rows in `table` of the rows of `nodes`.
        objects: The cluster's objects.
        csi_nodes: The CSINodes of the whole table.
    """

    def __init__(self, nodes: NodeTable, snapshot: Snapshot, csi_nodes: CsiNodes) -> None:
        self.nodes = nodes
        self.table = snapshot.nodes
        self.rows = snapshot.rows_of(nodes)
        self.objects = snapshot.objects
        self.csi_nodes = csi_nodes.of(snapshot.nodes, snapshot.objects)

    @property
    def has_csi_node(self) -> NDArray[np.bool_]:
        """Bool per row of `nodes`."""
        rows: NDArray[np.bool_] = self.csi_nodes.exists[self.rows]
        return rows


class _Answers:
    """Collects one status per row; the first status of a row is kept."""

    def __init__(self, rows: int) -> None:
        self._rows = rows
        self._statuses = [SUCCESS]
        self._positions = {SUCCESS: 0}

    @cached_property
    def _index(self) -> NDArray[np.int32]:
        # For most pods no row has a status.
        return np.zeros(self._rows, np.int32)

    def without(self) -> NDArray[np.bool_]:
        """Return, as bool per row, whether it has no status yet."""
        rows: NDArray[np.bool_] = self._index == 0
        return rows

    def give(self, rows: NDArray[np.bool_], status: Status) -> None:
        """Set the status of rows that have none."""
        self._index[rows] = self._position(status)

    def give_one(self, row: int, status: Status) -> None:
        """Set the status of a row that has none."""
        self._index[row] = self._position(status)

    def statuses(self) -> NodeToStatus:
        """Return the statuses; success for rows without one."""
        if len(self._statuses) == 1:
            return NodeToStatus.passing(self._rows)
        return NodeToStatus(self._index, self._statuses)

    def _position(self, status: Status) -> int:
        position = self._positions.get(status)
        if position is None:
            position = self._positions[status] = len(self._statuses)
            self._statuses.append(status)
        return position


class _AttachmentsByNode:
    """The volume attachments of each node, cached until one changes."""

    def __init__(self) -> None:
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


class _Room:
    """How many more volumes of a driver a row of the whole table can take for sure.

    Volumes of pods and attachments are counted at most; where they cannot be identified there is
    no room. Each pod that is bound changes one row.
    """

    def __init__(self, attachments: _AttachmentsByNode) -> None:
        self._attachments = attachments
        self._in_use = RowTally(lambda pod: count_at_most(pod.spec.volumes))
        self._csi_nodes: CsiNodeColumns | None = None
        self._attached: NDArray[np.int64] | None = None
        self._limits: dict[str, NDArray[np.int64]] = {}
        self._rooms: dict[str, NDArray[np.int64]] = {}
        # At most the least room of any row; computed again only when it is not enough.
        self._least: dict[str, int] = {}

    def of(self, driver: str, filtered: _FilteredRows) -> NDArray[np.int64]:
        """Return the room of all rows, as int64 per row; valid until the table changes."""
        in_use = self._in_use.of(filtered.table)
        attached = self._attachments.counts(filtered.table, filtered.objects)
        renewed, is_same = self._in_use.renewed, self._csi_nodes is filtered.csi_nodes
        if renewed is None or not is_same or self._attached is not attached:
            self._csi_nodes, self._attached = filtered.csi_nodes, attached
            self._rooms.clear()
        elif renewed:
            for row in renewed:
                taken = in_use.item(row) + attached.item(row)
                for name, room in self._rooms.items():
                    left = self._limits[name].item(row) - taken
                    room[row] = left
                    self._least[name] = min(self._least[name], left)
        if driver not in self._rooms:
            limit = filtered.csi_nodes.limit(driver)
            self._limits[driver] = limit = np.where(limit == NO_LIMIT, UNCERTAIN, limit)
            self._rooms[driver] = limit - in_use - attached
            self._least[driver] = 0
        return self._rooms[driver]

    def has(self, driver: str, count: int, filtered: _FilteredRows) -> bool:
        """Whether every row of the whole table can take so many more volumes for sure."""
        room = self.of(driver, filtered)
        if self._least[driver] < count:
            self._least[driver] = int(room.min())
        return self._least[driver] >= count


def _check_drivers(
    volumes: Attachables, where: NDArray[np.bool_], filtered: _FilteredRows, answers: _Answers
) -> None:
    """Reject rows without a driver whose CSIDriver prevents scheduling where it is missing."""
    for name in dict.fromkeys(volumes.values()):
        driver = filtered.objects.get(CSIDriver, name)
        if driver is None or not driver.spec.prevent_pod_scheduling_if_missing:
            continue
        missing = where & ~filtered.csi_nodes.has_driver(name)[filtered.rows]
        status = unschedulable(f"{name} CSI driver is not installed on the node")
        answers.give(missing & answers.without(), status)


def _volumes_of(pod: Pod, objects: Objects, *, has_csi_node: bool) -> Attachables | Status:
    found: Attachables = {}
    try:
        add_volumes_of(pod, objects, found, has_csi_node=has_csi_node, is_new=True)
    except AttachableError as error:
        return unresolvable(str(error)) if error.is_missing else failure(str(error))
    return found


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


def after_claim_addition(pod: Pod, old: object | None, new: object | None) -> bool:
    """Whether the claim is one of the pod's."""
    return not isinstance(new, PersistentVolumeClaim) or uses_claim(pod, new)


def after_attachment_deletion(pod: Pod, old: object | None, new: object | None) -> bool:
    """Whether the pod has a claim, or an in-tree volume of the attachment's driver."""
    if not isinstance(old, VolumeAttachment):
        return True
    for volume in pod.spec.volumes:
        if volume.persistent_volume_claim is not None:
            return True
        if plugin_of_inline_volume(volume) is None:
            continue
        try:
            translated = translate_inline_volume(volume, pod.metadata.namespace)
        except TranslationError:
            return True
        if translated.driver == old.spec.attacher:
            return True
    return False
