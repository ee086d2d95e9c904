"""Objects as a table: columns, and a row of cells for each object.

Upstream: pkg/printers/tablegenerator.go, apiserver/pkg/registry/rest/table.go (v1.36)
Differs:  kinds that scheduling has little to do with show their name and creation only.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Any, Final, TypeAlias

from kubesched.apiserver.event_forms import EVENTS_GROUP
from kubesched.apiserver.plain import Plain, get
from kubesched.apiserver.resources import Resource
from kubesched.apiserver.tables import cluster_rows, pod_row, storage_rows, workload_rows
from kubesched.apiserver.tables.columns import columns_of
from kubesched.apiserver.tables.texts import age, name_of

__all__ = ["CELLS", "table_of"]

Cells: TypeAlias = Callable[[Plain, datetime], list[Any]]

_ZERO_TIME: Final = "0001-01-01T00:00:00Z"


def table_of(
    resource: Resource,
    objects: Sequence[Plain],
    list_metadata: Plain,
    now: datetime,
    include_object: str = "Metadata",
    version: str = "v1",
) -> Plain:
    """Return a table.

    Args:
        resource: What the objects are.
        objects: A row each.
        list_metadata: Of the table: version, and how to go on.
        now: The present, for ages.
        include_object: What rows carry: `Metadata`, `Object` or `None`.
        version: Of the group `meta.k8s.io`.
    """
    api_version = f"meta.k8s.io/{version}"
    group = "" if resource.group == EVENTS_GROUP else resource.group
    cells = CELLS.get((group, resource.kind), _default_cells)
    rows = []
    for value in objects:
        row: Plain = {"cells": cells(value, now)}
        if (group, resource.kind) == ("", "Pod") and (ends := pod_row.pod_row_conditions(value)):
            row["conditions"] = ends
        row["object"] = _included(value, include_object, api_version)
        rows.append(row)
    return {
        "kind": "Table",
        "apiVersion": api_version,
        "metadata": list_metadata,
        "columnDefinitions": columns_of(group, resource.kind),
        "rows": rows,
    }


def _included(value: Plain, include_object: str, api_version: str) -> Plain | None:
    if include_object == "None":
        return None
    if include_object == "Object":
        return value
    metadata = value.get("metadata", {})
    return {"kind": "PartialObjectMetadata", "apiVersion": api_version, "metadata": metadata}


def _default_cells(value: Plain, _now: datetime) -> list[Any]:
    return [name_of(value), get(value, "metadata", "creationTimestamp") or _ZERO_TIME]


def _name_and_age(value: Plain, now: datetime) -> list[Any]:
    return [name_of(value), age(value, now)]


CELLS: Final[Mapping[tuple[str, str], Cells]] = {
    ("", "ConfigMap"): cluster_rows.config_map_cells,
    ("", "Endpoints"): cluster_rows.endpoints_cells,
    ("", "Event"): cluster_rows.event_cells,
    ("", "Namespace"): cluster_rows.namespace_cells,
    ("", "Node"): cluster_rows.node_cells,
    ("", "PersistentVolume"): storage_rows.volume_cells,
    ("", "PersistentVolumeClaim"): storage_rows.claim_cells,
    ("", "Pod"): pod_row.pod_cells,
    ("", "PodTemplate"): workload_rows.pod_template_cells,
    ("", "ReplicationController"): workload_rows.replication_controller_cells,
    ("", "ResourceQuota"): cluster_rows.quota_cells,
    ("", "Secret"): cluster_rows.secret_cells,
    ("", "Service"): cluster_rows.service_cells,
    ("", "ServiceAccount"): _name_and_age,
    ("apps", "ControllerRevision"): workload_rows.controller_revision_cells,
    ("apps", "DaemonSet"): workload_rows.daemon_set_cells,
    ("apps", "Deployment"): workload_rows.deployment_cells,
    ("apps", "ReplicaSet"): workload_rows.replica_set_cells,
    ("apps", "StatefulSet"): workload_rows.stateful_set_cells,
    ("autoscaling", "Scale"): workload_rows.scale_cells,
    ("batch", "CronJob"): workload_rows.cron_job_cells,
    ("batch", "Job"): workload_rows.job_cells,
    ("coordination.k8s.io", "Lease"): cluster_rows.lease_cells,
    ("discovery.k8s.io", "EndpointSlice"): cluster_rows.endpoint_slice_cells,
    ("networking.k8s.io", "NetworkPolicy"): workload_rows.network_policy_cells,
    ("node.k8s.io", "RuntimeClass"): cluster_rows.runtime_class_cells,
    ("policy", "PodDisruptionBudget"): workload_rows.disruption_budget_cells,
    ("resource.k8s.io", "DeviceClass"): _name_and_age,
    ("resource.k8s.io", "DeviceTaintRule"): storage_rows.taint_rule_cells,
    ("resource.k8s.io", "ResourceClaim"): storage_rows.resource_claim_cells,
    ("resource.k8s.io", "ResourceClaimTemplate"): _name_and_age,
    ("resource.k8s.io", "ResourceSlice"): storage_rows.resource_slice_cells,
    ("scheduling.k8s.io", "PodGroup"): workload_rows.pod_group_cells,
    ("scheduling.k8s.io", "PriorityClass"): cluster_rows.priority_class_cells,
    ("scheduling.k8s.io", "Workload"): _name_and_age,
    ("storage.k8s.io", "CSIDriver"): storage_rows.csi_driver_cells,
    ("storage.k8s.io", "CSINode"): storage_rows.csi_node_cells,
    ("storage.k8s.io", "CSIStorageCapacity"): storage_rows.capacity_cells,
    ("storage.k8s.io", "StorageClass"): storage_rows.class_cells,
    ("storage.k8s.io", "VolumeAttachment"): storage_rows.attachment_cells,
    ("storage.k8s.io", "VolumeAttributesClass"): storage_rows.attributes_class_cells,
}
