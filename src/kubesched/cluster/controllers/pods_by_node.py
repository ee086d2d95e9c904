"""PodsByNode tracks the pods of each node."""

from __future__ import annotations

from kubesched.api.core import Pod
from kubesched.cluster.server import OnChange, Server
from kubesched.cluster.store import Key


class PodsByNode:
    """One watch on pods for all controllers that need them by node."""

    def __init__(self, server: Server) -> None:
        """Set up; nothing happens before `start`."""
        self._keys: dict[str, dict[Key, None]] = {}
        self._subscribers: list[OnChange[Pod]] = []
        self._pods = server.watch(Pod, self._changed)

    def start(self) -> None:
        """Watch pods from now on."""
        self._pods.start()

    def stop(self) -> None:
        """Stop watching."""
        self._pods.stop()

    def subscribe(self, on_change: OnChange[Pod]) -> None:
        """Report changes to pods that were or are bound."""
        self._subscribers.append(on_change)

    def on(self, node_name: str) -> tuple[Key, ...]:
        """Return the pods of a node, in the order in which they were bound."""
        return tuple(self._keys.get(node_name, ()))

    def _changed(self, key: Key, before: Pod | None, after: Pod | None) -> None:
        old, new = node_name_of(before), node_name_of(after)
        if old and old != new:
            keys = self._keys[old]
            del keys[key]
            if not keys:
                del self._keys[old]
        if new:
            self._keys.setdefault(new, {})[key] = None
        if old or new:
            for on_change in self._subscribers:
                on_change(key, before, after)


def node_name_of(pod: Pod | None) -> str:
    """Return the node that a pod is bound to, "" if it is bound to none or gone."""
    return "" if pod is None else pod.spec.node_name
