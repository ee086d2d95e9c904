"""NamespaceController empties namespaces that are deleted, and then lets them go.

Upstream: pkg/controller/namespace/deletion (v1.36)
Differs:  the namespace's conditions do not say what is left in it.
"""

from __future__ import annotations

from typing import Final

from kubesched.api.errors import NotFoundError
from kubesched.apiserver.controllers.work_queue import WorkQueue
from kubesched.apiserver.follower import Follower
from kubesched.apiserver.local_client import LocalClient, key_of
from kubesched.apiserver.plain import Plain
from kubesched.cluster.store import Key

_FINALIZER: Final = "kubernetes"
_PAUSE_SECONDS: Final = 0.2


class NamespaceController:
    """Looks after all namespaces."""

    def __init__(self, client: LocalClient) -> None:
        """Prepare; nothing happens before `start`."""
        self._client = client
        self._queue = WorkQueue(self._reconcile)
        self._follower = Follower(client.store, "namespaces", self._changed)

    def start(self) -> None:
        """Look at all namespaces, and follow from now on."""
        self._follower.start()

    def stop(self) -> None:
        """Do nothing more."""
        self._follower.stop()
        self._queue.stop()

    def _changed(self, key: Key, _before: Plain | None, after: Plain | None) -> None:
        if after is not None and after["metadata"].get("deletionTimestamp"):
            self._queue.add(key)

    def _reconcile(self, key: Key) -> None:
        namespace = self._client.find(*key)
        if namespace is None or not namespace["metadata"].get("deletionTimestamp"):
            return
        if self._empty(key.name):
            self._let_go(key, namespace)
        else:
            self._queue.add_after(key, _PAUSE_SECONDS)

    def _empty(self, name: str) -> bool:
        """Delete what is in a namespace; return whether nothing is left."""
        is_empty = True
        for kind in self._client.kinds(only_namespaced=True):
            if not self._client.store.count(kind):
                continue
            for plain in self._client.list(kind, name):
                if not plain["metadata"].get("deletionTimestamp"):
                    self._client.delete(key_of(kind, plain), plain["metadata"]["uid"])
            is_empty = is_empty and not self._client.list(kind, name)
        return is_empty

    def _let_go(self, key: Key, namespace: Plain) -> None:
        spec = dict(namespace.get("spec", {}))
        spec["finalizers"] = [one for one in spec.get("finalizers", []) if one != _FINALIZER]
        if not spec["finalizers"]:
            del spec["finalizers"]
        if spec != namespace.get("spec", {}):
            namespace = self._client.write(key, {**namespace, "spec": spec})
        if "finalizers" not in spec and not namespace["metadata"].get("finalizers"):
            try:
                self._client.delete(key, namespace["metadata"]["uid"])
            except NotFoundError:
                return
