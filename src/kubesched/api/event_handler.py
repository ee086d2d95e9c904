"""ResourceEventHandler receives the objects of a cluster as they come, change and go."""

from __future__ import annotations

from typing import Protocol

from kubesched.api.meta import KubeObject


class ResourceEventHandler(Protocol):
    """Handles the events of objects."""

    def added(self, item: KubeObject, /) -> None:
        """Handle a new object."""

    def updated(self, old: KubeObject, new: KubeObject, /) -> None:
        """Handle a changed object."""

    def deleted(self, item: KubeObject, /, *, is_final_state_known: bool = True) -> None:
        """Handle a deletion; if the final state is not known, `item` is the last seen."""
