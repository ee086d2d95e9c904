"""Where volumes come from: what each kind of volume needs, in pods and as persistent volumes.

Upstream: pkg/apis/core/validation/validation.go (validate*VolumeSource, v1.36)
Differs:  kinds that clusters no longer have are only checked for what has to be there.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Final

from kubesched.apiserver.field_fault import (
    FieldFault,
    each,
    forbidden,
    invalid,
    not_supported,
    required,
    too_long,
)
from kubesched.apiserver.names import between, dns_label, dns_subdomain
from kubesched.apiserver.plain import Plain
from kubesched.apiserver.validation.environment import (
    field_reference_faults,
    resource_reference_faults,
)
from kubesched.apiserver.validation.paths import (
    backstep_faults,
    descending_path_faults,
    local_path_faults,
)

_Faults = Callable[[Plain, str], Iterator[FieldFault]]

MODE_RULE: Final = "must be a number between 0 and 0777 (octal), both inclusive"
ONE_TYPE: Final = "may not specify more than 1 volume type"
NO_TYPE: Final = "must specify a volume type"
_MODE_MAX: Final = 0o777
_TOKEN_SECONDS_MIN: Final = 10 * 60
_TOKEN_SECONDS_MAX: Final = 1 << 32
_DRIVER_LENGTH_MAX: Final = 63
_HOST_PATH_TYPES: Final = (
    "",
    "BlockDevice",
    "CharDevice",
    "Directory",
    "DirectoryOrCreate",
    "File",
    "FileOrCreate",
    "Socket",
)
_SHOWN_FIELDS: Final = (
    "metadata.annotations",
    "metadata.labels",
    "metadata.name",
    "metadata.namespace",
    "metadata.uid",
)
_IQN: Final = re.compile(r"iqn\.\d{4}-\d{2}\.([a-z0-9-.]+)(:[^,;*&$|\s]+)$", re.ASCII)
_EUI: Final = re.compile(r"^eui.[0-9a-f]{16}$", re.IGNORECASE)
_NAA: Final = re.compile(r"^naa.[0-9a-f]{32}$", re.IGNORECASE)
_ISCSI_FORMS: Final = {"eui": _EUI, "iqn": _IQN, "naa": _NAA}


def mode_faults(source: Plain, name: str, path: str) -> Iterator[FieldFault]:
    """Yield what is wrong with the permissions of files."""
    mode = source.get(name)
    if mode is not None and not 0 <= mode <= _MODE_MAX:
        yield invalid(f"{path}.{name}", mode, MODE_RULE)


def item_faults(items: Sequence[Plain] | None, path: str) -> Iterator[FieldFault]:
    """Yield what is wrong with keys that become files."""
    for index, item in enumerate(items or ()):
        own_path = f"{path}.items[{index}]"
        for name in ("key", "path"):
            if not item[name]:
                yield required(f"{own_path}.{name}")
        yield from local_path_faults(item["path"], f"{own_path}.path")
        yield from mode_faults(item, "mode", own_path)


def shown_file_faults(file: Plain, path: str) -> Iterator[FieldFault]:
    """Yield what is wrong with a field of the pod that becomes a file."""
    if not file["path"]:
        yield required(f"{path}.path")
    yield from local_path_faults(file["path"], f"{path}.path")
    field, resource = file.get("fieldRef"), file.get("resourceFieldRef")
    if field is not None:
        yield from field_reference_faults(field, _SHOWN_FIELDS, f"{path}.fieldRef")
        if resource is not None:
            detail = "fieldRef and resourceFieldRef can not be specified simultaneously"
            yield invalid(path, "resource", detail)
    elif resource is not None:
        yield from resource_reference_faults(resource, f"{path}.resourceFieldRef", is_volume=True)
    else:
        yield required(path, "one of fieldRef and resourceFieldRef is required")
    yield from mode_faults(file, "mode", path)


def host_path_faults(source: Plain, path: str) -> Iterator[FieldFault]:
    """Yield what is wrong with a directory of the node."""
    if not source["path"]:
        yield required(f"{path}.path")
        return
    yield from backstep_faults(source["path"], f"{path}.path")
    kind = source.get("type")
    if kind is not None and kind not in _HOST_PATH_TYPES:
        yield not_supported(f"{path}.type", kind, _HOST_PATH_TYPES)


def _needing(*names: str) -> _Faults:
    def faults(source: Plain, path: str) -> Iterator[FieldFault]:
        for name in names:
            if not source.get(name):
                yield required(f"{path}.{name}")

    return faults


def _partition_faults(name: str) -> _Faults:
    def faults(source: Plain, path: str) -> Iterator[FieldFault]:
        yield from _needing(name)(source, path)
        partition = source.get("partition", 0)
        if not 0 <= partition <= 255:
            yield invalid(f"{path}.partition", partition, between(1, 255))

    return faults


def _secret_faults(source: Plain, path: str) -> Iterator[FieldFault]:
    yield from _needing("secretName")(source, path)
    yield from mode_faults(source, "defaultMode", path)
    yield from item_faults(source.get("items"), path)


def _config_map_faults(source: Plain, path: str) -> Iterator[FieldFault]:
    yield from _needing("name")(source, path)
    yield from mode_faults(source, "defaultMode", path)
    yield from item_faults(source.get("items"), path)


def _downward_faults(source: Plain, path: str) -> Iterator[FieldFault]:
    yield from mode_faults(source, "defaultMode", path)
    for file in source.get("items") or ():
        # Upstream tells the volume, not the file.
        yield from shown_file_faults(file, path)


def _git_repo_faults(source: Plain, path: str) -> Iterator[FieldFault]:
    yield from _needing("repository")(source, path)
    yield from descending_path_faults(source.get("directory", ""), f"{path}.directory")


def _nfs_faults(source: Plain, path: str) -> Iterator[FieldFault]:
    yield from _needing("server", "path")(source, path)
    if not source["path"].startswith("/"):
        yield invalid(f"{path}.path", source["path"], "must be an absolute path")


def _iscsi_faults(source: Plain, path: str) -> Iterator[FieldFault]:
    yield from _needing("targetPortal", "iqn")(source, path)
    yield from _initiator_faults(source["iqn"], f"{path}.iqn")
    if not 0 <= source["lun"] <= 255:
        yield invalid(f"{path}.lun", source["lun"], between(0, 255))
    uses_chap = source.get("chapAuthDiscovery") or source.get("chapAuthSession")
    if uses_chap and source.get("secretRef") is None:
        yield required(f"{path}.secretRef")
    yield from _initiator_faults(source.get("initiatorName") or "", f"{path}.initiatorname")


def _initiator_faults(name: str, path: str) -> Iterator[FieldFault]:
    if not name:
        return
    form = _ISCSI_FORMS.get(name[:3])
    if form is None:
        yield invalid(path, name, "must be valid format starting with iqn, eui, or naa")
    elif form.match(name) is None:
        yield invalid(path, name, "must be valid format")


def _rbd_faults(source: Plain, path: str) -> Iterator[FieldFault]:
    yield from _needing("monitors", "image")(source, path)


def _fc_faults(source: Plain, path: str) -> Iterator[FieldFault]:
    names, ids, lun = source.get("targetWWNs"), source.get("wwids"), source.get("lun")
    if not names and not ids:
        yield required(
            f"{path}.targetWWNs", "must specify either targetWWNs or wwids, but not both"
        )
    if names and ids:
        yield invalid(
            f"{path}.targetWWNs", names, "targetWWNs and wwids can not be specified simultaneously"
        )
    if names:
        if lun is None:
            yield required(f"{path}.lun", "lun is required if targetWWNs is specified")
        elif not 0 <= lun <= 255:
            yield invalid(f"{path}.lun", lun, between(0, 255))


def driver_name_faults(name: str, path: str) -> Iterator[FieldFault]:
    """Yield what is wrong with the name of a CSI driver."""
    if not name:
        yield required(path)
        return
    if len(name.encode()) > _DRIVER_LENGTH_MAX:
        yield too_long(path, _DRIVER_LENGTH_MAX)
    yield from each(path, name, dns_subdomain(name.lower()))


def _csi_faults(source: Plain, path: str) -> Iterator[FieldFault]:
    yield from driver_name_faults(source["driver"], f"{path}.driver")
    secret = source.get("nodePublishSecretRef")
    if secret is not None:
        name = secret.get("name", "")
        if name:
            yield from each(f"{path}.name", name, dns_subdomain(name))
        else:
            yield required(f"{path}.nodePublishSecretRef.name")


def _persistent_csi_faults(source: Plain, path: str) -> Iterator[FieldFault]:
    yield from driver_name_faults(source["driver"], f"{path}.driver")
    yield from _needing("volumeHandle")(source, path)
    for kind in (
        "controllerPublishSecretRef",
        "controllerExpandSecretRef",
        "nodePublishSecretRef",
        "nodeExpandSecretRef",
    ):
        secret = source.get(kind)
        if secret is not None:
            yield from _secret_reference_faults(secret, f"{path}.{kind}")


def _secret_reference_faults(secret: Plain, path: str) -> Iterator[FieldFault]:
    for name, rule in (("name", dns_subdomain), ("namespace", dns_label)):
        value = secret.get(name, "")
        if value:
            yield from each(f"{path}.{name}", value, rule(value))
        else:
            yield required(f"{path}.{name}")


def _projected_faults(source: Plain, path: str) -> Iterator[FieldFault]:
    yield from mode_faults(source, "defaultMode", path)
    seen: set[str] = set()
    for index, part in enumerate(source.get("sources") or ()):
        own_path = f"{path}.sources[{index}]"
        for kind in ("secret", "configMap"):
            if part.get(kind) is not None:
                yield from _projection_faults(part[kind], f"{own_path}.{kind}", path, seen)
        downward = part.get("downwardAPI")
        if downward is not None:
            for file in downward.get("items") or ():
                yield from shown_file_faults(file, f"{own_path}.downwardAPI")
                yield from _clash_faults(file["path"], file["path"], path, seen)
        token = part.get("serviceAccountToken")
        if token is not None:
            yield from _token_faults(token, f"{own_path}.serviceAccountToken", path)
        if len(part) > 1:
            yield forbidden(own_path, f"{ONE_TYPE} per source")


def _projection_faults(
    part: Plain, own_path: str, path: str, seen: set[str]
) -> Iterator[FieldFault]:
    name = part.get("name", "")
    if not name:
        yield required(f"{own_path}.name")
    yield from item_faults(part.get("items"), own_path)
    for item in part.get("items") or ():
        yield from _clash_faults(item["path"], name, path, seen)


def _clash_faults(file: str, shown: str, path: str, seen: set[str]) -> Iterator[FieldFault]:
    if file in seen:
        yield invalid(path, shown, "conflicting duplicate paths")
    if file:
        seen.add(file)


def _token_faults(token: Plain, own_path: str, path: str) -> Iterator[FieldFault]:
    seconds = token.get("expirationSeconds", 0)
    yield from token_duration_faults(seconds, f"{own_path}.expirationSeconds")
    if token["path"]:
        yield from local_path_faults(token["path"], f"{path}.path")
    else:
        yield required(f"{path}.path")


def token_duration_faults(seconds: int, path: str) -> Iterator[FieldFault]:
    """Yield what is wrong with how long a token holds."""
    if seconds < _TOKEN_SECONDS_MIN:
        yield invalid(path, seconds, "may not specify a duration less than 10 minutes")
    if seconds > _TOKEN_SECONDS_MAX:
        yield invalid(path, seconds, "may not specify a duration larger than 2^32 seconds")


def _local_faults(source: Plain, path: str) -> Iterator[FieldFault]:
    if source["path"]:
        yield from backstep_faults(source["path"], f"{path}.path")
    else:
        yield required(f"{path}.path")


def _image_faults(source: Plain, path: str) -> Iterator[FieldFault]:
    yield from _needing("reference")(source, path)
    policy = source.get("pullPolicy", "")
    supported = ("Always", "IfNotPresent", "Never")
    if policy not in supported:
        yield not_supported(f"{path}.pullPolicy", policy, supported)


def _flocker_faults(source: Plain, path: str) -> Iterator[FieldFault]:
    name, identity = source.get("datasetName", ""), source.get("datasetUUID", "")
    if not name and not identity:
        yield required(path, "one of datasetName and datasetUUID is required")
    if name and identity:
        detail = "datasetName and datasetUUID can not be specified simultaneously"
        yield invalid(path, "resource", detail)
    if "/" in name:
        yield invalid(f"{path}.datasetName", name, "must not contain '/'")


_SHARED: Final[Mapping[str, _Faults]] = {
    "awsElasticBlockStore": _partition_faults("volumeID"),
    "azureDisk": _needing("diskName", "diskURI"),
    "azureFile": _needing("secretName", "shareName"),
    "cephfs": _needing("monitors"),
    "cinder": _needing("volumeID"),
    "fc": _fc_faults,
    "flexVolume": _needing("driver"),
    "flocker": _flocker_faults,
    "gcePersistentDisk": _partition_faults("pdName"),
    "glusterfs": _needing("endpoints", "path"),
    "hostPath": host_path_faults,
    "iscsi": _iscsi_faults,
    "nfs": _nfs_faults,
    "photonPersistentDisk": _needing("pdID"),
    "portworxVolume": _needing("volumeID"),
    "quobyte": _needing("registry", "volume"),
    "rbd": _rbd_faults,
    "scaleIO": _needing("gateway", "system", "volumeName"),
    "vsphereVolume": _needing("volumePath"),
}
POD_SOURCES: Final[Mapping[str, _Faults]] = {
    **_SHARED,
    "configMap": _config_map_faults,
    "csi": _csi_faults,
    "downwardAPI": _downward_faults,
    "gitRepo": _git_repo_faults,
    "image": _image_faults,
    "persistentVolumeClaim": _needing("claimName"),
    "projected": _projected_faults,
    "secret": _secret_faults,
}
PERSISTENT_SOURCES: Final[Mapping[str, _Faults]] = {
    **_SHARED,
    "csi": _persistent_csi_faults,
    "local": _local_faults,
}
SHOWN_NAMES: Final[Mapping[str, str]] = {
    "cephfs": "cephFS",
    "downwardAPI": "downwarAPI",
}
"""How upstream names a second source."""

FIRST_NAMES: Final[Mapping[str, str]] = {"gcePersistentDisk": "persistentDisk"}
"""How upstream names the source itself."""


def source_faults(
    given: Sequence[str], sources: Mapping[str, _Faults], volume: Plain, path: str
) -> Iterator[FieldFault]:
    """Yield what is wrong with the sources of a volume: there has to be exactly one.

    Args:
        given: Names of the sources that are there, in upstream's order.
        sources: How to check each.
        volume: What has the sources.
        path: Of the volume.
    """
    for index, name in enumerate(given):
        # Upstream forgets to look whether such a volume is the second one.
        if index and not (name == "flexVolume" and sources is PERSISTENT_SOURCES):
            yield forbidden(f"{path}.{SHOWN_NAMES.get(name, name)}", ONE_TYPE)
        elif name in sources:
            yield from sources[name](volume[name], f"{path}.{FIRST_NAMES.get(name, name)}")
    if not given:
        yield required(path, NO_TYPE)
