"""NamespaceDefaults gives every namespace what pods and programs expect to find in it.

Upstream: pkg/controller/serviceaccount/serviceaccounts_controller.go,
          pkg/controller/certificates/rootcacertpublisher (v1.36)
Differs:  service accounts have no secrets, and pods mount neither object.
"""

from __future__ import annotations

from contextlib import suppress

from kubesched.api.errors import AlreadyExistsError
from kubesched.cluster.controllers.work_queue import Controller
from kubesched.cluster.server import AnyKindServer, Plain
from kubesched.cluster.store import Key


class NamespaceDefaults(Controller):
    """Keeps the service account `default` and the ConfigMap `kube-root-ca.crt` in each namespace.

    The latter has the certificate authority of the API server, as PEM.
    """

    def __init__(self, server: AnyKindServer, root_certificate: str) -> None:
        super().__init__()
        self._server = server
        self._wanted: dict[str, Plain] = {
            "serviceaccounts": {"metadata": {"name": "default"}},
            "configmaps": {
                "metadata": {"name": "kube-root-ca.crt"},
                "data": {"ca.crt": root_certificate},
            },
        }
        self._followed = (
            server.follow("namespaces", self._namespace_changed),
            *(server.follow(kind, self._object_changed) for kind in self._wanted),
        )

    def _namespace_changed(self, key: Key, _before: Plain | None, after: Plain | None) -> None:
        if after is not None:
            self._queue.add(key)

    def _object_changed(self, key: Key, _before: Plain | None, _after: Plain | None) -> None:
        if key.name == self._wanted[key.kind]["metadata"]["name"]:
            self._queue.add(Key("namespaces", "", key.namespace))

    def _reconcile(self, key: Key) -> None:
        namespace = self._server.find(*key)
        if namespace is None or namespace["metadata"].get("deletionTimestamp"):
            return
        for kind, wanted in self._wanted.items():
            own = Key(kind, key.name, wanted["metadata"]["name"])
            found = self._server.find(*own)
            if found is None:
                metadata = {**wanted["metadata"], "namespace": key.name}
                with suppress(AlreadyExistsError):
                    self._server.create(kind, {**wanted, "metadata": metadata})
            elif found.get("data") != wanted.get("data"):
                self._server.write(own, {**found, "data": wanted["data"]})
