"""Controllers of what access control needs: accounts in namespaces, and aggregated cluster roles.

Upstream: pkg/controller/serviceaccount/serviceaccounts_controller.go,
          pkg/controller/certificates/rootcacertpublisher, pkg/controller/clusterroleaggregation
          (v1.36)
Reads:    clusterRole.aggregationRule, metadata.labels, rules
Differs:  service accounts have no secrets, and pods mount neither them nor the root certificate.
"""

from __future__ import annotations

from contextlib import suppress
from typing import Final

import msgspec

from kubesched.api.errors import AlreadyExistsError
from kubesched.api.meta import LabelSelector
from kubesched.api.selectors import matches_label_selector
from kubesched.cluster.controllers.controller import Controller
from kubesched.cluster.server import AnyKindServer, Plain, key_of_plain
from kubesched.cluster.store import Key


class NamespaceDefaults(Controller):
    """Keeps the service account `default` and the ConfigMap `kube-root-ca.crt` in each namespace.

    The latter has the certificate authority of the API server, as PEM.
    """

    server: AnyKindServer

    def __init__(self, server: AnyKindServer, root_certificate: str) -> None:
        super().__init__(server)
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
            self._enqueue(key)

    def _object_changed(self, key: Key, _before: Plain | None, _after: Plain | None) -> None:
        if key.name == self._wanted[key.kind]["metadata"]["name"]:
            self._enqueue(Key("namespaces", "", key.namespace))

    def _reconcile(self, key: Key) -> None:
        namespace = self.server.find(*key)
        if namespace is None or namespace["metadata"].get("deletionTimestamp"):
            return
        for kind, wanted in self._wanted.items():
            own = Key(kind, key.name, wanted["metadata"]["name"])
            found = self.server.find(*own)
            if found is None:
                metadata = {**wanted["metadata"], "namespace": key.name}
                with suppress(AlreadyExistsError):
                    self.server.create(kind, {**wanted, "metadata": metadata})
            elif found.get("data") != wanted.get("data"):
                self.server.write(own, {**found, "data": wanted["data"]})


# Cluster roles.

_ROLES: Final = "clusterroles.rbac.authorization.k8s.io"


class ClusterRoleAggregation(Controller):
    """Collects the rules of aggregated ClusterRoles."""

    server: AnyKindServer

    def __init__(self, server: AnyKindServer) -> None:
        super().__init__(server)
        self._followed = (server.follow(_ROLES, self._changed),)

    def _changed(self, _key: Key, _before: Plain | None, _after: Plain | None) -> None:
        # Any role may be part of any other.
        for role in self.server.list(_ROLES):
            if role.get("aggregationRule"):
                self._enqueue(key_of_plain(_ROLES, role))

    def _reconcile(self, key: Key) -> None:
        role = self.server.find(*key)
        if role is None or not role.get("aggregationRule"):
            return
        selectors = [
            msgspec.convert(one, LabelSelector)
            for one in role["aggregationRule"].get("clusterRoleSelectors") or ()
        ]
        rules: list[Plain] = []
        for other in sorted(self.server.list(_ROLES), key=lambda one: str(one["metadata"]["name"])):
            metadata = other["metadata"]
            labels = metadata.get("labels") or {}
            is_part = any(matches_label_selector(one, labels) for one in selectors)
            if is_part and metadata["name"] != key.name:
                rules += [rule for rule in other.get("rules") or () if rule not in rules]
        if rules != (role.get("rules") or []):
            self.server.write(key, {**role, "rules": rules})
