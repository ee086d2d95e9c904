"""Scheme: the class and the plural of every known (apiVersion, kind).

Upstream: the register.go of each API group (v1.36)
Differs:  older versions with the same fields are decoded as the current one.
"""

from typing import Final, NamedTuple

from kubesched.api.apps import DaemonSet, Deployment, ReplicaSet, StatefulSet
from kubesched.api.batch import CronJob, Job
from kubesched.api.coordination import Lease
from kubesched.api.core import (
    Binding,
    CoreEvent,
    Namespace,
    Node,
    PersistentVolume,
    PersistentVolumeClaim,
    Pod,
    ReplicationController,
    Service,
)
from kubesched.api.events import Event
from kubesched.api.meta import KubeStruct
from kubesched.api.policy import PodDisruptionBudget
from kubesched.api.resource import (
    DeviceClass,
    DeviceTaintRule,
    ResourceClaim,
    ResourceClaimTemplate,
    ResourceSlice,
)
from kubesched.api.scheduling import PodGroup, PriorityClass, Workload
from kubesched.api.storage import (
    CSIDriver,
    CSINode,
    CSIStorageCapacity,
    StorageClass,
    VolumeAttachment,
    VolumeAttributesClass,
)


class Kind(NamedTuple):
    """A kind of object.

    Attributes:
        type: The class of its objects.
        group: The API group, "" for the core group.
        versions: The versions that can be decoded; the first one is used for encoding.
        kind: Its name.
        plural: Its name in paths.
        is_namespaced: Whether its objects are in namespaces.
    """

    type: type[KubeStruct]
    group: str
    versions: tuple[str, ...]
    kind: str
    plural: str
    is_namespaced: bool

    @property
    def api_version(self) -> str:
        """Group and version for encoding, such as `apps/v1` or `v1`."""
        return _api_version(self.group, self.versions[0])


def _api_version(group: str, version: str) -> str:
    return f"{group}/{version}" if group else version


_V1: Final = ("v1",)
_SINCE_BETA: Final = ("v1", "v1beta1")
_SINCE_ALPHA: Final = ("v1", "v1beta1", "v1alpha1")
_APPS: Final = ("v1", "v1beta2", "v1beta1")
_RESOURCE: Final = ("v1", "v1beta2")
_APPS_GROUP: Final = "apps"
_STORAGE_GROUP: Final = "storage.k8s.io"
_RESOURCE_GROUP: Final = "resource.k8s.io"
_SCHEDULING_GROUP: Final = "scheduling.k8s.io"
_ALPHA_2: Final = ("v1alpha2",)

KINDS: Final[tuple[Kind, ...]] = (
    Kind(Pod, "", _V1, "Pod", "pods", True),
    Kind(Node, "", _V1, "Node", "nodes", False),
    Kind(Namespace, "", _V1, "Namespace", "namespaces", False),
    Kind(Service, "", _V1, "Service", "services", True),
    Kind(ReplicationController, "", _V1, "ReplicationController", "replicationcontrollers", True),
    Kind(PersistentVolume, "", _V1, "PersistentVolume", "persistentvolumes", False),
    Kind(PersistentVolumeClaim, "", _V1, "PersistentVolumeClaim", "persistentvolumeclaims", True),
    Kind(Binding, "", _V1, "Binding", "bindings", True),
    Kind(CoreEvent, "", _V1, "Event", "events", True),
    Kind(Event, "events.k8s.io", _SINCE_BETA, "Event", "events", True),
    Kind(ReplicaSet, _APPS_GROUP, _APPS, "ReplicaSet", "replicasets", True),
    Kind(StatefulSet, _APPS_GROUP, _APPS, "StatefulSet", "statefulsets", True),
    Kind(Deployment, _APPS_GROUP, _APPS, "Deployment", "deployments", True),
    Kind(DaemonSet, _APPS_GROUP, _APPS, "DaemonSet", "daemonsets", True),
    Kind(Job, "batch", _V1, "Job", "jobs", True),
    Kind(CronJob, "batch", _SINCE_BETA, "CronJob", "cronjobs", True),
    Kind(Lease, "coordination.k8s.io", _SINCE_BETA, "Lease", "leases", True),
    Kind(
        PodDisruptionBudget,
        "policy",
        _SINCE_BETA,
        "PodDisruptionBudget",
        "poddisruptionbudgets",
        True,
    ),
    Kind(StorageClass, _STORAGE_GROUP, _SINCE_BETA, "StorageClass", "storageclasses", False),
    Kind(CSINode, _STORAGE_GROUP, _SINCE_BETA, "CSINode", "csinodes", False),
    Kind(CSIDriver, _STORAGE_GROUP, _SINCE_BETA, "CSIDriver", "csidrivers", False),
    Kind(
        CSIStorageCapacity,
        _STORAGE_GROUP,
        _SINCE_ALPHA,
        "CSIStorageCapacity",
        "csistoragecapacities",
        True,
    ),
    Kind(
        VolumeAttachment,
        _STORAGE_GROUP,
        _SINCE_ALPHA,
        "VolumeAttachment",
        "volumeattachments",
        False,
    ),
    Kind(
        VolumeAttributesClass,
        _STORAGE_GROUP,
        _SINCE_ALPHA,
        "VolumeAttributesClass",
        "volumeattributesclasses",
        False,
    ),
    Kind(PriorityClass, _SCHEDULING_GROUP, _SINCE_ALPHA, "PriorityClass", "priorityclasses", False),
    Kind(PodGroup, _SCHEDULING_GROUP, _ALPHA_2, "PodGroup", "podgroups", True),
    Kind(Workload, _SCHEDULING_GROUP, _ALPHA_2, "Workload", "workloads", True),
    Kind(ResourceClaim, _RESOURCE_GROUP, _RESOURCE, "ResourceClaim", "resourceclaims", True),
    Kind(
        ResourceClaimTemplate,
        _RESOURCE_GROUP,
        _RESOURCE,
        "ResourceClaimTemplate",
        "resourceclaimtemplates",
        True,
    ),
    Kind(ResourceSlice, _RESOURCE_GROUP, _RESOURCE, "ResourceSlice", "resourceslices", False),
    Kind(DeviceClass, _RESOURCE_GROUP, _RESOURCE, "DeviceClass", "deviceclasses", False),
    Kind(
        DeviceTaintRule,
        _RESOURCE_GROUP,
        ("v1beta2", "v1alpha3"),
        "DeviceTaintRule",
        "devicetaintrules",
        False,
    ),
)

_BY_NAME: Final = {
    (_api_version(kind.group, version), kind.kind): kind
    for kind in KINDS
    for version in kind.versions
}
_BY_TYPE: Final = {kind.type: kind for kind in KINDS}


def find_kind(api_version: str, kind: str) -> Kind | None:
    """Return the kind of an object with these fields, None if unknown."""
    return _BY_NAME.get((api_version, kind))


def kind_of(type_: type[KubeStruct]) -> Kind:
    """Return the kind of a class.

    Raises:
        KeyError: No kind has this class.
    """
    return _BY_TYPE[type_]
