"""NamespaceController deletes the content of terminating namespaces, then removes the finalizer.

Upstream: pkg/controller/namespace/deletion (v1.36)
Differs:  no condition of the namespace lists what is left in it.
"""

from __future__ import annotations

from typing import Final

from kubesched.api.errors import NotFoundError
from kubesched.cluster.controllers.following import Following
from kubesched.cluster.controllers.work_queue import WorkQueue
from kubesched.cluster.server import AnyKindServer, Plain, key_of_plain
from kubesched.cluster.store import Key

_FINALIZER: Final = "kubernetes"
_PAUSE_SECONDS: Final = 0.2


class NamespaceController(Following):
    """Reconciles Namespaces."""

    def __init__(self, server: AnyKindServer) -> None:
        """Set up; nothing happens before `start`."""
        self._server = server
        self._queue = WorkQueue(self._reconcile)
        self._followed = (server.follow("namespaces", self._changed),)

    def _changed(self, key: Key, _before: Plain | None, after: Plain | None) -> None:
        if after is not None and after["metadata"].get("deletionTimestamp"):
            self._queue.add(key)

    def _reconcile(self, key: Key) -> None:
        namespace = self._server.find(*key)
        if namespace is None or not namespace["metadata"].get("deletionTimestamp"):
            return
        if self._empty(key.name):
            self._let_go(key, namespace)
        else:
            self._queue.add_after(key, _PAUSE_SECONDS)

    def _empty(self, name: str) -> bool:
        """Delete the objects of a namespace; return whether none is left."""
        is_empty = True
        for kind in self._server.kinds(only_namespaced=True):
            if not self._server.count(kind):
                continue
            for plain in self._server.list(kind, name):
                if not plain["metadata"].get("deletionTimestamp"):
                    self._server.delete(key_of_plain(kind, plain), plain["metadata"]["uid"])
            is_empty = is_empty and not self._server.list(kind, name)
        return is_empty

    def _let_go(self, key: Key, namespace: Plain) -> None:
        spec = dict(namespace.get("spec", {}))
        spec["finalizers"] = [one for one in spec.get("finalizers", []) if one != _FINALIZER]
        if not spec["finalizers"]:
            del spec["finalizers"]
        if spec != namespace.get("spec", {}):
            namespace = self._server.write(key, {**namespace, "spec": spec})
        if "finalizers" not in spec and not namespace["metadata"].get("finalizers"):
            try:
                self._server.delete(key, namespace["metadata"]["uid"])
            except NotFoundError:
                return
