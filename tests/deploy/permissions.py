"""The permissions of a deployment's pod: the rules of its roles."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final, NamedTuple

from tests.deploy.sent_requests import NeededRight
from tests.deploy.shipped import deployed, pod_of

Plain = dict[str, Any]

DEFAULT_ROLES: Final[dict[str, list[Plain]]] = json.loads(
    (Path(__file__).parent / "data" / "default_roles.json").read_text(encoding="utf-8")
)
"""The rules of roles that kube-apiserver 1.36 makes itself."""

_CLUSTER_WIDE: Final = ""
_SCHEDULER_USER: Final = {
    "ClusterRole/system:kube-scheduler": _CLUSTER_WIDE,
    "ClusterRole/system:volume-scheduler": _CLUSTER_WIDE,
    "Role/extension-apiserver-authentication-reader": "kube-system",
    "Role/system::leader-locking-kube-scheduler": "kube-system",
}
"""What kube-apiserver binds the user system:kube-scheduler to, and where."""


class Rule(NamedTuple):
    """A rule and the namespace it is for; "" for all."""

    namespace: str
    content: Plain

    def allows(self, right: NeededRight) -> bool:
        """Whether the rule allows a request."""
        names = self.content.get("resourceNames")
        return (
            self.namespace in {_CLUSTER_WIDE, right.namespace}
            and right.verb in self.content["verbs"]
            and right.group in self.content["apiGroups"]
            and right.resource in self.content["resources"]
            and (not names or right.name in names)
        )


def rules_of(way: str) -> list[Rule]:
    """Return the rules for the pod of one deployment."""
    account = pod_of(way)["spec"].get("serviceAccountName")
    if account is None:
        # A static pod has no service account; it is who its kubeconfig says.
        return [
            Rule(namespace, rule)
            for role, namespace in _SCHEDULER_USER.items()
            for rule in DEFAULT_ROLES[role]
        ]
    return list(_rules_bound_to(account, deployed(way)))


def _rules_bound_to(account: str, objects: list[Plain]) -> Iterator[Rule]:
    subject = {"kind": "ServiceAccount", "name": account, "namespace": "kube-system"}
    own = {
        f"{found['kind']}/{found['metadata']['name']}": found["rules"]
        for found in objects
        if found["kind"] in {"Role", "ClusterRole"}
    }
    for binding in objects:
        if binding["kind"] in {"RoleBinding", "ClusterRoleBinding"} and (
            subject in binding["subjects"]
        ):
            role = f"{binding['roleRef']['kind']}/{binding['roleRef']['name']}"
            namespace = binding["metadata"].get("namespace", _CLUSTER_WIDE)
            for rule in own.get(role) or DEFAULT_ROLES[role]:
                yield Rule(namespace, rule)
