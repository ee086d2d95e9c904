"""VolumeClient updates PersistentVolumes and their claims for volume binding.

Upstream: pkg/scheduler/framework/plugins/volumebinding/binder.go, bindAPIUpdate (v1.36)
Differs:  each update begins with a GET, see `client.whole_objects`.
"""

from __future__ import annotations

import msgspec

from kubesched.api.core import PersistentVolume, PersistentVolumeClaim
from kubesched.api.meta import ObjectMeta
from kubesched.client.requests import Rest
from kubesched.client.whole_objects import Plain, WholeObjects, part_of, set_or_remove


class VolumeClient:
    """Writes volumes and claims. All methods raise `ApiError` if the request fails."""

    def __init__(self, rest: Rest) -> None:
        self._objects = WholeObjects(rest)

    async def update_persistent_volume(self, volume: PersistentVolume) -> PersistentVolume:
        """Write `spec.claimRef` and the annotations; return the volume as stored."""

        def change(item: Plain) -> None:
            _annotate(item, volume.metadata)
            reference = msgspec.to_builtins(volume.spec.claim_ref)
            set_or_remove(part_of(item, "spec"), "claimRef", reference)

        return await self._objects.update(PersistentVolume, volume.metadata, change)

    async def update_persistent_volume_claim(
        self, claim: PersistentVolumeClaim
    ) -> PersistentVolumeClaim:
        """Write the annotations; return the claim as stored."""

        def change(item: Plain) -> None:
            _annotate(item, claim.metadata)

        return await self._objects.update(PersistentVolumeClaim, claim.metadata, change)


def _annotate(item: Plain, metadata: ObjectMeta) -> None:
    set_or_remove(part_of(item, "metadata"), "annotations", dict(metadata.annotations))
