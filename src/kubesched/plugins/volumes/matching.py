"""The best volume per row for an unbound claim, found in columns of each storage class's volumes.

Upstream: component-helpers/storage/volume/pv_helpers.go, FindMatchingVolume (v1.36)
Reads:    persistentvolumeclaim.spec; persistentvolume.spec, .status.phase; nodes.labels
Invariants: kept columns equal new ones (tests/plugins/volumes/test_decisions.py).
Differs:  among volumes of equal size, the first by name is taken; upstream takes any.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Sequence
from operator import itemgetter
from typing import Final

import msgspec
import numpy as np
from numpy.typing import NDArray

from kubesched.api.meta import NodeSelectorTerm
from kubesched.api.quantity import nano_value
from kubesched.api.requirements import CompiledSelector
from kubesched.api.selectors import compile_label_selector, label_selector_error
from kubesched.api.volume import PersistentVolume, PersistentVolumeClaim
from kubesched.plugins.volumes.assume_cache import AssumeCache
from kubesched.plugins.volumes.claims import STORAGE, class_of_volume
from kubesched.plugins.volumes.node_access import NodeAccess, Pairs, pairs_of, terms_of_volume
from kubesched.snapshot.changes import ChangeReader
from kubesched.snapshot.objects import ObjectName, Objects

NO_VOLUME: Final = -1
_FILESYSTEM: Final = "Filesystem"
_AVAILABLE: Final = "Available"


class MatchingError(Exception):
    """The claim's selector is invalid; the text has the reason."""


class VolumeTraits(msgspec.Struct, frozen=True):
    """What a claim requires of a volume, apart from its size, labels and reach."""

    volume_mode: str
    attributes_class: str
    access_modes: tuple[str, ...]

    @classmethod
    def of(cls, item: PersistentVolume | PersistentVolumeClaim) -> VolumeTraits:
        """Return the traits that a volume has, or that a claim requires."""
        spec = item.spec
        return cls(
            spec.volume_mode or _FILESYSTEM,
            spec.volume_attributes_class_name or "",
            tuple(spec.access_modes),
        )

    def serve(self, wanted: VolumeTraits) -> bool:
        """Whether a volume with these traits has those that a claim requires."""
        return self.is_of_mode(wanted) and all(
            mode in self.access_modes for mode in wanted.access_modes
        )

    def is_of_mode(self, wanted: VolumeTraits) -> bool:
        """Whether all but the access modes are as required."""
        return (
            self.volume_mode == wanted.volume_mode
            and self.attributes_class == wanted.attributes_class
        )


class ClassVolumes:
    """The volumes of one class: those that are free, and those that refer to a claim.

    Free volumes have positions, in order of size and then of name. A volume that is taken keeps its
    position, because most changes are volumes that pods take. Volumes with the same node affinity
    have the same reach.

    Attributes:
        volumes: The volume at each position.
    """

    def __init__(self) -> None:
        self.volumes: list[PersistentVolume] = []
        self._known: dict[str, PersistentVolume] = {}
        self._reserved: dict[tuple[str, str], dict[str, PersistentVolume]] = {}
        self._arrange()

    def remove(self, name: str) -> None:
        """Remove a volume."""
        ref = self._known.pop(name).spec.claim_ref
        if ref is not None:
            held = self._reserved[ref.namespace, ref.name]
            del held[name]
            if not held:
                del self._reserved[ref.namespace, ref.name]
        elif name in self._positions:
            self._is_free[self._positions[name]] = False

    def add(self, volume: PersistentVolume) -> None:
        """Add a volume that is not there."""
        name, ref = volume.metadata.name, volume.spec.claim_ref
        self._known[name] = volume
        if ref is not None:
            self._reserved.setdefault((ref.namespace, ref.name), {})[name] = volume
        elif _is_available(volume):
            at = self._positions.get(name)
            if at is None or _columns_of(self.volumes[at]) != _columns_of(volume):
                self._is_arranged = False
            else:
                self.volumes[at] = volume
                self._is_free[at] = True

    def arrange(self) -> None:
        """Give every free volume a position."""
        if not self._is_arranged:
            self._arrange()

    def reserved_for(self, claim: PersistentVolumeClaim) -> list[PersistentVolume]:
        """Return the volumes that refer to a claim by its name, in order of their names."""
        metadata = claim.metadata
        held = self._reserved.get((metadata.namespace, metadata.name), {})
        return [held[name] for name in sorted(held)]

    def serving(self, wanted: VolumeTraits, size: int) -> NDArray[np.bool_]:
        """Return, as bool per position, which volumes are free, large enough and of these traits.

        `size` is in units of 10^-9 bytes.
        """
        serves = np.array([traits.serve(wanted) for traits in self._traits], np.bool_)
        mask = serves[self._trait_codes] & self._is_free
        mask[: bisect_left(self._keys, (size, ""))] = False
        return mask

    def smallest_in_reach(
        self, candidates: NDArray[np.bool_], taken: Sequence[NDArray[np.int32]], access: NodeAccess
    ) -> NDArray[np.int32]:
        """Return the first candidate that each row reaches and that is not taken there.

        Per row as int32: its position; the number of positions if there is none. `taken` has such
        arrays, one for each earlier claim.
        """
        nothing = len(self.volumes)
        best = np.full(len(access.nodes), nothing, np.int32)
        reach, rows = self._pairs_of(access)
        for nth in self._first_of_reaches(candidates, len(taken) + 1):
            offered = nth[reach]
            for before in taken:
                offered[before[rows] == offered] = nothing
            np.minimum.at(best, rows, offered)
        return best

    def _arrange(self) -> None:
        free = filter(_is_available, self._known.values())
        columns = [(*_columns_of(volume), volume) for volume in free]
        columns.sort(key=itemgetter(0))
        traits: dict[VolumeTraits, int] = {}
        reaches: dict[tuple[NodeSelectorTerm, ...], int] = {}
        trait_codes = [traits.setdefault(trait, len(traits)) for _, trait, _, _ in columns]
        reach_codes = [reaches.setdefault(reach, len(reaches)) for _, _, reach, _ in columns]
        self.volumes = [volume for _, _, _, volume in columns]
        self._keys = [key for key, _, _, _ in columns]
        self._positions = {name: at for at, (_, name) in enumerate(self._keys)}
        self._traits, self._reaches = list(traits), list(reaches)
        self._trait_codes = np.array(trait_codes, np.int32)
        self._reach_codes = np.array(reach_codes, np.int32)
        self._is_free = np.ones(len(columns), np.bool_)
        self._pairs: tuple[NodeAccess, Pairs] | None = None
        self._is_arranged = True

    def _first_of_reaches(self, candidates: NDArray[np.bool_], count: int) -> NDArray[np.int32]:
        """Return the positions of the first candidates of each reach; count x reaches."""
        first = np.full((count, len(self._reaches)), len(self.volumes), np.int32)
        at = np.flatnonzero(candidates)
        reaches = self._reach_codes[at]
        if count == 1:
            first[0, reaches[::-1]] = at[::-1]
            return first
        order = np.argsort(reaches, kind="stable")
        at, reaches = at[order], reaches[order]
        nth = np.arange(len(at)) - reaches.searchsorted(reaches)
        is_early = nth < count
        first[nth[is_early], reaches[is_early]] = at[is_early]
        return first

    def _pairs_of(self, access: NodeAccess) -> Pairs:
        """Return each pair of a reach and a row in it."""
        if self._pairs is None or self._pairs[0] is not access:
            self._pairs = access, pairs_of([access.of_terms(terms) for terms in self._reaches])
        return self._pairs[1]


class VolumesByClass:
    """The volumes of each storage class, as assumed, kept up to date change by change."""

    def __init__(self, assumed: AssumeCache[PersistentVolume]) -> None:
        self._assumed = assumed
        self._changed: ChangeReader[ObjectName] = ChangeReader()
        self._changed_assumed: ChangeReader[str] = ChangeReader()
        self._class_of: dict[str, str] = {}
        self._classes: dict[str, ClassVolumes] = {}

    def of(self, objects: Objects, storage_class: str) -> ClassVolumes:
        """Return the volumes of a class."""
        written = self._changed.read(objects.changes_of(PersistentVolume))
        assumed = self._changed_assumed.read(self._assumed.changes)
        if written is None or assumed is None:
            self._class_of, self._classes = {}, {}
            changed = {volume.metadata.name for volume in objects.list(PersistentVolume)}
        else:
            changed = {name for _, name in written} | set(assumed)
        for name in changed:
            self._follow(objects, name)
        found = self._classes.get(storage_class)
        if found is None:
            found = self._classes[storage_class] = ClassVolumes()
        found.arrange()
        return found

    def _follow(self, objects: Objects, name: str) -> None:
        before = self._class_of.pop(name, None)
        if before is not None:
            self._classes[before].remove(name)
        volume = self._assumed.get(objects, name)
        if volume is not None:
            self._class_of[name] = now = class_of_volume(volume)
            if now not in self._classes:
                self._classes[now] = ClassVolumes()
            self._classes[now].add(volume)


class Match(msgspec.Struct, frozen=True):
    """The volume that a claim gets on each row.

    Attributes:
        claim: The claim.
        volumes: The volumes to choose from.
        chosen: int32 per row: the position of the volume in `volumes`, or NO_VOLUME.
    """

    claim: PersistentVolumeClaim
    volumes: Sequence[PersistentVolume]
    chosen: NDArray[np.int32]

    def volume_on(self, row: int) -> PersistentVolume | None:
        """Return the volume that the claim gets on a row, or None."""
        at = self.chosen.item(row)
        return None if at == NO_VOLUME else self.volumes[at]


class OfferedVolumes:
    """The volumes of a class that the claims of one pod may get, one claim after the other."""

    def __init__(
        self, of_class: ClassVolumes, claims: Iterable[PersistentVolumeClaim], access: NodeAccess
    ) -> None:
        self._of_class = of_class
        self._access = access
        # A pod may name a claim twice.
        claims = {claim.metadata.name: claim for claim in claims}.values()
        self._reserved = [one for claim in claims for one in of_class.reserved_for(claim)]
        self._volumes = of_class.volumes
        if self._reserved:
            self._volumes = [*of_class.volumes, *self._reserved]
        self._taken: list[NDArray[np.int32]] = []

    def match(self, claim: PersistentVolumeClaim) -> Match:
        """Find the best volume for an unbound claim on each row that earlier claims have left.

        Raises MatchingError if the claim's selector is invalid.
        """
        selector, of_class, rows = _selector_of(claim), self._of_class, len(self._access.nodes)
        chosen = np.full(rows, NO_VOLUME, np.int32)
        open_ = np.ones(rows, np.bool_)
        for at, volume in enumerate(self._reserved, len(of_class.volumes)):
            if is_bound_to(volume, claim) and _is_usable(volume, claim):
                # It is used, except on rows where an earlier claim got it.
                settled = open_.copy()
                for before in self._taken:
                    settled &= before != at
                reached = self._access.of_terms(terms_of_volume(volume))
                chosen[reached[settled[reached]]] = at
                open_ &= ~settled
        candidates = of_class.serving(VolumeTraits.of(claim), requested_size(claim))
        if selector is not None:
            for at in np.flatnonzero(candidates).tolist():
                candidates[at] = selector.matches(of_class.volumes[at].metadata.labels)
        if candidates.any() and open_.any():
            best = of_class.smallest_in_reach(candidates, self._taken, self._access)
            open_ &= best < len(of_class.volumes)
            chosen[open_] = best[open_]
        self._taken.append(chosen)
        return Match(claim, self._volumes, chosen)


def why_not_matching(
    claim: PersistentVolumeClaim, volume: PersistentVolume, access: NodeAccess
) -> str:
    """Return briefly why the claim does not get the volume on the only row of `access`."""
    is_own = is_bound_to(volume, claim)
    if volume.spec.claim_ref is not None and not is_own:
        return "kept for other claims"
    if not is_own and volume.status.phase != _AVAILABLE:
        return "not available"
    if _size_of(volume) < requested_size(claim):
        return "too small"
    if not _is_usable(volume, claim) or not (is_own or _is_selected(volume, claim)):
        return "of another mode, or not selected"
    if not len(access.of_terms(terms_of_volume(volume))):
        return "out of the node's reach"
    return "given to another claim of the pod"


def requested_size(claim: PersistentVolumeClaim) -> int:
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


def _is_available(volume: PersistentVolume) -> bool:
    return (
        volume.spec.claim_ref is None
        and volume.status.phase == _AVAILABLE
        and volume.metadata.deletion_timestamp is None
    )


def _is_usable(volume: PersistentVolume, claim: PersistentVolumeClaim) -> bool:
    """Whether the volume is large enough, of the claim's mode and not being deleted."""
    return (
        _size_of(volume) >= requested_size(claim)
        and VolumeTraits.of(volume).is_of_mode(VolumeTraits.of(claim))
        and volume.metadata.deletion_timestamp is None
    )


def _is_selected(volume: PersistentVolume, claim: PersistentVolumeClaim) -> bool:
    """Whether a volume has the claim's access modes and matches its selector."""
    selector = _selector_of(claim)
    return VolumeTraits.of(volume).serve(VolumeTraits.of(claim)) and (
        selector is None or selector.matches(volume.metadata.labels)
    )


def _size_of(volume: PersistentVolume) -> int:
    """Return the size in units of 10^-9 bytes."""
    return nano_value(volume.spec.capacity.get(STORAGE, 0))


def _columns_of(
    volume: PersistentVolume,
) -> tuple[tuple[int, str], VolumeTraits, tuple[NodeSelectorTerm, ...]]:
    """Return the size and name, the traits and the reach."""
    key = _size_of(volume), volume.metadata.name
    return key, VolumeTraits.of(volume), terms_of_volume(volume)
