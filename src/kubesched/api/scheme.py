"""Scheme: the class and the plural of every known (apiVersion, kind).

Kinds of Kubernetes are listed; plugins declare the custom resources that they read.

Upstream: the register.go of each API group (v1.36)
Differs:  older versions with the same fields are decoded as the current one.
"""

from collections.abc import Callable
from typing import Final, NamedTuple, TypeVar, cast

from msgspec.json import schema

from kubesched.api.apps import CronJob, DaemonSet, Deployment, Job, ReplicaSet, StatefulSet
from kubesched.api.core import (
    CoreEvent,
    Event,
    Lease,
    Namespace,
    Node,
    Pod,
    ReplicationController,
    Service,
)
from kubesched.api.meta import KubeObject
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
from kubesched.api.volume import PersistentVolume, PersistentVolumeClaim

K = TypeVar("K", bound=KubeObject)


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

    type: type[KubeObject]
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


def _kind(
    type_: type[KubeObject],
    group: str,
    versions: tuple[str, ...],
    plural: str,
    *,
    is_namespaced: bool = True,
    name: str = "",
) -> Kind:
    return Kind(type_, group, versions, name or type_.__name__, plural, is_namespaced)


KINDS: Final[tuple[Kind, ...]] = (
    _kind(Pod, "", _V1, "pods"),
    _kind(Node, "", _V1, "nodes", is_namespaced=False),
    _kind(Namespace, "", _V1, "namespaces", is_namespaced=False),
    _kind(Service, "", _V1, "services"),
    _kind(ReplicationController, "", _V1, "replicationcontrollers"),
    _kind(PersistentVolume, "", _V1, "persistentvolumes", is_namespaced=False),
    _kind(PersistentVolumeClaim, "", _V1, "persistentvolumeclaims"),
    _kind(CoreEvent, "", _V1, "events", name="Event"),
    _kind(Event, "events.k8s.io", _SINCE_BETA, "events"),
    _kind(ReplicaSet, _APPS_GROUP, _APPS, "replicasets"),
    _kind(StatefulSet, _APPS_GROUP, _APPS, "statefulsets"),
    _kind(Deployment, _APPS_GROUP, _APPS, "deployments"),
    _kind(DaemonSet, _APPS_GROUP, _APPS, "daemonsets"),
    _kind(Job, "batch", _V1, "jobs"),
    _kind(CronJob, "batch", _SINCE_BETA, "cronjobs"),
    _kind(Lease, "coordination.k8s.io", _SINCE_BETA, "leases"),
    _kind(PodDisruptionBudget, "policy", _SINCE_BETA, "poddisruptionbudgets"),
    _kind(StorageClass, _STORAGE_GROUP, _SINCE_BETA, "storageclasses", is_namespaced=False),
    _kind(CSINode, _STORAGE_GROUP, _SINCE_BETA, "csinodes", is_namespaced=False),
    _kind(CSIDriver, _STORAGE_GROUP, _SINCE_BETA, "csidrivers", is_namespaced=False),
    _kind(CSIStorageCapacity, _STORAGE_GROUP, _SINCE_ALPHA, "csistoragecapacities"),
    _kind(VolumeAttachment, _STORAGE_GROUP, _SINCE_ALPHA, "volumeattachments", is_namespaced=False),
    _kind(
        VolumeAttributesClass,
        _STORAGE_GROUP,
        _SINCE_ALPHA,
        "volumeattributesclasses",
        is_namespaced=False,
    ),
    _kind(PriorityClass, _SCHEDULING_GROUP, _SINCE_ALPHA, "priorityclasses", is_namespaced=False),
    _kind(PodGroup, _SCHEDULING_GROUP, _ALPHA_2, "podgroups"),
    _kind(Workload, _SCHEDULING_GROUP, _ALPHA_2, "workloads"),
    _kind(ResourceClaim, _RESOURCE_GROUP, _RESOURCE, "resourceclaims"),
    _kind(ResourceClaimTemplate, _RESOURCE_GROUP, _RESOURCE, "resourceclaimtemplates"),
    _kind(ResourceSlice, _RESOURCE_GROUP, _RESOURCE, "resourceslices", is_namespaced=False),
    _kind(DeviceClass, _RESOURCE_GROUP, _RESOURCE, "deviceclasses", is_namespaced=False),
    _kind(
        DeviceTaintRule,
        _RESOURCE_GROUP,
        ("v1beta2", "v1alpha3"),
        "devicetaintrules",
        is_namespaced=False,
    ),
)

_BY_NAME: Final = {
    (_api_version(kind.group, version), kind.kind): kind
    for kind in KINDS
    for version in kind.versions
}
_BY_TYPE: Final = {kind.type: kind for kind in KINDS}


_CUSTOM: Final[dict[str, Kind]] = {}


def custom_resource(
    api_version: str, plural: str, *, is_namespaced: bool = True
) -> Callable[[type[K]], type[K]]:
    """Declare the custom resource that a class describes, for plugins that read its objects.

    Its kind is the name of the class. A declaration replaces an earlier one with other fields; with
    the same fields it returns the earlier class, so that a file that is loaded again finds the
    objects that were read before::

        @custom_resource("example.com/v1", "quotas")
        class Quota(KubeObject):
            spec: QuotaSpec = QuotaSpec()

    Args:
        api_version: Its group and version.
        plural: Its name in paths.
        is_namespaced: Whether its objects are in namespaces.

    Raises:
        ValueError: The version has no group, or the kind is one of Kubernetes' own.
        TypeError: The class is not a KubeObject.
    """
    group, _, version = api_version.rpartition("/")

    def declare(type_: type[K]) -> type[K]:
        if not issubclass(type_, KubeObject):
            raise TypeError(f"{type_.__name__}: a custom resource inherits KubeObject")
        kind = _kind(type_, group, (version,), plural, is_namespaced=is_namespaced)
        known = _BY_NAME.get((api_version, kind.kind))
        if not group:
            only = "only custom resources can be declared, which have GROUP/VERSION"
            raise ValueError(f"{kind.kind}: {only}, not {api_version!r}")
        if known in KINDS:
            raise ValueError(f"{kind.kind} of {api_version} is a kind of Kubernetes' own")
        before = _CUSTOM.get(_custom_name(kind))
        if before is not None and _fields_of(before.type) == _fields_of(type_):
            return cast("type[K]", before.type)
        _CUSTOM[_custom_name(kind)] = kind
        _BY_NAME[api_version, kind.kind] = _BY_TYPE[type_] = kind
        return type_

    return declare


def _fields_of(type_: type) -> dict[str, object]:
    # Types that a JSON schema cannot describe are compared by their text.
    return schema(type_, schema_hook=lambda unknown: {"title": repr(unknown)})


def custom_kinds() -> dict[str, Kind]:
    """Return the declared custom resources, by their names in events: `plural.version.group`."""
    return _CUSTOM.copy()


def known_kinds() -> tuple[Kind, ...]:
    """Return the kinds of Kubernetes and the declared ones."""
    return (*KINDS, *_CUSTOM.values())


def custom_name_of(type_: type) -> str | None:
    """Return the name of a custom resource in events; None for other classes."""
    kind = _BY_TYPE.get(type_)
    return None if kind is None or kind in KINDS else _custom_name(kind)


def _custom_name(kind: Kind) -> str:
    return f"{kind.plural}.{kind.versions[0]}.{kind.group}"


def find_kind(api_version: str, kind: str) -> Kind | None:
    """Return the kind of an object with these fields, None if unknown."""
    return _BY_NAME.get((api_version, kind))


def kind_of(type_: type[KubeObject]) -> Kind:
    """Return the kind of a class; raises KeyError if there is none."""
    return _BY_TYPE[type_]
