"""ClusterRoleAggregation gives aggregated ClusterRoles the rules of the roles that they select.

Upstream: pkg/controller/clusterroleaggregation (v1.36)
Reads:    clusterRole.aggregationRule, metadata.labels, rules
Differs:  nothing.
"""

from __future__ import annotations

from typing import Final

import msgspec

from kubesched.api.meta import LabelSelector
from kubesched.api.selectors import matches_label_selector
from kubesched.cluster.controllers.work_queue import Controller
from kubesched.cluster.server import AnyKindServer, Plain, key_of_plain
from kubesched.cluster.store import Key

_KIND: Final = "clusterroles.rbac.authorization.k8s.io"


class ClusterRoleAggregation(Controller):
    """Reconciles ClusterRoles."""

    def __init__(self, server: AnyKindServer) -> None:
        super().__init__()
        self._server = server
        self._followed = (server.follow(_KIND, self._changed),)

    def _changed(self, _key: Key, _before: Plain | None, _after: Plain | None) -> None:
        # Any role may be part of any other.
        for role in self._server.list(_KIND):
            if role.get("aggregationRule"):
                self._queue.add(key_of_plain(_KIND, role))

    def _reconcile(self, key: Key) -> None:
        role = self._server.find(*key)
        if role is None or not role.get("aggregationRule"):
            return
        selectors = [
            msgspec.convert(one, LabelSelector)
            for one in role["aggregationRule"].get("clusterRoleSelectors") or ()
        ]
        rules: list[Plain] = []
        for other in sorted(self._server.list(_KIND), key=lambda one: str(one["metadata"]["name"])):
            metadata = other["metadata"]
            labels = metadata.get("labels") or {}
            is_part = any(matches_label_selector(one, labels) for one in selectors)
            if is_part and metadata["name"] != key.name:
                rules += [rule for rule in other.get("rules") or () if rule not in rules]
        if rules != (role.get("rules") or []):
            self._server.write(key, {**role, "rules": rules})
