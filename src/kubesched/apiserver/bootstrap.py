"""The objects that every cluster has from its beginning.

Upstream: pkg/controlplane/controller, pkg/apis/scheduling (SystemPriorityClasses),
          pkg/registry/scheduling/rest (v1.36)
Differs:  roles, flow schemas and the like are left out, since nothing here reads them.
"""

from __future__ import annotations

from typing import Final

from kubesched.apiserver import defaults
from kubesched.apiserver.operation import Operation
from kubesched.apiserver.plain import Plain
from kubesched.apiserver.registry import Registry
from kubesched.apiserver.request import Request, User

_NAMESPACES: Final = ("kube-system", "kube-public", "default", "kube-node-lease")
_SERVER: Final = User("system:apiserver", ("system:masters",))
_MAY_MOVE: Final = (
    "Used for system critical pods that must run in the cluster, but can be moved to another node "
    "if necessary."
)
_PRIORITY_CLASSES: Final = (
    (
        "system-node-critical",
        2000001000,
        "Used for system critical pods that must not be moved from their current node.",
    ),
    (
        "system-cluster-critical",
        2000000000,
        _MAY_MOVE,
    ),
)
# The first of the range that services get their addresses from.
_ADDRESS: Final = "10.0.0.1"
_PORT: Final = 443


def fill(registry: Registry) -> None:
    """Create what every cluster has; nobody can watch how it came to be."""
    for name in _NAMESPACES:
        _create(registry, "", "namespaces", "", {"metadata": {"name": name}})
    for name, value, description in _PRIORITY_CLASSES:
        _create(
            registry,
            "scheduling.k8s.io",
            "priorityclasses",
            "",
            {"metadata": {"name": name}, "value": value, "description": description},
        )
    _create(registry, "", "services", "default", _service())
    registry.store.compact_all()


def _service() -> Plain:
    return {
        "metadata": {
            "name": "kubernetes",
            "labels": {"component": "apiserver", "provider": "kubernetes"},
        },
        "spec": {
            "ports": [{"name": "https", "protocol": "TCP", "port": _PORT, "targetPort": 6443}],
            "type": "ClusterIP",
            "clusterIP": _ADDRESS,
        },
    }


def _create(registry: Registry, group: str, plural: str, namespace: str, obj: Plain) -> None:
    resource = registry.resources.find(group, "v1", plural)
    assert resource is not None, f"{plural} are always served"
    obj = {"kind": resource.kind, "apiVersion": resource.api_version, **obj}
    request = Request("POST", "", headers={"user-agent": "kube-apiserver"}, user=_SERVER)
    operation = Operation(request, resource, namespace)
    registry.create(operation, defaults.with_defaults(resource, obj))
