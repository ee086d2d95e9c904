"""NodeVolumeLimits: keep the volumes on a node within the limits of its CSI drivers.

Upstream: pkg/scheduler/framework/plugins/nodevolumelimits (v1.36)
Reads:    pod.spec.volumes; nodes.pods; claims, volumes, storage classes, CSINodes, CSIDrivers,
          volume attachments
Rejects:  Unschedulable, because evicting pods frees volumes; UnschedulableAndUnresolvable if a
          claim is missing.
Invariants: in a what-if table of many rows, no row has both lost and gained pods.
Differs:  of several missing drivers, the message names the first in order of the pod's volumes;
          upstream names any.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from typing import ClassVar, Final

import numpy as np
from numpy.typing import NDArray

from kubesched.api.core import Pod
from kubesched.api.csi_translation import plugin_of
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
from kubesched.framework.plugin import (
    PRE_FILTER_SKIP,
    UNSIGNED,
    FilterPlugin,
    NeededKind,
    PreFilterPlugin,
    PreFilterResult,
    Scope,
)
from kubesched.framework.status import NodeToStatus, Status, failure, unresolvable, unschedulable
from kubesched.plugins.volumes.attachable import (
    AttachableError,
    Attachables,
    add_volumes_of,
    may_attach,
)
from kubesched.plugins.volumes.claims import BY_CLAIM, after_claim_change
from kubesched.plugins.volumes.csi_nodes import CsiNodeColumns, CsiNodes, limits_of
from kubesched.plugins.volumes.describing import kinds_of_claims, kinds_of_limits
from kubesched.plugins.volumes.volumes_in_use import NodeVolumes, VolumesInUse
from kubesched.snapshot.node_table import NodeTable
from kubesched.snapshot.objects import Objects
from kubesched.snapshot.pod_info import PodInfo
from kubesched.snapshot.snapshot import Snapshot

_FEW_ROWS: Final = 16
"""Up to this number of rows of a what-if table, all pods are compared with those on the nodes."""


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
        self._in_use = VolumesInUse()

    def events_to_register(self) -> Sequence[ClusterEventWithHint]:
        """Return changes that add or raise limits, or remove volumes."""
        return (
            retry_on(CSI_NODE, Action.ADD),
            retry_on(CSI_NODE, Action.UPDATE, after_csi_node_update),
            retry_on(POD, Action.DELETE, after_pod_deletion),
            retry_on(PERSISTENT_VOLUME_CLAIM, Action.ADD, after_claim_change, filing=BY_CLAIM),
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
            rejections += self._exceeding(new, nodes, snapshot, csi_nodes)
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
        snapshot = state.snapshot
        self._in_use.update(snapshot)
        limits = limits_of(snapshot.objects.get(CSINode, nodes.names[0]))
        volumes = self._volumes_on(0, nodes, snapshot)
        return _excess(_unused(new, Counter(new.values()), volumes), volumes, limits)

    def _exceeding(
        self, new: Attachables, nodes: NodeTable, snapshot: Snapshot, csi_nodes: CsiNodeColumns
    ) -> Iterator[tuple[NDArray[np.bool_], Status]]:
        """Yield each rejection and the rows that it is for, as bool per row."""
        wanted, in_use, has_pods = Counter(new.values()), self._in_use, snapshot.has_pods_of(nodes)
        in_use.update(snapshot)
        if has_pods and in_use.have_room(wanted, csi_nodes.limited):
            return
        rows = snapshot.rows_of(nodes)
        may_exceed = in_use.may_exceed(wanted, csi_nodes.limit)[rows]
        if has_pods:
            is_sure = in_use.is_counted_without(new)[rows]
        else:
            is_sure = np.zeros(len(nodes), np.bool_)
            may_exceed |= _has_new_pods(nodes, snapshot)
        may_exceed &= csi_nodes.has_limits[rows]
        full, failed = np.flatnonzero(may_exceed & is_sure).tolist(), dict[str, list[int]]()
        for at in np.flatnonzero(may_exceed & ~is_sure).tolist():
            volumes = self._volumes_on(at, nodes, snapshot)
            limits = csi_nodes.limits[snapshot.nodes.row_of[nodes.names[at]]]
            if volumes.error:
                failed.setdefault(volumes.error, []).append(at)
            elif _excess(_unused(new, wanted, volumes), volumes, limits):
                full.append(at)
        rejected = [(failure(error), places) for error, places in failed.items()]
        for status, places in (*rejected, (self.rejection, full)):
            mask = np.zeros(len(nodes), np.bool_)
            mask[places] = True
            yield mask, status

    def _volumes_on(self, at: int, nodes: NodeTable, snapshot: Snapshot) -> NodeVolumes:
        """Return the volumes on a row of `nodes`, whose pods may differ from the snapshot's."""
        name, table = nodes.names[at], snapshot.nodes
        row = table.row_of[name]
        if snapshot.has_pods_of(nodes) or nodes.pods[at].keys() == table.pods[row].keys():
            return self._in_use.on(row, snapshot)
        return self._in_use.with_pods(nodes.pods[at].values(), name, snapshot)


def _has_new_pods(nodes: NodeTable, snapshot: Snapshot) -> NDArray[np.bool_]:
    """Return, as bool per row of a what-if table, whether it has pods that are not on that node."""
    table = snapshot.nodes
    if len(nodes) > _FEW_ROWS:
        # Without a look at the pods, which would copy them for every row.
        return nodes.pod_counts > table.pod_counts[snapshot.rows_of(nodes)]
    known = [table.pods[table.row_of[name]].keys() for name in nodes.names]
    return np.array([not p.keys() <= k for p, k in zip(nodes.pods, known, strict=True)], np.bool_)


def _unused(new: Attachables, wanted: Counter[str], volumes: NodeVolumes) -> Counter[str]:
    """Return driver -> number of new volumes that no pod on a node uses, of all that are wanted.

    As upstream, this includes volumes that are attached to the node without a pod.
    """
    if new.keys().isdisjoint(volumes.used):
        return wanted
    return Counter(driver for name, driver in new.items() if name not in volumes.used)


def _excess(unused: Mapping[str, int], volumes: NodeVolumes, limits: Mapping[str, int]) -> str:
    """Return which driver exceeds its limit on a node, and by how many volumes; "" if none."""
    for driver, count in unused.items():
        in_use = volumes.in_use[driver]
        if driver in limits and in_use + count > limits[driver]:
            return f"{driver}: {count} new volumes, {in_use} of {limits[driver]} in use"
    return ""


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
