"""Finds the best volume per row for an unbound claim.

Upstream: component-helpers/storage/volume/pv_helpers.go, FindMatchingVolume (v1.36)
Reads:    persistentvolumeclaim.spec; persistentvolume.spec, .status.phase; nodes.labels
Differs:  nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import msgspec
import numpy as np
from numpy.typing import NDArray

from kubesched.api.quantity import nano_value
from kubesched.api.requirements import CompiledSelector
from kubesched.api.selectors import compile_label_selector, label_selector_error
from kubesched.api.volume import PersistentVolume, PersistentVolumeClaim
from kubesched.plugins.volumes.claims import STORAGE
from kubesched.plugins.volumes.free_volumes import FreeVolumes, VolumeTraits
from kubesched.plugins.volumes.node_access import NodeAccess, required_of

NO_VOLUME: Final = -1
_AVAILABLE: Final = "Available"


class MatchingError(Exception):
    """The claim's selector is invalid; the text has the reason."""


class OfferedVolumes(msgspec.Struct, frozen=True):
    """The volumes of a class that a pod's claims may get: free or reserved for them."""

    free: FreeVolumes
    reserved: tuple[PersistentVolume, ...] = ()


class Match(msgspec.Struct, frozen=True):
    """The volume that a claim gets on each row.

    Attributes:
        claim: The claim.
        volumes: The volumes to choose from, by position: those that are free, then those that are
            reserved for a claim of the pod.
        chosen: int32 per row: the position of the volume, or NO_VOLUME.
    """

    claim: PersistentVolumeClaim
    volumes: tuple[Sequence[PersistentVolume], Sequence[PersistentVolume]]
    chosen: NDArray[np.int32]

    def volume_on(self, row: int) -> PersistentVolume | None:
        """Return the volume that the claim gets on a row, or None."""
        at = self.chosen.item(row)
        free, reserved = self.volumes
        if at == NO_VOLUME:
            return None
        return free[at] if at < len(free) else reserved[at - len(free)]


def find_matching_volumes(
    claim: PersistentVolumeClaim,
    offered: OfferedVolumes,
    taken: Sequence[NDArray[np.int32]],
    access: NodeAccess,
) -> Match:
    """Find the best volume for an unbound claim on each row, among those of its class.

    `taken` has what the pod's earlier claims of this class have chosen.

    Raises:
        MatchingError: The claim's selector is invalid.
    """
    selector, free, reserved = _selector_of(claim), offered.free, offered.reserved
    chosen = np.full(len(access.nodes), NO_VOLUME, np.int32)
    open_ = np.ones(len(access.nodes), np.bool_)
    for at, volume in enumerate(reserved, len(free.volumes)):
        if is_bound_to(volume, claim) and _is_fitting(volume, claim):
            # It is used, except on rows where an earlier claim got it.
            settled = open_ & _is_left(at, taken, len(open_))
            reached = _rows_of(volume, access)
            chosen[reached[settled[reached]]] = at
            open_ &= ~settled
    candidates = free.serving(VolumeTraits.of(claim), _requested(claim))
    if selector is not None:
        for at in np.flatnonzero(candidates).tolist():
            candidates[at] = selector.matches(free.volumes[at].metadata.labels)
    if candidates.any() and open_.any():
        best = free.smallest_in_reach(candidates, taken, access)
        open_ &= best < len(free.volumes)
        chosen[open_] = best[open_]
    return Match(claim, (free.volumes, reserved), chosen)


def why_not_matching(
    claim: PersistentVolumeClaim, volume: PersistentVolume, access: NodeAccess
) -> str:
    """Return briefly why the claim does not get the volume on the only row of `access`."""
    if volume.spec.claim_ref is not None and not is_bound_to(volume, claim):
        return "kept for other claims"
    if not is_bound_to(volume, claim) and volume.status.phase != _AVAILABLE:
        return "not available"
    size = volume.spec.capacity.get(STORAGE, 0)
    if nano_value(size) < _requested(claim):
        return "too small"
    if not _is_fitting(volume, claim) or not (
        is_bound_to(volume, claim) or _is_candidate(volume, claim)
    ):
        return "of another mode, or not selected"
    if not len(_rows_of(volume, access)):
        return "out of the node's reach"
    return "given to another claim of the pod"


def by_size(claims: Sequence[PersistentVolumeClaim]) -> list[PersistentVolumeClaim]:
    """Return the claims in the order in which they get volumes: the smallest first."""
    return sorted(claims, key=_requested)


def _requested(claim: PersistentVolumeClaim) -> int:
    """Return the requested size in units of 10^-9 bytes."""
    return nano_value(claim.spec.resources.requests.get(STORAGE, 0))


def is_bound_to(volume: PersistentVolume, claim: PersistentVolumeClaim) -> bool:
    """Whether the volume is bound to the claim or reserved for it."""
    ref = volume.spec.claim_ref
    return (
        ref is not None
        and ref.name == claim.metadata.name
        and ref.namespace == claim.metadata.namespace
        and ref.uid in ("", claim.metadata.uid)
    )


def _selector_of(claim: PersistentVolumeClaim) -> CompiledSelector | None:
    selector = claim.spec.selector
    if selector is None:
        return None
    error = label_selector_error(selector)
    if error is not None:
        text = f"error creating internal label selector for claim: {claim.metadata.key}: {error}"
        raise MatchingError(text)
    return compile_label_selector(selector)


def _is_fitting(volume: PersistentVolume, claim: PersistentVolumeClaim) -> bool:
    """Whether the volume is not kept for others, is large enough and of the claim's modes."""
    return (
        (volume.spec.claim_ref is None or is_bound_to(volume, claim))
        and nano_value(volume.spec.capacity.get(STORAGE, 0)) >= _requested(claim)
        and VolumeTraits.of(volume).is_of_mode(VolumeTraits.of(claim))
        and volume.metadata.deletion_timestamp is None
    )


def _is_candidate(volume: PersistentVolume, claim: PersistentVolumeClaim) -> bool:
    """Whether an available volume has the claim's access modes and is selected."""
    selector = _selector_of(claim)
    return VolumeTraits.of(volume).serve(VolumeTraits.of(claim)) and (
        selector is None or selector.matches(volume.metadata.labels)
    )


def _is_left(at: int, taken: Sequence[NDArray[np.int32]], rows: int) -> NDArray[np.bool_]:
    """Return the rows on which no earlier claim got the volume."""
    left = np.ones(rows, np.bool_)
    for before in taken:
        left &= before != at
    return left


def _rows_of(volume: PersistentVolume, access: NodeAccess) -> NDArray[np.intp]:
    return access.of_selector(required_of(volume.spec.node_affinity))
