"""Slices: the devices that drivers have, in parts.

Upstream: pkg/apis/resource/validation/validation.go (v1.36)
Differs:  attributes, capacities, counters and conditions of devices are not checked.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from kubesched.api.label_format import label_value_errors
from kubesched.apiserver.field_fault import (
    FieldFault,
    duplicate,
    each,
    invalid,
    not_supported,
    required,
    too_many,
)
from kubesched.apiserver.names import dns_label, dns_subdomain
from kubesched.apiserver.plain import Plain
from kubesched.apiserver.validation.labels import label_name_faults
from kubesched.apiserver.validation.metadata import (
    core_metadata_update_faults,
    immutable_faults,
    metadata_faults,
)
from kubesched.apiserver.validation.node_selectors import node_selector_faults
from kubesched.apiserver.validation.volume_sources import driver_name_faults

_DEVICES_MAX: Final = 128
_TAINTS_MAX: Final = 16
_EFFECTS: Final = ("NoExecute", "NoSchedule", "None")
_TRUE_OR_NOTHING: Final = "must be either unset or set to true"
_ONE_PLACE: Final = (
    "exactly one of `nodeName`, `nodeSelector`, `allNodes`, `perDeviceNodeSelection` is required"
)
_ONE_PLACE_OF_DEVICE: Final = (
    "exactly one of `nodeName`, `nodeSelector`, or `allNodes` is required when "
    "`perDeviceNodeSelection` is set to true in the ResourceSlice spec"
)
_NO_PLACE_OF_DEVICE: Final = (
    "`nodeName`, `nodeSelector` and `allNodes` can only be set if `perDeviceNodeSelection` is set "
    "to true in the ResourceSlice spec"
)


def slice_faults(piece: Plain) -> Iterator[FieldFault]:
    """Yield what is wrong with a part of the devices of a pool."""
    yield from metadata_faults(piece["metadata"], False, dns_subdomain)
    yield from _slice_spec_faults(piece["spec"], None)


def slice_update_faults(new: Plain, old: Plain) -> Iterator[FieldFault]:
    """Yield what is wrong with a change of a part of the devices of a pool."""
    yield from core_metadata_update_faults(new["metadata"], old["metadata"])
    yield from _slice_spec_faults(new["spec"], old["spec"])


def _slice_spec_faults(spec: Plain, before: Plain | None) -> Iterator[FieldFault]:
    yield from driver_name_faults(spec["driver"], "spec.driver")
    yield from _pool_faults(spec["pool"])
    if before is not None:
        yield from immutable_faults(spec["pool"]["name"], before["pool"]["name"], "spec.pool.name")
        for name in ("driver", "nodeName"):
            yield from immutable_faults(spec.get(name), before.get(name), f"spec.{name}")
    yield from _place_faults(spec, "spec", "must be either unset or set to a non-empty string")
    names = ("nodeName", "nodeSelector", "allNodes", "perDeviceNodeSelection")
    given = [f"`{name}`" for name in names if spec.get(name)]
    if not given:
        yield required("spec", _ONE_PLACE)
    elif len(given) > 1:
        shown = f"{{{', '.join(given)}}}"
        yield invalid("spec", shown, f"{_ONE_PLACE}, but multiple fields are set")
    devices = spec.get("devices") or ()
    if spec.get("sharedCounters") and devices:
        yield invalid("spec", "", "only one of `sharedCounters` or `devices` is allowed")
    if len(devices) > _DEVICES_MAX:
        yield too_many("spec.devices", len(devices), _DEVICES_MAX)
    seen: set[str] = set()
    for index, device in enumerate(devices):
        path = f"spec.devices[{index}]"
        yield from _device_faults(device, bool(spec.get("perDeviceNodeSelection")), path)
        if device["name"] in seen:
            yield duplicate(f"{path}.name", device["name"])
        seen.add(device["name"])


def _place_faults(owner: Plain, path: str, no_name: str) -> Iterator[FieldFault]:
    """Yield what is wrong with where a slice or a device is."""
    name = owner.get("nodeName")
    if name:
        yield from each(f"{path}.nodeName", name, dns_subdomain(name))
    elif name is not None:
        yield invalid(f"{path}.nodeName", name, no_name)
    if owner.get("nodeSelector") is not None:
        yield from node_selector_faults(owner["nodeSelector"], f"{path}.nodeSelector")
    for flag in ("allNodes", "perDeviceNodeSelection"):
        if owner.get(flag) is False:
            yield invalid(f"{path}.{flag}", False, _TRUE_OR_NOTHING)


def _device_faults(device: Plain, has_own_place: bool, path: str) -> Iterator[FieldFault]:
    yield from each(f"{path}.name", device["name"], dns_label(device["name"]))
    taints = device.get("taints") or ()
    if len(taints) > _TAINTS_MAX:
        yield too_many(f"{path}.taints", len(taints), _TAINTS_MAX)
    for index, taint in enumerate(taints):
        yield from _taint_faults(taint, f"{path}.taints[{index}]")
    names = ("nodeName", "nodeSelector", "allNodes")
    if not has_own_place:
        if any(device.get(name) is not None for name in names):
            yield invalid(path, None, _NO_PLACE_OF_DEVICE)
        return
    yield from _place_faults(device, path, "must not be empty")
    given = [f"`{name}`" for name in names if device.get(name)]
    if not given:
        yield required(path, _ONE_PLACE_OF_DEVICE)
    elif len(given) > 1:
        yield invalid(path, f"{{{', '.join(given)}}}", _ONE_PLACE_OF_DEVICE)


def _taint_faults(taint: Plain, path: str) -> Iterator[FieldFault]:
    yield from label_name_faults(taint["key"], f"{path}.key")
    value, effect = taint.get("value", ""), taint["effect"]
    if value:
        yield from each(f"{path}.value", value, label_value_errors(value))
    if not effect:
        yield required(f"{path}.effect")
    elif effect not in _EFFECTS:
        yield not_supported(f"{path}.effect", effect, _EFFECTS)


def _pool_faults(pool: Plain) -> Iterator[FieldFault]:
    path, name = "spec.pool", pool["name"]
    if not name:
        yield required(f"{path}.name")
    else:
        for part in name.split("/"):
            yield from each(f"{path}.name", part, dns_subdomain(part))
    if pool["resourceSliceCount"] <= 0:
        count = pool["resourceSliceCount"]
        yield invalid(f"{path}.resourceSliceCount", count, "must be greater than zero")
    if pool["generation"] < 0:
        detail = "must be greater than or equal to zero"
        yield invalid(f"{path}.generation", pool["generation"], detail)
