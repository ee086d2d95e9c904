"""Builds the allocation of a claim from the chosen devices.

Upstream: staging/src/k8s.io/dynamic-resource-allocation/structured/internal/incubating/
          allocator_incubating.go, Allocate and createNodeSelector (v1.36)
Reads:    configuration of device classes and claims; node selection of slices and devices
Differs:  nothing. As upstream, a claim's configuration is repeated for each request it names.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from msgspec.structs import replace

from kubesched.api.meta import NodeSelector, NodeSelectorRequirement, NodeSelectorTerm
from kubesched.api.quantity import Quantity
from kubesched.api.resource import (
    AllocationResult,
    DeviceAllocationConfiguration,
    DeviceAllocationResult,
    DeviceClass,
    DeviceRequestAllocationResult,
    ResourceClaim,
)
from kubesched.framework.dra.pools import AllocationError, CandidateDevice
from kubesched.plugins.dynamic_resources.requests import ParsedRequest

UNNUMBERED_SHARE = ""
"""The id of a share before the node is chosen."""

_FROM_CLASS, _FROM_CLAIM = "FromClass", "FromClaim"


@dataclass(frozen=True, slots=True, eq=False)
class Chosen:
    """A device, or a share of one, taken for a request."""

    request: ParsedRequest
    candidate: CandidateDevice
    consumed_capacity: dict[str, Quantity]
    is_shared: bool


def allocation_result(
    claim: ResourceClaim,
    chosen: Sequence[Chosen],
    selected: Sequence[tuple[ParsedRequest, DeviceClass]],
    node_name: str,
    *,
    binding_conditions: bool,
) -> AllocationResult:
    """Return the claim's allocation on the node of the search.

    `chosen` are its devices, in the order in which they were taken; `selected` has, per request,
    the alternative that was satisfied, and its class. Raises AllocationError if a device or its
    configuration is invalid.
    """
    try:
        node_selector = _node_selector(chosen, node_name)
    except AllocationError as error:
        raise AllocationError(
            f"create NodeSelector for claim {claim.metadata.name}: {error}"
        ) from error
    return AllocationResult(
        devices=DeviceAllocationResult(
            results=tuple(_device_result(one, binding_conditions) for one in chosen),
            config=(*_class_configs(selected), *_claim_configs(claim, selected)),
        ),
        node_selector=node_selector,
    )


def _device_result(chosen: Chosen, binding_conditions: bool) -> DeviceRequestAllocationResult:
    (driver, pool, name), device = chosen.candidate.id, chosen.candidate.device
    return DeviceRequestAllocationResult(
        request=chosen.request.full_name,
        driver=driver,
        pool=pool,
        device=name,
        admin_access=True if chosen.request.admin_access else None,
        tolerations=chosen.request.tolerations,
        binding_conditions=device.binding_conditions if binding_conditions else (),
        binding_failure_conditions=device.binding_failure_conditions if binding_conditions else (),
        share_id=UNNUMBERED_SHARE if chosen.is_shared else None,
        consumed_capacity=chosen.consumed_capacity,
    )


def _class_configs(
    selected: Sequence[tuple[ParsedRequest, DeviceClass]],
) -> list[DeviceAllocationConfiguration]:
    """Return the configuration of each class once, with all requests that use the class."""
    requests: dict[str, list[str]] = {}
    classes: dict[str, DeviceClass] = {}
    for request, device_class in selected:
        name = device_class.metadata.name
        classes[name] = device_class
        requests.setdefault(name, []).append(request.full_name)
    return [
        DeviceAllocationConfiguration(
            source=_FROM_CLASS, requests=tuple(requests[name]), opaque=config.opaque
        )
        for name, device_class in classes.items()
        for config in device_class.spec.config
    ]


def _claim_configs(
    claim: ResourceClaim, selected: Sequence[tuple[ParsedRequest, DeviceClass]]
) -> list[DeviceAllocationConfiguration]:
    """Return the claim's configuration, repeated for each request that it names."""
    configs: list[DeviceAllocationConfiguration] = []
    for written in claim.spec.devices.config:
        config = DeviceAllocationConfiguration(
            source=_FROM_CLAIM, requests=written.requests, opaque=written.opaque
        )
        times = sum(
            request.base_name in written.requests or request.full_name in written.requests
            for request, _ in selected
        )
        configs += [config] * (times if written.requests else 1)
    return configs


def _node_selector(chosen: Sequence[Chosen], node_name: str) -> NodeSelector | None:
    """Return the selector of nodes that can use all devices; None if every node can."""
    fields: list[NodeSelectorRequirement] = []
    labels: list[NodeSelectorRequirement] = []
    for one in chosen:
        device, spec = one.candidate.device, one.candidate.slice.spec
        where = device if spec.per_device_node_selection else spec
        if where.node_name is not None or device.binds_to_node:
            return _only(node_name)
        terms = () if where.node_selector is None else where.node_selector.node_selector_terms
        if len(terms) > 1:
            raise AllocationError(f"unsupported ResourceSlice.NodeSelector with {len(terms)} terms")
        for term in terms:
            _add_new(term.match_fields, fields)
            _add_new(term.match_expressions, labels)
    if not fields and not labels:
        return None
    term = NodeSelectorTerm(match_fields=tuple(fields), match_expressions=tuple(labels))
    return NodeSelector(node_selector_terms=(term,))


def number_shares(result: AllocationResult, new_id: Callable[[], str]) -> AllocationResult:
    """Return the result with ids for the shares of devices."""
    devices = result.devices
    if not any(one.share_id == UNNUMBERED_SHARE for one in devices.results):
        return result
    numbered = tuple(
        replace(one, share_id=new_id()) if one.share_id == UNNUMBERED_SHARE else one
        for one in devices.results
    )
    return replace(result, devices=replace(devices, results=numbered))


def _only(node_name: str) -> NodeSelector:
    name = NodeSelectorRequirement(key="metadata.name", operator="In", values=(node_name,))
    return NodeSelector(node_selector_terms=(NodeSelectorTerm(match_fields=(name,)),))


def _add_new(
    requirements: Sequence[NodeSelectorRequirement], to: list[NodeSelectorRequirement]
) -> None:
    known = [(one.key, one.operator, {*one.values}) for one in to]
    for one in requirements:
        key = one.key, one.operator, {*one.values}
        if key not in known:
            known.append(key)
            to.append(one)
