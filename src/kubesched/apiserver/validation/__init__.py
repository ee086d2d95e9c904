"""Validation: what is wrong with an object, field by field, in upstream's words.

Upstream: pkg/apis/*/validation, staging/src/k8s.io/apiserver/pkg/registry/rest (v1.36)
Differs:  of kinds that have no rules of their own here, only metadata is checked.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Final

from kubesched.apiserver.field_fault import FieldFault, invalid_status
from kubesched.apiserver.names import name_rule
from kubesched.apiserver.plain import Plain
from kubesched.apiserver.resources import Resource
from kubesched.apiserver.validation import (
    batch,
    claims,
    core_objects,
    device_claims,
    devices,
    events,
    nodes,
    persistent_volumes,
    pod_resize,
    pod_status,
    pods,
    policies,
    replica_status,
    services,
    storage,
    workloads,
)
from kubesched.apiserver.validation.metadata import (
    common_faults,
    core_metadata_update_faults,
    metadata_faults,
    metadata_update_faults,
)

__all__ = ["FieldFault", "faults_of_new", "faults_of_update", "invalid_status"]

_NewFaults = Callable[[Plain], Iterator[FieldFault]]
_UpdateFaults = Callable[[Plain, Plain], Iterator[FieldFault]]

_NEW: Final[Mapping[str, _NewFaults]] = {
    "CSIDriver": storage.csi_driver_faults,
    "CSINode": storage.csi_node_faults,
    "CSIStorageCapacity": storage.capacity_faults,
    "ConfigMap": core_objects.config_map_faults,
    "CronJob": batch.cron_job_faults,
    "DaemonSet": workloads.daemon_set_faults,
    "Deployment": workloads.deployment_faults,
    "DeviceClass": device_claims.device_class_faults,
    "EndpointSlice": services.endpoint_slice_faults,
    "Endpoints": services.endpoints_faults,
    "Event": events.new_event_faults,
    "Job": batch.new_job_faults,
    "Lease": policies.lease_faults,
    "LimitRange": core_objects.limit_range_faults,
    "Namespace": core_objects.new_namespace_faults,
    "Node": nodes.new_node_faults,
    "PersistentVolume": persistent_volumes.new_volume_faults,
    "PersistentVolumeClaim": claims.new_claim_faults,
    "Pod": pods.new_pod_faults,
    "PodDisruptionBudget": policies.budget_faults,
    "PodTemplate": workloads.pod_template_faults,
    "PriorityClass": policies.priority_class_faults,
    "ReplicaSet": workloads.replica_set_faults,
    "ReplicationController": workloads.replication_controller_faults,
    "ResourceClaim": device_claims.claim_faults,
    "ResourceClaimTemplate": device_claims.claim_template_faults,
    "ResourceQuota": core_objects.quota_faults,
    "ResourceSlice": devices.slice_faults,
    "RuntimeClass": policies.runtime_class_faults,
    "Secret": core_objects.secret_faults,
    "Service": services.new_service_faults,
    "StatefulSet": workloads.stateful_set_faults,
    "StorageClass": storage.storage_class_faults,
    "VolumeAttachment": storage.attachment_faults,
    "VolumeAttributesClass": storage.attributes_class_faults,
}


def _metadata_only(new: Plain, old: Plain) -> Iterator[FieldFault]:
    yield from core_metadata_update_faults(new["metadata"], old["metadata"])


# Changes of these are first held to what new ones are held to.
_CHECKED_AS_NEW: Final = frozenset(
    (
        "CSIStorageCapacity",
        "Job",
        "Namespace",
        "Node",
        "PersistentVolume",
        "ResourceClaimTemplate",
        "RuntimeClass",
        "StorageClass",
    )
)
_UPDATE: Final[Mapping[tuple[str, str], _UpdateFaults]] = {
    ("CSIDriver", ""): storage.csi_driver_update_faults,
    ("CSINode", ""): storage.csi_node_update_faults,
    ("CSIStorageCapacity", ""): storage.capacity_update_faults,
    ("ConfigMap", ""): core_objects.config_map_update_faults,
    ("CronJob", ""): batch.cron_job_update_faults,
    ("DaemonSet", ""): workloads.daemon_set_update_faults,
    ("DaemonSet", "status"): replica_status.replica_status_faults,
    ("Deployment", ""): workloads.deployment_update_faults,
    ("Deployment", "status"): replica_status.replica_status_faults,
    ("DeviceClass", ""): device_claims.device_class_update_faults,
    ("EndpointSlice", ""): services.endpoint_slice_update_faults,
    ("Endpoints", ""): services.endpoints_update_faults,
    ("Event", ""): events.event_update_faults,
    ("Job", ""): batch.job_update_faults,
    ("Job", "status"): batch.job_status_faults,
    ("Lease", ""): policies.lease_update_faults,
    ("LimitRange", ""): core_objects.limit_range_update_faults,
    ("Namespace", "finalize"): core_objects.namespace_finalize_faults,
    ("Namespace", "status"): core_objects.namespace_status_faults,
    ("Node", ""): nodes.node_update_faults,
    ("Node", "status"): nodes.node_update_faults,
    ("PersistentVolume", ""): persistent_volumes.volume_update_faults,
    ("PersistentVolume", "status"): persistent_volumes.volume_status_faults,
    ("PersistentVolumeClaim", ""): claims.claim_update_faults,
    ("PersistentVolumeClaim", "status"): claims.claim_status_faults,
    ("Pod", ""): pods.pod_update_faults,
    ("Pod", "ephemeralcontainers"): pods.ephemeral_containers_faults,
    ("Pod", "resize"): pod_resize.pod_resize_faults,
    ("Pod", "status"): pod_status.pod_status_faults,
    ("PodDisruptionBudget", ""): policies.budget_update_faults,
    ("PodDisruptionBudget", "status"): policies.budget_status_faults,
    ("PodTemplate", ""): workloads.pod_template_update_faults,
    ("PriorityClass", ""): policies.priority_class_update_faults,
    ("ReplicaSet", ""): workloads.replica_set_update_faults,
    ("ReplicaSet", "status"): replica_status.replica_status_faults,
    ("ReplicationController", ""): workloads.replication_controller_update_faults,
    ("ReplicationController", "status"): replica_status.replica_status_faults,
    ("ResourceClaim", ""): device_claims.claim_update_faults,
    ("ResourceClaimTemplate", ""): device_claims.claim_template_update_faults,
    ("ResourceQuota", ""): core_objects.quota_update_faults,
    ("ResourceSlice", ""): devices.slice_update_faults,
    ("RuntimeClass", ""): policies.runtime_class_update_faults,
    ("Secret", ""): core_objects.secret_update_faults,
    ("Service", ""): services.service_update_faults,
    ("StatefulSet", ""): workloads.stateful_set_update_faults,
    ("StatefulSet", "status"): replica_status.replica_status_faults,
    ("StorageClass", ""): storage.storage_class_update_faults,
    ("VolumeAttachment", ""): storage.attachment_update_faults,
    ("VolumeAttributesClass", ""): storage.attributes_class_update_faults,
}


def faults_of_new(resource: Resource, obj: Plain) -> list[FieldFault]:
    """Return what is wrong with a new object; nothing if it is sound.

    Args:
        resource: Of the object.
        obj: With its defaults and its name, prepared by its strategy.
    """
    check = _NEW.get(resource.kind)
    if check is not None:
        faults = list(check(obj))
    else:
        rule = name_rule(resource.kind)
        faults = list(metadata_faults(obj["metadata"], resource.is_namespaced, rule))
    return faults or list(common_faults(obj["metadata"], resource.is_namespaced))


def faults_of_update(
    resource: Resource, new: Plain, old: Plain, subresource: str = ""
) -> list[FieldFault]:
    """Return what is wrong with a change of an object; nothing if it is sound.

    Args:
        resource: Of the object.
        new: What is asked for, prepared by its strategy; with a resource version.
        old: What is stored.
        subresource: Through which it is changed; "" for none.
    """
    metadata, before = new["metadata"], old["metadata"]
    faults = list(common_faults(metadata, resource.is_namespaced))
    faults += metadata_update_faults(metadata, before)
    if not subresource and resource.kind in _CHECKED_AS_NEW:
        faults += _NEW[resource.kind](new)
    check = _UPDATE.get((resource.kind, subresource), _metadata_only)
    return [*faults, *check(new, old)]
