"""Decides per row what to do with a pod's claims: use, bind or provision a volume, or reject.

Upstream: pkg/scheduler/framework/plugins/volumebinding/binder.go, FindPodVolumes (v1.36)
Reads:    assumed claims and volumes; nodes.names, nodes.labels; CSINodes
Rejects:  UnschedulableAndUnresolvable, with up to two reasons per row.
Differs:  claims of equal size keep their order; upstream's sort keeps it for up to eleven claims.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import msgspec
import numpy as np
from numpy.typing import NDArray

from kubesched.api.csi_translation import TranslationError, csi_node_affinity, plugin_of
from kubesched.api.storage import CSIStorageCapacity
from kubesched.api.volume import PersistentVolume, PersistentVolumeClaim
from kubesched.api.well_known import SELECTED_NODE
from kubesched.framework.status import NodeToStatus, Status, failure, unresolvable
from kubesched.plugins.volumes.assume_cache import AssumeCache
from kubesched.plugins.volumes.claims import class_of_claim, class_of_volume
from kubesched.plugins.volumes.csi_nodes import CsiNodes
from kubesched.plugins.volumes.describing import describe_bound_claim, describe_delayed_claim
from kubesched.plugins.volumes.matching import (
    NO_VOLUME,
    Match,
    MatchingError,
    OfferedVolumes,
    VolumesByClass,
    requested_size,
)
from kubesched.plugins.volumes.node_access import NodeAccess, required_of
from kubesched.plugins.volumes.provisioning import (
    Provision,
    ProvisioningError,
    StoragePools,
    provision,
)
from kubesched.snapshot.node_columns import NodeColumns
from kubesched.snapshot.node_table import NodeTable
from kubesched.snapshot.snapshot import Snapshot

NODE_CONFLICT: Final = "node(s) didn't match PersistentVolume's node affinity"
BIND_CONFLICT: Final = "node(s) didn't find available persistent volumes to bind"
NOT_ENOUGH_SPACE: Final = "node(s) did not have enough free storage"
VOLUME_MISSING: Final = "node(s) unavailable due to one or more pvc(s) bound to non-existent pv(s)"

# Bits of a row's outcome, in order of the reasons; larger values are failures.
_REASONS: Final = (NODE_CONFLICT, BIND_CONFLICT, NOT_ENOUGH_SPACE, VOLUME_MISSING)
_NODE_CONFLICT, _BIND_CONFLICT, _NOT_ENOUGH_SPACE, _VOLUME_MISSING = 1, 2, 4, 8
_FIRST_FAILURE: Final = 16


class StaticBinding(msgspec.Struct, frozen=True):
    """A claim and the volume to bind it to."""

    volume: PersistentVolume
    claim: PersistentVolumeClaim


class DynamicProvision(msgspec.Struct, frozen=True):
    """A claim to provision, and the pool with room for it if capacity is tracked."""

    claim: PersistentVolumeClaim
    pool: CSIStorageCapacity | None = None


class PodVolumes(msgspec.Struct, frozen=True):
    """The bindings and provisions for a pod's claims on one node."""

    static_bindings: tuple[StaticBinding, ...] = ()
    dynamic_provisions: tuple[DynamicProvision, ...] = ()


class Decisions:
    """The decisions for a table: per row, whether all claims can be served, and how.

    Attributes:
        rows: The number of rows.
        statuses: One status per row; set by `conclude`.
        matches: The volume that each claim gets, per row.
        provisions: The claims to provision, and the rows where they are, as bool per row.
    """

    __slots__ = ("_failures", "_keys", "matches", "provisions", "rows", "statuses")

    statuses: NodeToStatus

    def __init__(self, rows: int) -> None:
        self.rows = rows
        self.matches: Sequence[Match] = ()
        self.provisions: Sequence[tuple[Provision, NDArray[np.bool_]]] = ()
        # For most pods no row is marked.
        self._keys: NDArray[np.int64] | None = None
        self._failures: list[str] = []

    def pod_volumes(self, row: int) -> PodVolumes:
        """Return the bindings and provisions on a row whose status is success."""
        found = [(match.claim, match.volume_on(row)) for match in self.matches]
        bindings = [StaticBinding(volume, claim) for claim, volume in found if volume is not None]
        provisions = [
            DynamicProvision(one.claim, one.pool_on(row))
            for one, asked in self.provisions
            if asked[row]
        ]
        return PodVolumes(tuple(bindings), tuple(provisions))

    def mark(self, rows: NDArray[np.bool_], reason: int) -> None:
        """Add a reason to rows."""
        keys = self._begun()
        np.bitwise_or(keys, reason, out=keys, where=rows)

    def fail(self, rows: NDArray[np.bool_], error: str) -> None:
        """Mark rows as failed, which replaces their reasons."""
        self._begun()[rows] = _FIRST_FAILURE + len(self._failures)
        self._failures.append(error)

    def unmarked(self) -> NDArray[np.bool_]:
        """Return the rows without a reason or failure."""
        return np.equal(self._begun(), 0)

    def unfailed(self) -> NDArray[np.bool_]:
        """Return the rows that did not fail."""
        return self._begun() < _FIRST_FAILURE

    def conclude(self) -> None:
        """Set the statuses, once everything is decided."""
        if self._keys is None or not self._keys.any():
            self.statuses = NodeToStatus.passing(self.rows)
        else:
            self.statuses = NodeToStatus.encode(self._keys, self._status_of)

    def _begun(self) -> NDArray[np.int64]:
        """Return the key of each row: its reasons as bits, or the number of its failure."""
        if self._keys is None:
            self._keys = np.zeros(self.rows, np.int64)
        return self._keys

    def _status_of(self, key: int) -> Status:
        if key >= _FIRST_FAILURE:
            return failure(self._failures[key - _FIRST_FAILURE])
        return unresolvable(*(text for bit, text in enumerate(_REASONS) if key >> bit & 1))


class StorageColumns:
    """The columns that the decisions for all pods read.

    Attributes:
        assumed: The assumed volumes.
        volumes: The volumes of each storage class.
        pools: The storage pools.
        csi_nodes: The CSINodes of each row.
    """

    def __init__(self, assumed: AssumeCache[PersistentVolume]) -> None:
        self.assumed = assumed
        self.volumes = VolumesByClass(assumed)
        self.pools = StoragePools()
        self.csi_nodes = CsiNodes()
        self._access_of: tuple[NodeColumns, int] | None = None
        self._access = NodeAccess(NodeColumns())

    def access(self, table: NodeColumns) -> NodeAccess:
        """Return which rows of the table can use a volume; the same object until labels change."""
        access_of = (table, table.labels_epoch)
        if access_of != self._access_of:
            self._access_of, self._access = access_of, NodeAccess(table)
        return self._access


class Decider:
    """Decides for one pod.

    `bound` are its claims that have a volume; `delayed` get one when the pod has a node.
    """

    def __init__(
        self,
        bound: Sequence[PersistentVolumeClaim],
        delayed: Sequence[PersistentVolumeClaim],
        snapshot: Snapshot,
        columns: StorageColumns,
    ) -> None:
        self._bound = bound
        self._selected = [c for c in delayed if SELECTED_NODE in c.metadata.annotations]
        self._others = [c for c in delayed if SELECTED_NODE not in c.metadata.annotations]
        self._snapshot = snapshot
        self._objects = snapshot.objects
        self._columns = columns
        self._access = columns.access(snapshot.nodes)
        self._decisions: Decisions | None = None

    def decide(self) -> Decisions:
        """Decide for all rows of the table; kept until labels change, or until `forget`."""
        access = self._columns.access(self._snapshot.nodes)
        if self._decisions is None or access is not self._access:
            self._access = access
            self._decisions = decisions = Decisions(len(self._access.nodes))
            self._check_bound(decisions)
            if self._selected or self._others:
                self._serve_delayed(decisions)
            decisions.conclude()
        return self._decisions

    def forget(self) -> None:
        """Discard the decisions, since volumes are about to be taken."""
        self._decisions = None

    def rows_of(self, nodes: NodeTable) -> NDArray[np.intp]:
        """Return the rows of the table that `nodes`, a selection of it or itself, consists of."""
        return np.arange(len(self._access.nodes))[self._snapshot.rows_of(nodes)]

    def statuses_of(self, nodes: NodeTable) -> NodeToStatus:
        """Return the statuses of the rows of `nodes`, a selection of the table or the table."""
        statuses = self.decide().statuses
        if nodes is self._access.nodes:
            return statuses
        if len(statuses.statuses) == 1:
            return NodeToStatus.passing(len(nodes))
        return NodeToStatus(statuses.index[self._snapshot.rows_of(nodes)], statuses.statuses)

    def describe(self, nodes: NodeTable) -> str:
        """Return which claims the one row of `nodes` cannot serve, and why."""
        access = NodeAccess(nodes)
        texts = [self._describe_bound(claim, access) for claim in self._bound]
        texts += (
            describe_delayed_claim(claim, self._volumes_for(claim), self._objects, access)
            for claim in self._unmatched(int(self.rows_of(nodes)[0]))
        )
        return "; ".join(filter(None, texts))

    def _volumes_for(self, claim: PersistentVolumeClaim) -> list[PersistentVolume]:
        """Return all volumes of the claim's class."""
        name = class_of_claim(claim)
        volumes = map(self._columns.assumed.current, self._objects.list(PersistentVolume))
        return [volume for volume in volumes if class_of_volume(volume) == name]

    def _describe_bound(self, claim: PersistentVolumeClaim, access: NodeAccess) -> str:
        volume = self._columns.assumed.get(self._objects, claim.spec.volume_name)
        is_migrated = volume is not None and self._migrated(volume, access.nodes) is not None
        return describe_bound_claim(claim, volume, access, is_migrated=is_migrated)

    def _unmatched(self, row: int) -> list[PersistentVolumeClaim]:
        """Return the claims that get none of the existing volumes on a row."""
        try:
            matches = self._match(self._others)
        except MatchingError:
            return self._selected
        return [*self._selected, *(one.claim for one in matches if one.volume_on(row) is None)]

    def _check_bound(self, decisions: Decisions) -> None:
        """Mark rows that cannot reach a bound volume; each row keeps its first problem."""
        for claim in self._bound:
            volume = self._columns.assumed.get(self._objects, claim.spec.volume_name)
            if volume is None:
                decisions.mark(decisions.unmarked(), _VOLUME_MISSING)
                return
            self._check_reach(volume, decisions)

    def _check_reach(self, volume: PersistentVolume, decisions: Decisions) -> None:
        """Mark rows without a problem that cannot reach a volume."""
        required = translated = required_of(volume.spec.node_affinity)
        migrated = self._migrated(volume, self._access.nodes)
        if migrated is not None:
            try:
                translated = csi_node_affinity(volume)
            except TranslationError as error:
                decisions.fail(decisions.unmarked() & migrated, f"could not translate pv: {error}")
        if required is None and translated is None:
            return
        reached = self._access.mask_of_selector(required)
        if migrated is not None and translated is not required:
            reached = np.where(migrated, self._access.mask_of_selector(translated), reached)
        decisions.mark(decisions.unmarked() & ~reached, _NODE_CONFLICT)

    def _migrated(self, volume: PersistentVolume, nodes: NodeTable) -> NDArray[np.bool_] | None:
        """Return the rows that treat an in-tree volume as a CSI volume, or None if none does."""
        plugin = plugin_of(volume.spec)
        if plugin is None or not plugin.is_migrated:
            return None
        csi_nodes = self._columns.csi_nodes.of(self._snapshot.nodes, self._objects)
        migrated = csi_nodes.is_migrated(plugin)
        return None if migrated is None else migrated[self._snapshot.rows_of(nodes)]

    def _serve_delayed(self, decisions: Decisions) -> None:
        asked = decisions.unfailed()
        for claim in self._selected:
            here = _only(self._access.nodes, claim.metadata.annotations[SELECTED_NODE])
            decisions.mark(asked & ~here, _BIND_CONFLICT)
            asked = asked & here
        try:
            matches = self._match(self._others) if asked.any() else []
        except MatchingError as error:
            decisions.fail(asked, str(error))
            return
        wishes = [(claim, asked) for claim in self._selected]
        wishes += [(match.claim, asked & (match.chosen == NO_VOLUME)) for match in matches]
        decisions.matches = matches
        decisions.provisions = self._provide(wishes, decisions)

    def _match(self, claims: Sequence[PersistentVolumeClaim]) -> list[Match]:
        """Choose volumes for the claims, the smallest claim first."""
        matches: list[Match] = []
        offered: dict[str, OfferedVolumes] = {}
        for claim in sorted(claims, key=requested_size):
            name = class_of_claim(claim)
            if name not in offered:
                of_class = self._columns.volumes.of(self._objects, name)
                offered[name] = OfferedVolumes(of_class, claims, self._access)
            matches.append(offered[name].match(claim))
        return matches

    def _provide(
        self,
        wishes: Sequence[tuple[PersistentVolumeClaim, NDArray[np.bool_]]],
        decisions: Decisions,
    ) -> list[tuple[Provision, NDArray[np.bool_]]]:
        """Mark rows where a needed volume cannot be provisioned, with the first problem."""
        provisions: list[tuple[Provision, NDArray[np.bool_]]] = []
        settled = np.zeros(decisions.rows, np.bool_)
        for claim, rows in wishes:
            open_ = rows & ~settled
            if not open_.any():
                continue
            try:
                one = provision(claim, self._objects, self._columns.pools, self._access)
            except ProvisioningError as error:
                decisions.fail(open_, str(error))
                settled |= open_
                continue
            decisions.mark(open_ & ~one.possible, _BIND_CONFLICT)
            decisions.mark(open_ & one.possible & ~one.has_room, _NOT_ENOUGH_SPACE)
            settled |= open_ & ~(one.possible & one.has_room)
            provisions.append((one, rows))
        return provisions


def _only(nodes: NodeTable, name: str) -> NDArray[np.bool_]:
    mask = np.zeros(len(nodes), np.bool_)
    row = nodes.row_of.get(name)
    if row is not None:
        mask[row] = True
    return mask
