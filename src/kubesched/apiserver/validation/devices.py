"""Devices: their classes and slices, and claims to them.

Upstream: pkg/apis/resource/validation/validation.go (v1.36)
Differs:  names, counts and choices are checked; expressions, capacities, counters and allocations
          are not.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final

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
from kubesched.apiserver.validation.metadata import (
    core_metadata_update_faults,
    immutable_faults,
    metadata_faults,
)
from kubesched.apiserver.validation.node_selectors import node_selector_faults
from kubesched.apiserver.validation.volume_sources import driver_name_faults

_MODES: Final = ("All", "ExactCount")
_REQUESTS_MAX: Final = 32
_SELECTORS_MAX: Final = 32
_DEVICES_MAX: Final = 128
_ONE_REQUEST: Final = "exactly one of `exactly` or `firstAvailable` is required"
_ONE_PLACE: Final = (
    "exactly one of `nodeName`, `nodeSelector`, `allNodes`, `perDeviceNodeSelection` is required"
)
_POOL_NAME_MAX: Final = 253


def device_class_faults(device_class: Plain) -> Iterator[FieldFault]:
    """Yield what is wrong with a class of devices."""
    yield from metadata_faults(device_class["metadata"], False, dns_subdomain, checks_prefix=False)
    yield from _selector_faults(device_class["spec"].get("selectors") or (), "spec.selectors")


def device_class_update_faults(new: Plain, old: Plain) -> Iterator[FieldFault]:
    """Yield what is wrong with a change of a class of devices."""
    yield from core_metadata_update_faults(new["metadata"], old["metadata"])
    yield from device_class_faults(new)


def _selector_faults(selectors: Sequence[Plain], path: str) -> Iterator[FieldFault]:
    if len(selectors) > _SELECTORS_MAX:
        yield too_many(path, len(selectors), _SELECTORS_MAX)
    for index, selector in enumerate(selectors):
        expression = selector.get("cel")
        if expression is None:
            yield required(f"{path}[{index}].cel")
        elif not expression["expression"]:
            yield required(f"{path}[{index}].cel.expression")


def claim_faults(claim: Plain) -> Iterator[FieldFault]:
    """Yield what is wrong with a claim to devices."""
    yield from metadata_faults(claim["metadata"], True, dns_subdomain)
    yield from _claim_spec_faults(claim["spec"], "spec")


def claim_update_faults(new: Plain, old: Plain) -> Iterator[FieldFault]:
    """Yield what is wrong with a change of a claim to devices."""
    yield from core_metadata_update_faults(new["metadata"], old["metadata"])
    yield from immutable_faults(new["spec"], old["spec"], "spec")
    if new["spec"] != old["spec"]:
        yield from _claim_spec_faults(new["spec"], "spec")


def claim_template_faults(template: Plain) -> Iterator[FieldFault]:
    """Yield what is wrong with a template of claims to devices."""
    yield from metadata_faults(template["metadata"], True, dns_subdomain)
    yield from _claim_spec_faults(template["spec"]["spec"], "spec.spec")


def claim_template_update_faults(new: Plain, old: Plain) -> Iterator[FieldFault]:
    """Yield what is wrong with a change of a template of claims to devices."""
    yield from core_metadata_update_faults(new["metadata"], old["metadata"])
    yield from immutable_faults(new["spec"], old["spec"], "spec")


def _claim_spec_faults(spec: Plain, path: str) -> Iterator[FieldFault]:
    requests, path = spec["devices"].get("requests") or (), f"{path}.devices.requests"
    if len(requests) > _REQUESTS_MAX:
        yield too_many(path, len(requests), _REQUESTS_MAX)
    names: set[str] = set()
    for index, request in enumerate(requests):
        own_path = f"{path}[{index}]"
        yield from _name_faults(request["name"], names, own_path)
        exactly, choices = request.get("exactly"), request.get("firstAvailable") or ()
        if (exactly is None) == (not choices):
            if exactly is None:
                yield required(own_path, _ONE_REQUEST)
            else:
                yield invalid(own_path, None, _ONE_REQUEST)
        if exactly is not None:
            yield from _request_faults(exactly, f"{own_path}.exactly")
        choice_names: set[str] = set()
        for number, choice in enumerate(choices):
            choice_path = f"{own_path}.firstAvailable[{number}]"
            yield from _name_faults(choice["name"], choice_names, choice_path)
            yield from _request_faults(choice, choice_path)


def _name_faults(name: str, names: set[str], path: str) -> Iterator[FieldFault]:
    if name:
        yield from each(f"{path}.name", name, dns_label(name))
    else:
        yield required(f"{path}.name")
    if name in names:
        yield duplicate(f"{path}.name", name)
    names.add(name)


def _request_faults(request: Plain, path: str) -> Iterator[FieldFault]:
    name = request["deviceClassName"]
    if name:
        yield from each(f"{path}.deviceClassName", name, dns_subdomain(name))
    else:
        yield required(f"{path}.deviceClassName")
    yield from _selector_faults(request.get("selectors") or (), f"{path}.selectors")
    mode, count = request.get("allocationMode", ""), request.get("count", 0)
    if mode not in _MODES:
        yield not_supported(f"{path}.allocationMode", mode, _MODES)
    elif mode == "All" and count:
        detail = "must not be specified when allocationMode is 'All'"
        yield invalid(f"{path}.count", count, detail)
    elif mode == "ExactCount" and count <= 0:
        yield invalid(f"{path}.count", count, "must be greater than zero")


def slice_faults(piece: Plain) -> Iterator[FieldFault]:
    """Yield what is wrong with a part of the devices of a pool."""
    yield from metadata_faults(piece["metadata"], False, dns_subdomain)
    yield from _slice_spec_faults(piece["spec"])


def _slice_spec_faults(spec: Plain) -> Iterator[FieldFault]:
    yield from driver_name_faults(spec["driver"], "spec.driver")
    yield from _pool_faults(spec["pool"])
    given: list[Any] = [
        name
        for name in ("nodeName", "nodeSelector", "allNodes", "perDeviceNodeSelection")
        if spec.get(name)
    ]
    if not given:
        yield required("spec", _ONE_PLACE)
    elif len(given) > 1:
        yield invalid("spec", f"{{{', '.join(f'`{name}`' for name in given)}}}", _ONE_PLACE)
    if spec.get("nodeName"):
        yield from each("spec.nodeName", spec["nodeName"], dns_subdomain(spec["nodeName"]))
    if spec.get("nodeSelector") is not None:
        yield from node_selector_faults(spec["nodeSelector"], "spec.nodeSelector")
    devices = spec.get("devices") or ()
    if len(devices) > _DEVICES_MAX:
        yield too_many("spec.devices", len(devices), _DEVICES_MAX)
    names: set[str] = set()
    for index, device in enumerate(devices):
        yield from _name_faults(device["name"], names, f"spec.devices[{index}]")


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


def slice_update_faults(new: Plain, old: Plain) -> Iterator[FieldFault]:
    """Yield what is wrong with a change of a part of the devices of a pool."""
    yield from core_metadata_update_faults(new["metadata"], old["metadata"])
    yield from _slice_spec_faults(new["spec"])
    spec, before = new["spec"], old["spec"]
    yield from immutable_faults(spec["driver"], before["driver"], "spec.driver")
    yield from immutable_faults(spec["pool"]["name"], before["pool"]["name"], "spec.pool.name")
    for name in ("nodeName", "allNodes"):
        yield from immutable_faults(spec.get(name), before.get(name), f"spec.{name}")


__all__ = [
    "claim_faults",
    "claim_template_faults",
    "claim_template_update_faults",
    "claim_update_faults",
    "device_class_faults",
    "device_class_update_faults",
    "slice_faults",
    "slice_update_faults",
]
