"""VolumesInUse: the volumes that count towards a node's limits, per row and CSI driver.

Upstream: pkg/scheduler/framework/plugins/nodevolumelimits/csi.go, Filter (v1.36)
Reads:    nodes.pods; claims, volumes, storage classes, volume attachments
Invariants: kept counts equal new ones (tests/plugins/test_node_volume_limits.py).
Differs:  nothing.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
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
)
from kubesched.snapshot.changed_rows import RowVersions, fitted
from kubesched.snapshot.objects import ChangedObjects, Objects
from kubesched.snapshot.pod_info import PodInfo
from kubesched.snapshot.snapshot import Snapshot

K = TypeVar("K", bound=KubeObject)
_READ: Final = (PersistentVolumeClaim, PersistentVolume, StorageClass)


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

    A row is counted again when its pods or attachments change, or an object that it has read.

    Attributes:
        rows: The volumes on each row.
        failed: int64 per row: 1 if the volumes of a pod cannot be identified.
    """

    def __init__(self) -> None:
        self.rows: list[NodeVolumes] = []
        self.failed: NDArray[np.int64] = np.zeros(0, np.int64)
        self._counts: dict[str, NDArray[np.int64]] = {}
        self._versions = RowVersions()
        self._changed = [ChangedObjects(kind) for kind in _READ]
        self._attachments = _AttachmentsByNode()
        # Namespace and name -> the rows that have read such an object since it changed.
        self._readers: dict[tuple[str, str], set[int]] = {}

    def update(self, snapshot: Snapshot) -> None:
        """Count the volumes of the rows that changed since the last call."""
        table = snapshot.nodes
        stale = self._stale_rows(snapshot)
        del self.rows[len(table) :]
        self.failed = fitted(self.failed, table)
        self._counts = {driver: fitted(counts, table) for driver, counts in self._counts.items()}
        objects = _ReadObjects(snapshot.objects, self._readers)
        for row in sorted(stale):
            if row < len(table):
                objects.row = row
                attachments = self.attachments_on(table.names[row])
                found = count_volumes(table.pods[row].values(), attachments, objects)
                self._keep(row, found, len(table))

    def count(self, driver: str) -> NDArray[np.int64]:
        """Return, as int64 per row, the number of volumes of a driver."""
        counts = self._counts.get(driver)
        return np.zeros(len(self.rows), np.int64) if counts is None else counts

    def attachments_on(self, node_name: str) -> Iterable[VolumeAttachment]:
        """Return the attachments of a node."""
        return self._attachments.by_node.get(node_name, {}).values()

    def _stale_rows(self, snapshot: Snapshot) -> set[int]:
        stale = set(self._versions.changed(snapshot.nodes))
        row_of, objects = snapshot.nodes.row_of, snapshot.objects
        stale.update(row_of[name] for name in self._attachments.update(objects) if name in row_of)
        for changed in [reader.read(objects) for reader in self._changed]:
            if changed is None:
                self._readers.clear()
                return set(range(len(snapshot.nodes)))
            for key in changed:
                stale |= self._readers.pop(key, set())
        return stale

    def _keep(self, row: int, found: NodeVolumes, rows: int) -> None:
        # New rows are counted in ascending order.
        self.rows[row : row + 1] = [found]
        self.failed[row] = found.error != ""
        for driver in found.in_use.keys() - self._counts.keys():
            self._counts[driver] = np.zeros(rows, np.int64)
        for driver, counts in self._counts.items():
            counts[row] = found.in_use[driver]


class _ReadObjects(Objects):
    """Objects that note which of them a row has read."""

    def __init__(self, objects: Objects, readers: dict[tuple[str, str], set[int]]) -> None:
        super().__init__()
        self.row = 0
        self._objects = objects
        self._readers = readers

    def get(self, kind: type[K], name: str, namespace: str = "") -> K | None:
        self._readers.setdefault((namespace, name), set()).add(self.row)
        return self._objects.get(kind, name, namespace)


class _AttachmentsByNode:
    """The volume attachments of each node, by their names."""

    def __init__(self) -> None:
        self.by_node: dict[str, dict[str, VolumeAttachment]] = {}
        self._changed = ChangedObjects(VolumeAttachment)
        self._node_of: dict[str, str] = {}

    def update(self, objects: Objects) -> set[str]:
        """Take over the attachments that changed since the last call; return their nodes."""
        changed = self._changed.read(objects)
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
                del self.by_node[before][name]
            now = objects.get(VolumeAttachment, name)
            if now is not None:
                nodes.add(now.spec.node_name)
                self._node_of[name] = now.spec.node_name
                self.by_node.setdefault(now.spec.node_name, {})[name] = now
        return nodes
