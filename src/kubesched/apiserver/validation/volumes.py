"""Volumes of pods.

Upstream: pkg/apis/core/validation/validation.go (ValidateVolumes, v1.36)
Differs:  nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

from kubesched.api.quantity import parse_quantity
from kubesched.apiserver.field_fault import (
    FieldFault,
    duplicate,
    each,
    forbidden,
    go_quoted,
    invalid,
    required,
)
from kubesched.apiserver.names import dns_label, dns_subdomain
from kubesched.apiserver.plain import Plain
from kubesched.apiserver.validation.claims import claim_spec_faults
from kubesched.apiserver.validation.labels import annotation_faults, label_faults
from kubesched.apiserver.validation.volume_sources import POD_SOURCES, source_faults

_ORDER: Final = (
    "emptyDir",
    "hostPath",
    "gitRepo",
    "gcePersistentDisk",
    "awsElasticBlockStore",
    "secret",
    "nfs",
    "iscsi",
    "glusterfs",
    "flocker",
    "persistentVolumeClaim",
    "rbd",
    "cinder",
    "cephfs",
    "quobyte",
    "downwardAPI",
    "fc",
    "flexVolume",
    "configMap",
    "azureFile",
    "vsphereVolume",
    "photonPersistentDisk",
    "portworxVolume",
    "azureDisk",
    "storageos",
    "projected",
    "scaleIO",
    "csi",
    "ephemeral",
    "image",
)
_ISCSI_NAME_MAX: Final = 64
_ISCSI_NAME_RULE: Final = (
    "Total length of <volume name>:<iscsi.targetPortal> must be under 64 characters if "
    "iscsi.initiatorName is specified."
)
_CREATED_CLAIM: Final = "must not reference a PVC that gets created for an ephemeral volume"
_TEMPLATE_METADATA: Final = ("annotations", "labels")


class CheckedVolumes(NamedTuple):
    """The volumes of a pod, checked.

    Attributes:
        sound: Those without faults, by name.
        faults: What is wrong with the others.
    """

    sound: dict[str, Plain]
    faults: list[FieldFault]


def checked_volumes(volumes: Sequence[Plain], pod_name: str, path: str) -> CheckedVolumes:
    """Return which volumes can be mounted, and what is wrong with the others.

    Args:
        volumes: Of the pod.
        pod_name: For the names of claims; "" if there is none.
        path: Of the volumes.
    """
    created = [f"{pod_name}-{one['name']}" for one in volumes if pod_name and "ephemeral" in one]
    checked = CheckedVolumes({}, [])
    for index, volume in enumerate(volumes):
        own_path = f"{path}[{index}]"
        faults = list(_faults(volume, pod_name, own_path))
        if volume["name"] in checked.sound:
            faults.append(duplicate(f"{own_path}.name", volume["name"]))
        if not faults:
            checked.sound[volume["name"]] = volume
        checked.faults.extend(faults)
        claim = (volume.get("persistentVolumeClaim") or {}).get("claimName")
        if claim in created:
            field = f"{own_path}.persistentVolumeClaim.claimName"
            checked.faults.append(invalid(field, claim, _CREATED_CLAIM))
    return checked


def _faults(volume: Plain, pod_name: str, path: str) -> Iterator[FieldFault]:
    given = [name for name in _ORDER if volume.get(name) is not None]
    yield from source_faults(given, POD_SOURCES, volume, path)
    if "emptyDir" in given:
        limit = volume["emptyDir"].get("sizeLimit")
        if limit is not None and parse_quantity(limit).sign < 0:
            detail = "SizeLimit field must be a valid resource quantity"
            yield forbidden(f"{path}.emptyDir.sizeLimit", detail)
    if "iscsi" in given:
        yield from _iscsi_name_faults(volume, path)
    if given[:1] == ["ephemeral"]:
        yield from _ephemeral_faults(volume, pod_name, path)
    if volume["name"]:
        yield from each(f"{path}.name", volume["name"], dns_label(volume["name"]))
    else:
        yield required(f"{path}.name")


def _iscsi_name_faults(volume: Plain, path: str) -> Iterator[FieldFault]:
    source = volume["iscsi"]
    name = f"{volume['name']}:{source['targetPortal']}"
    if source.get("initiatorName") is not None and len(name.encode()) > _ISCSI_NAME_MAX:
        yield invalid(f"{path}.name", volume["name"], _ISCSI_NAME_RULE)


def _ephemeral_faults(volume: Plain, pod_name: str, path: str) -> Iterator[FieldFault]:
    template = volume["ephemeral"].get("volumeClaimTemplate")
    own_path = f"{path}.ephemeral.volumeClaimTemplate"
    if template is None:
        yield required(own_path)
    else:
        metadata = template.get("metadata") or {}
        yield from annotation_faults(
            metadata.get("annotations"), f"{own_path}.metadata.annotations"
        )
        yield from label_faults(metadata.get("labels"), f"{own_path}.metadata.labels")
        for name in metadata:
            if name not in _TEMPLATE_METADATA:
                yield forbidden(f"{own_path}.metadata.{name}", "cannot be set")
        yield from claim_spec_faults(template["spec"], f"{own_path}.spec")
    if pod_name and volume["name"]:
        claim = f"{pod_name}-{volume['name']}"
        for error in dns_subdomain(claim):
            detail = f"PVC name {go_quoted(claim)}: {error}"
            yield invalid(f"{path}.name", volume["name"], detail)
