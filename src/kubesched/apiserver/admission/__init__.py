"""Admission completes or refuses a request, depending on other objects.

`admit` runs before an object is checked and may change it, `check` runs after and may not.

Upstream: pkg/kubeapiserver/options/plugins.go, plugin/pkg/admission/* (v1.36)
Differs:  service accounts, pod security, quotas, default ingress classes and webhooks are left out,
          and so is what restricts nodes and certificates.
"""

from __future__ import annotations

from kubesched.api.well_known import SYSTEM_CLASSES
from kubesched.apiserver.admission import limit_ranges, pods, storage_and_services
from kubesched.apiserver.admission.request import (
    IMMORTAL_NAMESPACES,
    AdmissionRequest,
    admit_into_namespace,
)
from kubesched.apiserver.plain import Plain
from kubesched.apiserver.resources import Resource
from kubesched.apiserver.status import forbidden

# In upstream's order: tolerations that are added first come first in the pod.
_STEPS = (
    limit_ranges.admit,
    pods.add_not_ready_taint,
    pods.set_priority,
    pods.add_default_tolerations,
    storage_and_services.admit,
    pods.apply_runtime_class,
    pods.add_topology_labels,
    storage_and_services.admit_service,
)
_CHECKS = (
    limit_ranges.check,
    pods.check_default_class,
    storage_and_services.check,
    pods.check_overhead,
)


def admit(request: AdmissionRequest, obj: Plain) -> Plain:
    """Return an object, with defaults and namespace, as admission completes it before validation.

    Raises:
        StatusError: The request is refused.
    """
    admit_into_namespace(request, obj)
    for step in _STEPS:
        obj = step(request, obj)
    return obj


def check(request: AdmissionRequest, obj: Plain) -> None:
    """Refuse a valid object that conflicts with other objects.

    Raises:
        StatusError: The request is refused.
    """
    for one in _CHECKS:
        one(request, obj)


def admit_delete(resource: Resource, name: str) -> None:
    """Refuse to delete objects that every cluster needs.

    Raises:
        StatusError: The request is refused.
    """
    if resource.kind == "Namespace" and name in IMMORTAL_NAMESPACES:
        raise forbidden(resource, name, "this namespace may not be deleted")
    if resource.kind == "PriorityClass" and name in SYSTEM_CLASSES:
        raise forbidden(resource, name, "this is a system priority class and cannot be deleted")
