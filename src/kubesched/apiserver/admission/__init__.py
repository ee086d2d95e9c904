"""Admission completes or refuses a request, depending on other objects.

`admit` runs before an object is checked and may change it, `check` runs after and may not.

Upstream: pkg/kubeapiserver/options/plugins.go, plugin/pkg/admission/* (v1.36)
Differs:  service accounts, pod security, quotas, default ingress classes and webhooks are left out,
          and so is what restricts nodes and certificates.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final, TypeAlias

from kubesched.api.well_known import SYSTEM_CLASSES
from kubesched.apiserver.admission import limit_ranges, pods, storage_and_services
from kubesched.apiserver.admission.request import (
    CREATE,
    IMMORTAL_NAMESPACES,
    UPDATE,
    AdmissionRequest,
    admit_into_definition,
    admit_into_namespace,
)
from kubesched.apiserver.plain import Plain
from kubesched.apiserver.resources import Resource
from kubesched.apiserver.status import forbidden

_Step: TypeAlias = Callable[[AdmissionRequest, Plain], Plain]
_Check: TypeAlias = Callable[[AdmissionRequest, Plain], None]

# By kind and operation, in upstream's order: tolerations that are added first come first in the
# pod.
_STEPS: Final[Mapping[tuple[str, str], Sequence[_Step]]] = {
    ("Node", CREATE): (pods.add_not_ready_taint,),
    ("PersistentVolume", CREATE): (storage_and_services.protect,),
    ("PersistentVolumeClaim", CREATE): (
        storage_and_services.add_default_class,
        storage_and_services.protect,
    ),
    ("PersistentVolumeClaim", UPDATE): (storage_and_services.add_default_class,),
    ("Pod", CREATE): (
        limit_ranges.add_defaults,
        pods.set_priority,
        pods.add_default_tolerations,
        pods.apply_runtime_class,
        pods.add_topology_labels,
    ),
    ("Pod", UPDATE): (pods.keep_priority, pods.add_default_tolerations, pods.add_topology_labels),
    ("Pod", "resize"): (limit_ranges.add_defaults,),
    ("PodGroup", CREATE): (pods.set_group_priority,),
    ("Service", CREATE): (storage_and_services.add_addresses,),
    ("Service", UPDATE): (storage_and_services.add_addresses,),
}
_CHECKS: Final[Mapping[tuple[str, str], Sequence[_Check]]] = {
    ("PersistentVolumeClaim", CREATE): (limit_ranges.check,),
    ("PersistentVolumeClaim", UPDATE): (limit_ranges.check, storage_and_services.check_growth),
    ("Pod", CREATE): (limit_ranges.check, pods.check_overhead),
    ("Pod", "resize"): (limit_ranges.check,),
    ("PriorityClass", CREATE): (pods.check_default_class,),
    ("PriorityClass", UPDATE): (pods.check_default_class,),
    ("ResourceClaim", CREATE): (storage_and_services.check_admin_access,),
    ("ResourceClaimTemplate", CREATE): (storage_and_services.check_admin_access,),
}


def admit(request: AdmissionRequest, obj: Plain) -> Plain:
    """Return an object as admission completes it; raises StatusError if the request is refused."""
    admit_into_namespace(request, obj)
    admit_into_definition(request, obj)
    for step in _STEPS.get((request.resource.built_in_kind, request.operation), ()):
        obj = step(request, obj)
    return obj


def check(request: AdmissionRequest, obj: Plain) -> None:
    """Raise StatusError for a valid object that conflicts with other objects."""
    for step in _CHECKS.get((request.resource.built_in_kind, request.operation), ()):
        step(request, obj)


def admit_delete(resource: Resource, name: str) -> None:
    """Raise StatusError for the deletion of an object that every cluster needs."""
    if resource.built_in_kind == "Namespace" and name in IMMORTAL_NAMESPACES:
        raise forbidden(resource, name, "this namespace may not be deleted")
    if resource.built_in_kind == "PriorityClass" and name in SYSTEM_CLASSES:
        raise forbidden(resource, name, "this is a system priority class and cannot be deleted")
