"""Where containers mount volumes.

Upstream: pkg/apis/core/validation/validation.go (v1.36)
Differs:  nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from kubesched.apiserver.field_fault import (
    FieldFault,
    forbidden,
    invalid,
    not_found,
    not_supported,
    required,
)
from kubesched.apiserver.plain import Plain, get
from kubesched.apiserver.validation.paths import backstep_faults, descending_path_faults

_PROPAGATIONS: Final = ("Bidirectional", "HostToContainer", "None")
_READ_ONLY_MODES: Final = ("Disabled", "Enabled", "IfPossible")
_ONLY_CLAIMS: Final = (
    "can only use volume source type of PersistentVolumeClaim or Ephemeral for block mode"
)


def mount_faults(container: Plain, volumes: Mapping[str, Plain], path: str) -> Iterator[FieldFault]:
    """Yield what is wrong with the mounts and the devices of a container."""
    mounts, devices = container.get("volumeMounts") or (), container.get("volumeDevices") or ()
    device_paths = {device["name"]: device["devicePath"] for device in devices}
    seen: set[str] = set()
    for index, mount in enumerate(mounts):
        own_path = f"{path}.volumeMounts[{index}]"
        yield from _place_faults(mount, volumes, own_path)
        if mount["mountPath"] in seen:
            yield invalid(f"{own_path}.mountPath", mount["mountPath"], "must be unique")
        seen.add(mount["mountPath"])
        yield from _clash_faults(mount["name"], mount["mountPath"], device_paths, own_path)
        yield from _option_faults(mount, container, own_path, f"{path}.volumeMounts")
    if devices:
        mount_paths = {mount["name"]: mount["mountPath"] for mount in mounts}
        yield from _device_faults(devices, mount_paths, volumes, f"{path}.volumeDevices")


def _place_faults(mount: Plain, volumes: Mapping[str, Plain], path: str) -> Iterator[FieldFault]:
    if not mount["name"]:
        yield required(f"{path}.name")
    if mount["name"] not in volumes:
        yield not_found(f"{path}.name", mount["name"])
    if not mount["mountPath"]:
        yield required(f"{path}.mountPath")


def _clash_faults(
    name: str, mount_path: str, devices: Mapping[str, str], path: str
) -> Iterator[FieldFault]:
    if name in devices:
        yield invalid(f"{path}.name", name, "must not already exist in volumeDevices")
    if mount_path in devices.values():
        detail = "must not already exist as a path in volumeDevices"
        yield invalid(f"{path}.mountPath", mount_path, detail)


def _option_faults(
    mount: Plain, container: Plain, path: str, list_path: str
) -> Iterator[FieldFault]:
    # Upstream tells the list, not the entry, for most options.
    part, expression = mount.get("subPath", ""), mount.get("subPathExpr", "")
    if part:
        yield from descending_path_faults(part, f"{list_path}.subPath")
    if expression:
        if part:
            detail = "subPathExpr and subPath are mutually exclusive"
            yield invalid(f"{path}.subPathExpr", expression, detail)
        yield from descending_path_faults(expression, f"{list_path}.subPathExpr")
    propagation = mount.get("mountPropagation")
    if propagation is not None:
        field = f"{list_path}.mountPropagation"
        if propagation not in _PROPAGATIONS:
            yield not_supported(field, propagation, _PROPAGATIONS)
        if propagation == "Bidirectional" and not get(container, "securityContext", "privileged"):
            detail = "Bidirectional mount propagation is available only to privileged containers"
            yield forbidden(field, detail)
    if mount.get("recursiveReadOnly") is not None:
        yield from _recursive_faults(mount, f"{list_path}.recursiveReadOnly")


def _recursive_faults(mount: Plain, field: str) -> Iterator[FieldFault]:
    mode = mount["recursiveReadOnly"]
    if mode not in _READ_ONLY_MODES:
        yield not_supported(field, mode, _READ_ONLY_MODES)
    elif mode != "Disabled":
        if not mount.get("readOnly"):
            yield forbidden(field, "may only be specified when readOnly is true")
        if mount.get("mountPropagation") not in (None, "None"):
            detail = "may only be specified when mountPropagation is None or not specified"
            yield forbidden(field, detail)


def _device_faults(
    devices: list[Plain], mounts: Mapping[str, str], volumes: Mapping[str, Plain], path: str
) -> Iterator[FieldFault]:
    names: set[str] = set()
    paths: set[str] = set()
    for index, device in enumerate(devices):
        own_path, name, device_path = f"{path}[{index}]", device["name"], device["devicePath"]
        if not name:
            yield required(f"{own_path}.name")
        if name in names:
            yield invalid(f"{own_path}.name", name, "must be unique")
        yield from _device_volume_faults(name, volumes.get(name), f"{own_path}.name")
        if not device_path:
            yield required(f"{own_path}.devicePath")
        if device_path in paths:
            yield invalid(f"{own_path}.devicePath", device_path, "must be unique")
        if any(backstep_faults(device_path, "")):
            detail = "can not contain backsteps ('..')"
            yield invalid(f"{own_path}.devicePath", device_path, detail)
        else:
            paths.add(device_path)
        if name in mounts:
            yield invalid(f"{own_path}.name", name, "must not already exist in volumeMounts")
        if device_path in mounts.values():
            detail = "must not already exist as a path in volumeMounts"
            yield invalid(f"{own_path}.devicePath", device_path, detail)
        if name:
            names.add(name)


def _device_volume_faults(name: str, volume: Plain | None, field: str) -> Iterator[FieldFault]:
    if volume is None:
        yield not_found(field, name)
    elif volume.get("persistentVolumeClaim") is None and volume.get("ephemeral") is None:
        yield invalid(field, name, _ONLY_CLAIMS)
