"""FreeVolumes: the volumes of a storage class that a claim may get, in columns.

Upstream: component-helpers/storage/volume/pv_helpers.go, FindMatchingVolume (v1.36)
Reads:    persistentvolume.spec, .status.phase
Invariants: equals what a new instance would hold (tests/plugins/volumes/test_free_volumes.py).
Differs:  among volumes of equal size, the first by name is taken; upstream takes any.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Sequence
from typing import Final

import msgspec
import numpy as np
from numpy.typing import NDArray

from kubesched.api.meta import NodeSelectorTerm
from kubesched.api.quantity import nano_value
from kubesched.api.volume import PersistentVolume, PersistentVolumeClaim
from kubesched.plugins.volumes.assume_cache import AssumeCache
from kubesched.plugins.volumes.claims import STORAGE, class_of_volume
from kubesched.plugins.volumes.node_access import NodeAccess, terms_of_volume
from kubesched.snapshot.objects import Objects

_FILESYSTEM: Final = "Filesystem"
_AVAILABLE: Final = "Available"
_CHANGES_FEW: Final = 64
"""Up to this number of changes, applying them takes less time than starting anew."""


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


class FreeVolumes:
    """The volumes of one class: those that are free, and those that are reserved for a claim.

    The free ones have positions, in order of size and then of name. Volumes with the same node
    affinity have the same reach.

    Attributes:
        volumes: The volume at each position; another list after each change.
    """

    def __init__(self, volumes: Iterable[PersistentVolume] = ()) -> None:
        free = []
        self._reserved: dict[tuple[str, str], dict[str, PersistentVolume]] = {}
        for volume in volumes:
            if _is_available(volume):
                free.append(volume)
            else:
                self._reserve(volume)
        free.sort(key=_key_of)
        self.volumes: Sequence[PersistentVolume] = free
        self._keys = [_key_of(volume) for volume in free]
        self._trait_codes: dict[VolumeTraits, int] = {}
        self._reach_codes: dict[tuple[NodeSelectorTerm, ...], int] = {}
        codes = [self._codes_of(volume) for volume in free]
        self._traits = np.array([trait for trait, _ in codes], np.int32)
        self._reaches = np.array([reach for _, reach in codes], np.int32)
        self._pairs_for: tuple[NodeAccess | None, int] = (None, 0)
        self._pairs: tuple[NDArray[np.intp], NDArray[np.intp]] | None = None

    def remove(self, volume: PersistentVolume) -> None:
        """Remove a volume, which is as it was when it was added."""
        ref = volume.spec.claim_ref
        if _is_available(volume):
            at = bisect_left(self._keys, _key_of(volume))
            self.volumes = [*self.volumes[:at], *self.volumes[at + 1 :]]
            del self._keys[at]
            self._traits = np.delete(self._traits, at)
            self._reaches = np.delete(self._reaches, at)
        elif ref is not None:
            held = self._reserved.get((ref.namespace, ref.name), {})
            held.pop(volume.metadata.name, None)
            if not held:
                self._reserved.pop((ref.namespace, ref.name), None)

    def add(self, volume: PersistentVolume) -> None:
        """Add a volume that is not there."""
        if not _is_available(volume):
            self._reserve(volume)
            return
        key, (trait, reach) = _key_of(volume), self._codes_of(volume)
        at = bisect_left(self._keys, key)
        self.volumes = [*self.volumes[:at], volume, *self.volumes[at:]]
        self._keys.insert(at, key)
        self._traits = np.insert(self._traits, at, trait)
        self._reaches = np.insert(self._reaches, at, reach)

    @property
    def is_outgrown(self) -> bool:
        """Whether most reaches are those of volumes that are gone."""
        return len(self._reach_codes) > 2 * len(self.volumes) + _CHANGES_FEW

    def reserved_for(self, claim: PersistentVolumeClaim) -> list[PersistentVolume]:
        """Return the volumes that refer to a claim by its name, in order of their names."""
        metadata = claim.metadata
        held = self._reserved.get((metadata.namespace, metadata.name), {})
        return [held[name] for name in sorted(held)]

    def serving(self, wanted: VolumeTraits, size: int) -> NDArray[np.bool_]:
        """Return, as bool per position, which volumes are large enough and of these traits.

        `size` is in units of 10^-9 bytes.
        """
        serves = np.array([traits.serve(wanted) for traits in self._trait_codes], np.bool_)
        mask = serves[self._traits]
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

    def _first_of_reaches(self, candidates: NDArray[np.bool_], count: int) -> NDArray[np.int32]:
        """Return the positions of the first candidates of each reach; count x reaches."""
        first = np.full((count, len(self._reach_codes)), len(self.volumes), np.int32)
        at = np.flatnonzero(candidates)
        reaches = self._reaches[at]
        if count == 1:
            first[0, reaches[::-1]] = at[::-1]
            return first
        order = np.argsort(reaches, kind="stable")
        at, reaches = at[order], reaches[order]
        nth = np.arange(len(at)) - reaches.searchsorted(reaches)
        is_early = nth < count
        first[nth[is_early], reaches[is_early]] = at[is_early]
        return first

    def _pairs_of(self, access: NodeAccess) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
        """Return each pair of a reach and a row in it."""
        pairs_for = (access, len(self._reach_codes))
        if self._pairs is None or self._pairs_for != pairs_for:
            rows = [access.of_terms(terms) for terms in self._reach_codes]
            reach = np.repeat(np.arange(len(rows)), [len(one) for one in rows])
            self._pairs = reach, np.concatenate([*rows, np.empty(0, np.intp)])
            self._pairs_for = pairs_for
        return self._pairs

    def _reserve(self, volume: PersistentVolume) -> None:
        ref = volume.spec.claim_ref
        if ref is not None and volume.metadata.deletion_timestamp is None:
            held = self._reserved.setdefault((ref.namespace, ref.name), {})
            held[volume.metadata.name] = volume

    def _codes_of(self, volume: PersistentVolume) -> tuple[int, int]:
        """Return the codes of a volume's traits and of its reach."""
        traits, terms = VolumeTraits.of(volume), terms_of_volume(volume)
        return (
            self._trait_codes.setdefault(traits, len(self._trait_codes)),
            self._reach_codes.setdefault(terms, len(self._reach_codes)),
        )


class VolumesByClass:
    """The free volumes of each storage class, as assumed, kept up to date change by change."""

    def __init__(self, assumed: AssumeCache[PersistentVolume]) -> None:
        self._assumed = assumed
        self._objects: Objects | None = None
        self._versions = (0, 0)
        self._volumes: dict[str, PersistentVolume] = {}
        self._classes: dict[str, FreeVolumes] = {}

    def of(self, objects: Objects, storage_class: str) -> FreeVolumes:
        """Return the free volumes of a class."""
        changed = self._changed(objects)
        self._objects = objects
        self._versions = objects.version(PersistentVolume), self._assumed.changes.version
        if changed is None or len(changed) > _CHANGES_FEW:
            self._begin(objects)
        else:
            for name in changed:
                self._follow(objects, name)
        found = self._classes.get(storage_class)
        if found is not None and found.is_outgrown:
            self._begin(objects)
            found = self._classes.get(storage_class)
        if found is None:
            found = self._classes[storage_class] = FreeVolumes()
        return found

    def _changed(self, objects: Objects) -> set[str] | None:
        """Return the names of the volumes that have changed; None if that is not known."""
        if objects is not self._objects:
            return None
        stored, assumed = self._versions
        written = objects.changed_since(PersistentVolume, stored)
        assumptions = self._assumed.changes.since(assumed)
        if written is None or assumptions is None:
            return None
        return {name for _, name in written} | set(assumptions)

    def _begin(self, objects: Objects) -> None:
        volumes = [self._assumed.current(one) for one in objects.list(PersistentVolume)]
        self._volumes = {volume.metadata.name: volume for volume in volumes}
        by_class: dict[str, list[PersistentVolume]] = {}
        for volume in volumes:
            by_class.setdefault(class_of_volume(volume), []).append(volume)
        self._classes = {name: FreeVolumes(some) for name, some in by_class.items()}

    def _follow(self, objects: Objects, name: str) -> None:
        before = self._volumes.pop(name, None)
        if before is not None:
            self._classes[class_of_volume(before)].remove(before)
        volume = self._assumed.get(objects, name)
        if volume is not None:
            self._volumes[name] = volume
            self._classes.setdefault(class_of_volume(volume), FreeVolumes()).add(volume)


def _is_available(volume: PersistentVolume) -> bool:
    return (
        volume.spec.claim_ref is None
        and volume.status.phase == _AVAILABLE
        and volume.metadata.deletion_timestamp is None
    )


def _key_of(volume: PersistentVolume) -> tuple[int, str]:
    """Return the size in units of 10^-9 bytes, and the name."""
    return nano_value(volume.spec.capacity.get(STORAGE, 0)), volume.metadata.name
