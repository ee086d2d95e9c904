"""How kinds differ in how they are written and deleted.

Upstream: pkg/registry/*/*/strategy.go (v1.36)
Differs:  nothing.
"""

from __future__ import annotations

from typing import Final

from kubesched.apiserver.resource import Resource

_NEEDS_VERSION: Final = frozenset(
    (
        "csidrivers.storage.k8s.io",
        "csinodes.storage.k8s.io",
        "csistoragecapacities.storage.k8s.io",
        "leases.coordination.k8s.io",
        "mutatingadmissionpolicies.admissionregistration.k8s.io",
        "mutatingadmissionpolicybindings.admissionregistration.k8s.io",
        "mutatingwebhookconfigurations.admissionregistration.k8s.io",
        "poddisruptionbudgets.policy",
        "runtimeclasses.node.k8s.io",
        "validatingadmissionpolicies.admissionregistration.k8s.io",
        "validatingadmissionpolicybindings.admissionregistration.k8s.io",
        "validatingwebhookconfigurations.admissionregistration.k8s.io",
        "volumeattachments.storage.k8s.io",
    )
)
_CREATED_BY_UPDATE: Final = frozenset(
    (
        "clusterrolebindings.rbac.authorization.k8s.io",
        "clusterroles.rbac.authorization.k8s.io",
        "endpoints",
        "events",
        "events.events.k8s.io",
        "leases.coordination.k8s.io",
        "limitranges",
        "rolebindings.rbac.authorization.k8s.io",
        "roles.rbac.authorization.k8s.io",
        "runtimeclasses.node.k8s.io",
        "services",
    )
)
_SHOWN_WHEN_DELETED: Final = frozenset(
    (
        "csidrivers.storage.k8s.io",
        "csinodes.storage.k8s.io",
        "deviceclasses.resource.k8s.io",
        "namespaces",
        "persistentvolumeclaims",
        "persistentvolumes",
        "pods",
        "podtemplates",
        "resourceclaims.resource.k8s.io",
        "resourceclaimtemplates.resource.k8s.io",
        "resourcequotas",
        "resourceslices.resource.k8s.io",
        "serviceaccounts",
        "services",
        "storageclasses.storage.k8s.io",
        "volumeattachments.storage.k8s.io",
        "volumeattributesclasses.storage.k8s.io",
    )
)
_HAS_NO_DEPENDENTS: Final = frozenset(("events", "events.events.k8s.io"))
_ORPHANS_DEPENDENTS: Final = frozenset(("jobs.batch", "replicationcontrollers"))
_DEPRECATED: Final = {
    "endpoints": "v1 Endpoints is deprecated in v1.33+; use discovery.k8s.io/v1 EndpointSlice",
    "componentstatuses": "v1 ComponentStatus is deprecated in v1.19+",
}


def needs_version(resource: Resource) -> bool:
    """Whether an update must say which version it changes."""
    return resource.group_resource in _NEEDS_VERSION


def is_created_by_update(resource: Resource) -> bool:
    """Whether an update of an object that does not exist creates it."""
    return resource.group_resource in _CREATED_BY_UPDATE


def is_shown_when_deleted(resource: Resource) -> bool:
    """Whether a deletion answers with the object, not with a Status."""
    return resource.group_resource in _SHOWN_WHEN_DELETED


def has_dependents(resource: Resource) -> bool:
    """Whether what becomes of dependents can be chosen."""
    return resource.group_resource not in _HAS_NO_DEPENDENTS


def orphans_dependents(resource: Resource) -> bool:
    """Whether dependents stay if a deletion does not choose what becomes of them."""
    return resource.group_resource in _ORPHANS_DEPENDENTS


def deprecation(resource: Resource) -> str:
    """Return the warning for users of a resource, "" if there is none."""
    return _DEPRECATED.get(resource.group_resource, "")
