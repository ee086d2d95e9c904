"""What VolumeBinding asks of the API: write two kinds of objects, and whether a pod is still there.

Upstream: pkg/scheduler/framework/plugins/volumebinding/binder.go, bindAPIUpdate (v1.36)
Differs:  the API is behind a narrow protocol.
"""

from __future__ import annotations

from typing import Protocol

from kubesched.api.core import PersistentVolume, PersistentVolumeClaim


class VolumeWriteError(Exception):
    """The API refused; the text is the API's."""


class VolumeWriter(Protocol):
    """Writes volumes and claims.

    Objects here hold only the fields that scheduling reads, so an implementation writes the named
    fields and leaves the others alone. `metadata.resourceVersion` guards against lost updates.
    """

    async def update_persistent_volume(self, volume: PersistentVolume) -> PersistentVolume:
        """Write `spec.claimRef` and the annotations; return the object as stored.

        Raises:
            VolumeWriteError: The API refused.
        """
        ...

    async def update_persistent_volume_claim(
        self, claim: PersistentVolumeClaim
    ) -> PersistentVolumeClaim:
        """Write the annotations; return the object as stored.

        Raises:
            VolumeWriteError: The API refused.
        """
        ...

    def has_pod(self, namespace: str, name: str) -> bool:
        """Whether the pod exists, as far as is known."""
        ...
