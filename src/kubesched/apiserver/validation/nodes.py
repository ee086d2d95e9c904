"""Nodes: what is wrong with new ones, and with changes of them.

Upstream: pkg/apis/core/validation/validation.go (ValidateNode, ValidateNodeUpdate, v1.36)
Differs:  the dynamic configuration that nodes no longer have is not checked.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Final

from kubesched.apiserver.field_fault import (
    FieldFault,
    duplicate,
    failed,
    forbidden,
    go_quoted,
    invalid,
)
from kubesched.apiserver.ip_addresses import is_dual_stack_of_networks, network_faults
from kubesched.apiserver.names import dns_subdomain
from kubesched.apiserver.plain import Plain
from kubesched.apiserver.validation.internal_form import internal_form
from kubesched.apiserver.validation.metadata import core_metadata_update_faults, metadata_faults
from kubesched.apiserver.validation.resources import quantity_faults
from kubesched.apiserver.validation.tolerations import taint_faults

_FEATURE: Final = re.compile("^([A-Z][a-zA-Z0-9]*)(/[a-zA-Z0-9]+)*$")
_FEATURE_RULE: Final = (
    "must start with an UpperCamelCase segment, with subsequent segments separated by '/' "
    "(e.g., MyFeature or MyFeature/mySubFeature), and contain only alphanumeric characters and "
    "slashes"
)
_FEATURE_LENGTH_MAX: Final = 253
_FIXED_NETWORK: Final = 'node updates may not change podCIDR except from "" to valid'


def new_node_faults(node: Plain) -> Iterator[FieldFault]:
    """Yield what is wrong with a new node."""
    yield from metadata_faults(node["metadata"], False, dns_subdomain)
    yield from taint_faults(node["spec"].get("taints") or (), "metadata.taints")
    yield from _amount_faults(node["status"])
    yield from _feature_faults(node["status"].get("declaredFeatures") or ())
    networks = pod_networks(node)
    for index, network in enumerate(networks):
        yield from network_faults(network, f"spec.podCIDRs[{index}]")
    broken = [index for index, one in enumerate(networks) if network_faults(one, "")]
    if len(networks) > 1 and broken:
        why = f"invalid CIDR[{broken[0]}]: <nil> (invalid CIDR address: {networks[broken[0]]})"
        detail = f"invalid PodCIDRs. failed to check with dual stack with error:{why}"
        yield failed("spec.podCIDRs", detail)
    if len(networks) > 1 and (len(networks) > 2 or not is_dual_stack_of_networks(networks)):
        detail = "may specify no more than one CIDR for each IP family"
        yield invalid("spec.podCIDRs", networks, detail)


def pod_networks(node: Plain) -> list[str]:
    """Return the networks of a node's pods; the old field stands for a list of one."""
    one, several = node["spec"].get("podCIDR", ""), node["spec"].get("podCIDRs") or []
    return [one] if one and several[:1] != [one] else list(several)


def _amount_faults(status: Plain) -> Iterator[FieldFault]:
    for kind in ("capacity", "allocatable"):
        for name, quantity in (status.get(kind) or {}).items():
            yield from quantity_faults(name, quantity, f"status.{kind}.{name}")


def _feature_faults(features: Sequence[str]) -> Iterator[FieldFault]:
    path = "status.declaredFeatures"
    for index, feature in enumerate(features):
        begin = f"invalid feature name {go_quoted(feature)}: "
        if len(feature.encode()) > _FEATURE_LENGTH_MAX:
            detail = f"{begin}must be no more than {_FEATURE_LENGTH_MAX} characters"
            yield invalid(f"{path}[{index}]", feature, detail)
        elif _FEATURE.match(feature) is None:
            yield invalid(f"{path}[{index}]", feature, f"{begin}{_FEATURE_RULE}")
        following = features[index + 1] if index + 1 < len(features) else None
        if following == feature:
            yield duplicate(f"{path}[{index + 1}]", following)
        elif following is not None and feature > following:
            yield invalid(f"{path}[{index + 1}]", following, "list must be sorted alphabetically")


def node_update_faults(new: Plain, old: Plain) -> Iterator[FieldFault]:
    """Yield what is wrong with a change of a node, or of its status."""
    yield from core_metadata_update_faults(new["metadata"], old["metadata"])
    yield from _amount_faults(new["status"])
    yield from _feature_faults(new["status"].get("declaredFeatures") or ())
    seen: list[Plain] = []
    for index, address in enumerate(new["status"].get("addresses") or ()):
        if address in seen:
            shown = internal_form("core/NodeAddress", address)
            yield duplicate(f"status.addresses[{index}]", shown)
        seen.append(address)
    networks, before = pod_networks(new), pod_networks(old)
    if before and len(networks) != len(before):
        yield forbidden("spec.podCIDRs", _FIXED_NETWORK)
    elif before:
        changed = [one for one, other in zip(networks, before, strict=True) if one != other]
        yield from (forbidden("spec.podCIDRs", _FIXED_NETWORK) for _ in changed)
    provider = old["spec"].get("providerID", "")
    if provider and new["spec"].get("providerID", "") != provider:
        detail = 'node updates may not change providerID except from "" to valid'
        yield forbidden("spec.providerID", detail)
    yield from taint_faults(new["spec"].get("taints") or (), "metadata.taints")
    if new["spec"].get("externalID", "") != old["spec"].get("externalID", ""):
        yield forbidden("spec.externalID", "may not be updated")
