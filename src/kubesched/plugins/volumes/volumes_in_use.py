"""VolumesInUse: the volumes that count towards a node's limits, per row and CSI driver.

Upstream: pkg/scheduler/framework/plugins/nodevolumelimits/csi.go, Filter (v1.36)
Reads:    nodes.pods; claims, volumes, storage classes, volume attachments
Invariants: kept counts equal new ones (tests/plugins/test_node_volume_limits.py).
Differs:  nothing.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Final, TypeVar

import msgspec
import numpy as np
from numpy.typing import NDArray

from kubesched.api.meta import KubeObject
from kubesched.api.storage import StorageClass, VolumeAttachment
from kubesched.api.volume import PersistentVolume, PersistentVolumeClaim
from kubesched.plugins.volumes.attachable import (
    AttachableError,
    Attachables,
    add_volumes_of,
    attached_to,
    may_attach,
)
from kubesched.plugins.volumes.csi_nodes import NO_LIMIT
from kubesched.snapshot.changes import ChangeReader, RowVersions, fitted
from kubesched.snapshot.objects import ObjectName, Objects
from kubesched.snapshot.pod_info import PodInfo
from kubesched.snapshot.snapshot import Snapshot

K = TypeVar("K", bound=KubeObject)
_READ: Final[tuple[type[KubeObject], ...]] = (PersistentVolumeClaim, PersistentVolume, StorageClass)


class NodeVolumes(msgspec.Struct, frozen=True):
    """The volumes on one node.

    Attributes:
        used: The volumes that pods use.
        in_use: Driver -> number of volumes that pods use or that are attached.
        error: Why the volumes of a pod cannot be identified, or "".
    """

    used: Attachables
    in_use: Counter[str]
    error: str = ""


def count_volumes(
    pods: Iterable[PodInfo], attachments: Iterable[VolumeAttachment], objects: Objects
) -> NodeVolumes:
    """Count the volumes on a node with these pods and attachments."""
    used: Attachables = {}
    try:
        for pod in pods:
            if pod.pod.spec.volumes:
                add_volumes_of(pod.pod, objects, used, has_csi_node=True, is_new=False)
    except AttachableError as error:
        return NodeVolumes({}, Counter(), str(error))
    in_use = Counter(used.values())
    attached = attached_to(attachments, objects)
    in_use.update(driver for name, driver in attached.items() if name not in used)
    return NodeVolumes(used, in_use)


class VolumesInUse:
    """The volumes on each row of one table at a time.

    Most rows are far from their limits, so a row is only counted if it is asked about. The count is
    kept until its pods or attachments change, or an object that it has read.

    Attributes:
        at_most: int64 per row: an upper bound of the volumes of any driver; NO_LIMIT or more if the
            volumes of a pod perhaps cannot be identified.
    """

    def __init__(self) -> None:
        self.at_most = np.zeros(0, np.int64)
        # Bool per row: whether all volumes there are identified and counted.
        self._is_counted = np.zeros(0, np.bool_)
        # Driver -> volumes in use, as int64 per row; 0 on rows that are not counted.
        self._in_use: dict[str, NDArray[np.int64]] = {}
        # Volume -> the counted rows whose pods use it.
        self._rows_using: dict[str, set[int]] = {}
        # An upper bound of `at_most`.
        self._most = 0
        self._counted: dict[int, NodeVolumes] = {}
        self._versions = RowVersions()
        self._changed: list[ChangeReader[ObjectName]] = [ChangeReader() for _ in _READ]
        self._attachments = _AttachmentsByNode()
        # Namespace and name -> the counted rows that have read such an object.
        self._readers: dict[tuple[str, str], set[int]] = {}

    def update(self, snapshot: Snapshot) -> None:
        """Forget the counts of rows that changed since the last call, and bound them again."""
        table, objects = snapshot.nodes, snapshot.objects
        stale = self._versions.changed(table)
        if len(self.at_most) != len(table):
            stale |= {row for row in self._counted if row >= len(table)}
            self.at_most = fitted(self.at_most, table)
            self._is_counted = fitted(self._is_counted, table)
            self._in_use = {name: fitted(one, table) for name, one in self._in_use.items()}
        stale |= {table.row_of.get(name, -1) for name in self._attachments.update(objects)}
        if self._counted:
            stale |= self._changed_readers(objects)
        for row in stale:
            self._forget(row)
            if 0 <= row < len(table):
                attached = len(self._attachments.on(table.names[row]))
                bound = attached + _bound(table.pods[row].values())
                self.at_most[row] = bound
                self._most = max(self._most, bound)

    def have_room(self, wanted: Mapping[str, int], limits: Mapping[str, int]) -> bool:
        """Whether all rows are known to have room for as many volumes per driver.

        `limits` are the least limits of drivers that have one.
        """
        room = min(limits.get(driver, NO_LIMIT) - count for driver, count in wanted.items())
        if self._most > room:
            self._most = int(self.at_most.max(initial=0))
        return self._most <= room

    def on(self, row: int, snapshot: Snapshot) -> NodeVolumes:
        """Return the volumes on a row."""
        found = self._counted.get(row)
        if found is None:
            if not self._counted:
                # Earlier changes are in the first count.
                self._changed_readers(snapshot.objects)
            pods, name = snapshot.nodes.pods[row].values(), snapshot.nodes.names[row]
            objects = _ReadObjects(snapshot.objects, self._readers, row)
            found = self._counted[row] = count_volumes(pods, self._attachments.on(name), objects)
            if not found.error:
                self._keep(row, found)
        return found

    def may_exceed(
        self, wanted: Mapping[str, int], limit: Callable[[str], NDArray[np.int64]]
    ) -> NDArray[np.bool_]:
        """Return, as bool per row, where as many more volumes per driver may exceed a limit.

        `limit` returns a driver's limit per row.
        """
        exceeds = np.zeros(len(self.at_most), np.bool_)
        for driver, count in wanted.items():
            counts = self._in_use.get(driver, 0)
            exceeds |= np.where(self._is_counted, counts, self.at_most) + count > limit(driver)
        return exceeds

    def is_counted_without(self, volumes: Iterable[str]) -> NDArray[np.bool_]:
        """Return, as bool per row, where counts are exact and no pod uses one of the volumes."""
        found = self._is_counted.copy()
        for name in volumes:
            found[list(self._rows_using.get(name, ()))] = False
        return found

    def _keep(self, row: int, found: NodeVolumes) -> None:
        self.at_most[row] = max(found.in_use.values(), default=0)
        self._is_counted[row] = True
        for driver, count in found.in_use.items():
            if driver not in self._in_use:
                self._in_use[driver] = np.zeros(len(self.at_most), np.int64)
            self._in_use[driver][row] = count
        for name in found.used:
            self._rows_using.setdefault(name, set()).add(row)

    def _forget(self, row: int) -> None:
        found = self._counted.pop(row, None)
        if found is None:
            return
        for name in found.used:
            rows = self._rows_using[name]
            rows.discard(row)
            if not rows:
                del self._rows_using[name]
        if row < len(self._is_counted):
            self._is_counted[row] = False
            for column in self._in_use.values():
                column[row] = 0

    def with_pods(self, pods: Iterable[PodInfo], node_name: str, snapshot: Snapshot) -> NodeVolumes:
        """Return the volumes on a node if it had these pods."""
        return count_volumes(pods, self._attachments.on(node_name), snapshot.objects)

    def _changed_readers(self, objects: Objects) -> set[int]:
        """Return the counted rows that have read an object that changed."""
        readers = zip(self._changed, _READ, strict=True)
        changes = [reader.read(objects.changes_of(kind)) for reader, kind in readers]
        if None in changes:
            self._readers.clear()
            return set(self._counted)
        changed = [key for keys in changes for key in keys or ()]
        return set().union(*(self._readers.pop(key, ()) for key in changed))


def _bound(pods: Iterable[PodInfo]) -> int:
    """Return an upper bound of the volumes that pods use, without looking them up."""
    count = 0
    for pod in pods:
        for volume in pod.pod.spec.volumes:
            claim = volume.persistent_volume_claim
            if claim is not None and claim.claim_name:
                count += 1
            elif may_attach(volume):
                return NO_LIMIT
    return count


class _ReadObjects(Objects):
    """Objects that note which of them a row reads."""

    def __init__(
        self, objects: Objects, readers: dict[tuple[str, str], set[int]], row: int
    ) -> None:
        super().__init__()
        self._objects = objects
        self._readers = readers
        self._row = row

    def get(self, kind: type[K], name: str, namespace: str = "") -> K | None:
        self._readers.setdefault((namespace, name), set()).add(self._row)
        return self._objects.get(kind, name, namespace)


class _AttachmentsByNode:
    """The volume attachments of each node."""

    def __init__(self) -> None:
        self._by_node: dict[str, dict[str, VolumeAttachment]] = {}
        self._changed: ChangeReader[ObjectName] = ChangeReader()
        self._node_of: dict[str, str] = {}

    def on(self, node_name: str) -> Collection[VolumeAttachment]:
        """Return the attachments of a node."""
        return self._by_node.get(node_name, {}).values()

    def update(self, objects: Objects) -> set[str]:
        """Take over the attachments that changed since the last call; return their nodes."""
        changed = self._changed.read(objects.changes_of(VolumeAttachment))
        if changed is None:
            stored = [item.metadata.name for item in objects.list(VolumeAttachment)]
            names = [*self._node_of, *stored]
        else:
            names = [name for _, name in changed]
        nodes: set[str] = set()
        for name in dict.fromkeys(names):
            before = self._node_of.pop(name, None)
            if before is not None:
                nodes.add(before)
                del self._by_node[before][name]
            now = objects.get(VolumeAttachment, name)
            if now is not None:
                nodes.add(now.spec.node_name)
                self._node_of[name] = now.spec.node_name
                self._by_node.setdefault(now.spec.node_name, {})[name] = now
        return nodes
