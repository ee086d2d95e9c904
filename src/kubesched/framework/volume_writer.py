"""VolumeWriter: the API calls of VolumeBinding.

Upstream: pkg/scheduler/framework/plugins/volumebinding/binder.go, bindAPIUpdate (v1.36)
Differs:  a protocol with only the calls that the plugin makes.
"""

from __future__ import annotations

from typing import Protocol

from kubesched.api.core import PersistentVolume, PersistentVolumeClaim


class VolumeWriteError(Exception):
    """The API server rejected a write; the text is the API server's."""


class VolumeWriter(Protocol):
    """Writes volumes and claims.

    The objects hold only the fields that scheduling reads, so an implementation must write only
    the named fields. `metadata.resourceVersion` guards against lost updates.
    """

    async def update_persistent_volume(self, volume: PersistentVolume) -> PersistentVolume:
        """Write `spec.claimRef` and the annotations; return the stored object.

        Raises:
            VolumeWriteError: The API server rejected the write.
        """
        ...

    async def update_persistent_volume_claim(
        self, claim: PersistentVolumeClaim
    ) -> PersistentVolumeClaim:
        """Write the annotations; return the stored object.

        Raises:
            VolumeWriteError: The API server rejected the write.
        """
        ...

    def has_pod(self, namespace: str, name: str) -> bool:
        """Whether the pod exists, according to the informer cache."""
        ...
