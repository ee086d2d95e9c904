"""Finds the best volume per row for an unbound claim.

Upstream: component-helpers/storage/volume/pv_helpers.go, FindMatchingVolume (v1.36)
Reads:    persistentvolumeclaim.spec; persistentvolume.spec, .status.phase; nodes.labels
Differs:  among volumes of equal size, the first to arrive is taken; upstream takes any.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from kubesched.api.core import PersistentVolume, PersistentVolumeClaim
from kubesched.api.quantity import nano_value
from kubesched.api.requirements import CompiledSelector
from kubesched.api.selectors import compile_label_selector, label_selector_error
from kubesched.plugins.volumes.claims import class_of_claim, class_of_volume
from kubesched.plugins.volumes.node_access import NodeAccess, required_of

NO_VOLUME: Final = -1
STORAGE: Final = "storage"
_FILESYSTEM: Final = "Filesystem"
_AVAILABLE: Final = "Available"


class MatchingError(Exception):
    """The claim's selector is invalid; the text has the reason."""


def find_matching_volumes(
    claim: PersistentVolumeClaim,
    volumes: Sequence[PersistentVolume],
    taken: Sequence[NDArray[np.int32]],
    access: NodeAccess,
) -> NDArray[np.int32]:
    """Find the best volume for an unbound claim on each row, among those of its class.

    `taken` has the results for the pod's earlier claims of this class. Returns the position in
    `volumes` per row, as int32; NO_VOLUME where there is none.

    Raises:
        MatchingError: The claim's selector is invalid.
    """
    selector = _selector_of(claim)
    chosen = np.full(len(access.nodes), NO_VOLUME, np.int32)
    open_ = np.ones(len(access.nodes), np.bool_)
    fitting = [at for at, volume in enumerate(volumes) if _is_fitting(volume, claim)]
    own = [at for at in fitting if is_bound_to(volumes[at], claim)]
    for at in own:
        # A volume reserved for the claim is used, except on rows where an earlier claim got it.
        settled = open_ & _is_left(at, taken, len(open_))
        reached = _rows_of(volumes[at], access)
        chosen[reached[settled[reached]]] = at
        open_ &= ~settled
    candidates = [
        at for at in fitting if at not in own and _is_candidate(volumes[at], claim, selector)
    ]
    candidates.sort(key=lambda at: nano_value(volumes[at].spec.capacity.get(STORAGE, 0)))
    missing = int(np.count_nonzero(open_))
    for at in candidates:
        if missing == 0:
            break
        rows = _rows_of(volumes[at], access)
        rows = rows[open_[rows]]
        for before in taken:
            rows = rows[before[rows] != at]
        chosen[rows] = at
        open_[rows] = False
        missing -= len(rows)
    return chosen


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
        is_bound_to(volume, claim) or _is_candidate(volume, claim, _selector_of(claim))
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
    """Whether the volume meets the claim's requirements, apart from its selector."""
    held, wanted = volume.spec, claim.spec
    if held.claim_ref is not None and not is_bound_to(volume, claim):
        return False
    return (
        nano_value(held.capacity.get(STORAGE, 0)) >= _requested(claim)
        and (held.volume_mode or _FILESYSTEM) == (wanted.volume_mode or _FILESYSTEM)
        and (held.volume_attributes_class_name or "") == (wanted.volume_attributes_class_name or "")
        and volume.metadata.deletion_timestamp is None
    )


def _is_candidate(
    volume: PersistentVolume, claim: PersistentVolumeClaim, selector: CompiledSelector | None
) -> bool:
    """Whether a fitting volume is available to the claim."""
    return (
        volume.status.phase == _AVAILABLE
        and (selector is None or selector.matches(volume.metadata.labels))
        and class_of_volume(volume) == class_of_claim(claim)
        and all(mode in volume.spec.access_modes for mode in claim.spec.access_modes)
    )


def _is_left(at: int, taken: Sequence[NDArray[np.int32]], rows: int) -> NDArray[np.bool_]:
    """Return the rows on which no earlier claim got the volume."""
    left = np.ones(rows, np.bool_)
    for before in taken:
        left &= before != at
    return left


def _rows_of(volume: PersistentVolume, access: NodeAccess) -> NDArray[np.intp]:
    return access.of_selector(required_of(volume.spec.node_affinity))
