"""PodsByNode knows which pods are bound to each node."""

from __future__ import annotations

from kubesched.api.core import Pod
from kubesched.cluster.store import Key


class PodsByNode:
    """Keys of pods by the name of their node, in the order in which they were bound."""

    def __init__(self) -> None:
        self._keys: dict[str, dict[Key, None]] = {}

    def change(self, key: Key, before: Pod | None, after: Pod | None) -> str:
        """Apply a change of a pod; return the name of its node, "" for none."""
        old = "" if before is None else before.spec.node_name
        new = "" if after is None else after.spec.node_name
        if old and old != new:
            keys = self._keys[old]
            del keys[key]
            if not keys:
                del self._keys[old]
        if new:
            self._keys.setdefault(new, {})[key] = None
        return new

    def on(self, node_name: str) -> tuple[Key, ...]:
        """Return the pods of a node."""
        return tuple(self._keys.get(node_name, ()))
