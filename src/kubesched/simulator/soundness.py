"""Soundness: field errors in objects that would make any result wrong.

Upstream: pkg/apis/core/validation/validation.go (v1.36)
Reads:    amounts of resources, spread constraints, tolerations, weights and topology keys of
          affinity
Differs:  only values that would make a result wrong are checked; everything else is left to the API
          server. `apiserver.validation` needs whole objects as written, which are not available
          here.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from typing import Final

from kubesched.api.core import (
    Affinity,
    Node,
    Pod,
    PodAffinityTerm,
    PodSpec,
    ResourceRequirements,
    Toleration,
    TopologySpreadConstraint,
    WeightedPodAffinityTerm,
)
from kubesched.api.field_errors import FieldError, child, invalid, not_supported, required
from kubesched.api.meta import PreferredSchedulingTerm
from kubesched.api.quantity import Quantity, parse_quantity
from kubesched.api.tolerations import EFFECTS
from kubesched.api.well_known import PREFERRED, REQUIRED

_NOT_NEGATIVE: Final = "must be greater than or equal to 0"
_ACTIONS: Final = ("DoNotSchedule", "ScheduleAnyway")
_POLICIES: Final = ("Honor", "Ignore")
_OPERATORS: Final = ("Equal", "Exists", "Gt", "Lt")
_WEIGHT_MAX: Final = 100


def errors_of(item: object) -> Iterator[FieldError]:
    """Return the field errors of an object; none for kinds that are not checked."""
    if isinstance(item, Pod):
        return spec_errors(item.spec, "spec")
    if isinstance(item, Node):
        status = item.status
        return chain(
            amount_errors(status.allocatable, "status.allocatable"),
            amount_errors(status.capacity, "status.capacity"),
        )
    return iter(())


def spec_errors(spec: PodSpec, path: str) -> Iterator[FieldError]:
    """Yield the field errors of a pod's or pod template's spec."""
    for name, containers in (
        ("containers", spec.containers),
        ("initContainers", spec.init_containers),
    ):
        for index, container in enumerate(containers):
            yield from _resource_errors(container.resources, path, name, index, "resources")
    if spec.resources is not None:
        yield from _resource_errors(spec.resources, path, "resources")
    if spec.overhead:
        yield from amount_errors(spec.overhead, path, "overhead")
    for index, constraint in enumerate(spec.topology_spread_constraints):
        yield from _spread_errors(constraint, child(path, "topologySpreadConstraints", index))
    for index, toleration in enumerate(spec.tolerations):
        yield from _toleration_errors(toleration, child(path, "tolerations", index))
    if spec.affinity is not None:
        yield from _affinity_errors(spec.affinity, child(path, "affinity"))


def _resource_errors(resources: ResourceRequirements, *place: str | int) -> Iterator[FieldError]:
    requests, limits = resources.requests, resources.limits
    yield from amount_errors(requests, *place, "requests")
    if limits:
        yield from amount_errors(limits, *place, "limits")
        yield from _limit_errors(requests, limits, *place, "requests")


def amount_errors(amounts: Mapping[str, Quantity], *place: str | int) -> Iterator[FieldError]:
    """Yield the errors of amounts; `place` has the steps of their path."""
    for name, amount in amounts.items():
        # Nearly all amounts are text without a sign.
        if isinstance(amount, str) and "-" not in amount:
            continue
        if parse_quantity(amount).sign < 0:
            yield invalid(f"{child('', *place)}[{name}]", str(amount), _NOT_NEGATIVE)


def _limit_errors(
    requests: Mapping[str, Quantity], limits: Mapping[str, Quantity], *place: str | int
) -> Iterator[FieldError]:
    for name, amount in requests.items():
        limit = limits.get(name)
        if limit is None or limit == amount:
            continue
        if parse_quantity(amount).compare(parse_quantity(limit)) > 0:
            detail = f"must be less than or equal to {name} limit of {limit}"
            yield invalid(child("", *place), str(amount), detail)


def _spread_errors(constraint: TopologySpreadConstraint, path: str) -> Iterator[FieldError]:
    if constraint.max_skew <= 0:
        yield invalid(child(path, "maxSkew"), constraint.max_skew, "must be greater than zero")
    yield from _key_errors(constraint, path)
    action = constraint.when_unsatisfiable
    if action not in _ACTIONS:
        yield not_supported(child(path, "whenUnsatisfiable"), action, _ACTIONS)
    for name, policy in (
        ("nodeAffinityPolicy", constraint.node_affinity_policy),
        ("nodeTaintsPolicy", constraint.node_taints_policy),
    ):
        if policy is not None and policy not in _POLICIES:
            yield not_supported(child(path, name), policy, _POLICIES)


def _toleration_errors(toleration: Toleration, path: str) -> Iterator[FieldError]:
    if toleration.operator and toleration.operator not in _OPERATORS:
        yield not_supported(child(path, "operator"), toleration.operator, _OPERATORS)
    if toleration.effect and toleration.effect not in EFFECTS:
        yield not_supported(child(path, "effect"), toleration.effect, EFFECTS)


def _affinity_errors(affinity: Affinity, path: str) -> Iterator[FieldError]:
    nodes = affinity.node_affinity
    if nodes is not None:
        preferences = nodes.preferred_during_scheduling_ignored_during_execution or ()
        yield from _weight_errors(preferences, child(path, "nodeAffinity", PREFERRED))
    for name, pods in (
        ("podAffinity", affinity.pod_affinity),
        ("podAntiAffinity", affinity.pod_anti_affinity),
    ):
        if pods is not None:
            preferred = pods.preferred_during_scheduling_ignored_during_execution or ()
            yield from _weight_errors(preferred, child(path, name, PREFERRED))
            terms = pods.required_during_scheduling_ignored_during_execution or ()
            for index, term in enumerate(terms):
                yield from _key_errors(term, child(path, name, REQUIRED, index))
            for index, weighted in enumerate(preferred):
                place = child(path, name, PREFERRED, index, "podAffinityTerm")
                yield from _key_errors(weighted.pod_affinity_term, place)


def _weight_errors(
    terms: Sequence[PreferredSchedulingTerm | WeightedPodAffinityTerm], path: str
) -> Iterator[FieldError]:
    for index, term in enumerate(terms):
        if not 1 <= term.weight <= _WEIGHT_MAX:
            place = child(path, index, "weight")
            yield invalid(place, term.weight, "must be in the range 1-100")


def _key_errors(
    part: PodAffinityTerm | TopologySpreadConstraint, path: str
) -> Iterator[FieldError]:
    if not part.topology_key:
        yield required(child(path, "topologyKey"), "can not be empty")
