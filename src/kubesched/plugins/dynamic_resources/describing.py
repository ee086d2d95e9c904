"""Describes which device requests a node cannot satisfy, and why.

Reads:    claims, pools, allocated devices
Differs:  not in upstream; for explain.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace

from kubesched.api.core import Node
from kubesched.api.resource import ALL, AllocationResult, DeviceConstraint, ResourceClaim
from kubesched.api.selector_text import describe_selector
from kubesched.framework.dra.devices import matches_node_selector
from kubesched.framework.dra.pools import CandidateDevice
from kubesched.plugins.dynamic_resources.allocator import Allocator
from kubesched.plugins.dynamic_resources.claims import results_of, unmet_conditions
from kubesched.plugins.dynamic_resources.extended_resources import is_in_memory
from kubesched.plugins.dynamic_resources.node_devices import NodeDevices, Wanted
from kubesched.plugins.dynamic_resources.requests import ParsedRequest, requests_of

_FREE = ""


def describe_allocation(
    claim: ResourceClaim, allocation: AllocationResult | None, node: Node
) -> str:
    """Return why an allocated claim cannot be used on the node."""
    devices = ", ".join(f"{one.driver}/{one.pool}/{one.device}" for one in results_of(claim))
    text = f"{_named(claim)} is allocated {devices or 'no device'}"
    selector = None if allocation is None else allocation.node_selector
    if selector is None or matches_node_selector(selector, node):
        return f"{text}, which cannot be made ready"
    return f"{text}: {describe_selector(selector, node)}"


def _named(claim: ResourceClaim) -> str:
    """Return a claim by its name; the one for extended resources has none before it exists."""
    name = claim.metadata.name
    return "the claim for extended resources" if is_in_memory(claim) else f"claim {name}"


def describe_unready(claim: ResourceClaim, allocation: AllocationResult) -> Iterator[str]:
    """Yield the devices whose drivers have not set every binding condition yet."""
    for one in allocation.devices.results:
        if unmet := unmet_conditions(claim, one):
            device = f"device {one.driver}/{one.pool}/{one.device} of {_named(claim)}"
            yield f"{device} with binding condition{'s' * (len(unmet) > 1)} {' and '.join(unmet)}"


def describe_devices(allocator: Allocator, node: Node, claims: Sequence[ResourceClaim]) -> str:
    """Return which requests the node cannot satisfy, and how many of its devices fail, by reason.

    Raises AllocationError if a claim, class or device is invalid.
    """
    counted = _Count(allocator, node, claims)
    texts = [text for at in range(len(claims)) for text in counted.shortages(at)]
    if texts:
        return "; ".join(texts)
    names = ", ".join(map(_named, claims))
    rules = "".join(
        f", {_written(one)}" for claim in claims for one in claim.spec.devices.constraints
    )
    return f"{names}: each request alone can be served, all together cannot{rules}"


class _Count:
    """Counts the devices of one node for one pod's claims, before any is taken."""

    def __init__(self, allocator: Allocator, node: Node, claims: Sequence[ResourceClaim]) -> None:
        self._allocator = allocator
        self._claims = claims
        self._devices: NodeDevices = allocator.devices(node)

    def shortages(self, at: int) -> Iterator[str]:
        """Yield, per unsatisfiable request of a claim, what it needs and what the node has."""
        for alternatives in requests_of(self._claims[at]):
            texts = [self._shortage(at, request) for request in alternatives]
            if all(texts):
                yield from texts

    def _shortage(self, at: int, request: ParsedRequest) -> str:
        """Return what the request lacks; "" if it could be satisfied alone."""
        claim, devices = self._claims[at], self._devices
        wanted = devices.want(claim, request)
        of_class = devices.want(claim, replace(request, selectors=()))
        found: Counter[str] = Counter()
        for candidate in devices.candidates:
            if devices.is_selectable(claim, wanted, candidate):
                found[self._why_not_free(at, wanted, candidate)] += 1
            elif devices.is_selectable(claim, of_class, candidate):
                found["not selected"] += 1
            else:
                found["of another class"] += 1
        free = found.pop(_FREE, 0)
        takes_all = request.mode == ALL
        if (takes_all and free == wanted.count > 0) or (not takes_all and free >= request.count):
            return ""
        number = "all" if takes_all else str(request.count)
        text = f"{_named(claim)}, request {request.full_name}: wants {number} of"
        text += f" class {request.device_class_name}{_selectors(request)}; "
        if not devices.candidates:
            return f"{text}the node has no devices{self._unusable_pools()}"
        listed = ", ".join(f"{count} {why}" for why, count in found.items())
        there = f"{free} of {len(devices.candidates)} devices free"
        return f"{text}{there} ({listed}){self._unusable_pools()}" if listed else f"{text}{there}"

    def _why_not_free(self, at: int, wanted: Wanted, candidate: CandidateDevice) -> str:
        allocator, request = self._allocator, wanted.request
        attempt = allocator.attempt(self._claims)
        if not attempt.is_free(at, request, candidate.id):
            return "allocated"
        taints = candidate.device.taints
        if allocator.features.device_taints and not request.tolerates(taints):
            return f"tainted {', '.join(f'{one.key}={one.value}:{one.effect}' for one in taints)}"
        if not attempt.has_capacity(request, candidate):
            return "without enough capacity left"
        if attempt.take(at, wanted, candidate, must=False) is None:
            return "kept back by shared counters or constraints"
        return _FREE

    def _unusable_pools(self) -> str:
        names = [pool.name for pool in self._devices.pools if pool.is_incomplete or pool.is_invalid]
        return f"; not counted, because incomplete or invalid: {', '.join(names)}" if names else ""


def _selectors(request: ParsedRequest) -> str:
    expressions = [
        " ".join(one.cel.expression.split()) for one in request.selectors if one.cel is not None
    ]
    return f" where {' and '.join(expressions)}" if expressions else ""


def _written(constraint: DeviceConstraint) -> str:
    of = f" of {', '.join(constraint.requests)}" if constraint.requests else ""
    if constraint.match_attribute is not None:
        return f"matchAttribute {constraint.match_attribute}{of}"
    return f"distinctAttribute {constraint.distinct_attribute}{of}"
