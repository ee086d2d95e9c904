"""Amounts of resources: sums over a pod's containers, the QoS class of a pod, and validation.

Upstream: staging/src/k8s.io/component-helpers/resource/helpers.go,
          pkg/apis/core/helper/{qos/qos.go,helpers.go},
          pkg/apis/core/validation/validation.go (validateResourceRequirements, v1.36)
Differs:  several wrong resources are reported in the order of their names.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Final

import msgspec

from kubesched.api.core import Pod
from kubesched.api.names import (
    is_extended_resource_name,
    is_huge_page_resource_name,
    is_native_resource,
    label_key_errors,
)
from kubesched.api.pod_requests import is_pod_level_resource, pod_limit_amounts, pod_request_amounts
from kubesched.api.quantity import Amount, QuantityError, parse_quantity
from kubesched.apiserver.formats import dns_label
from kubesched.apiserver.plain import Plain, entries
from kubesched.apiserver.schema import known_type
from kubesched.apiserver.status import FieldErrors

SHARED_RESOURCES: Final = ("cpu", "memory")
_AMOUNTS: Final = known_type("core_v1", "ResourceRequirements").fields["limits"].type


def qos_class(spec: Plain) -> str:
    """Return `Guaranteed`, `Burstable` or `BestEffort`."""
    if spec.get("resources") is not None:
        resources: Sequence[Plain] = [spec["resources"]]
    else:
        containers = [*(spec.get("containers") or ()), *(spec.get("initContainers") or ())]
        resources = [container["resources"] for container in containers]
    requests, limits = (
        [_positive(one.get(kind) or {}) for one in resources] for kind in ("requests", "limits")
    )
    if not any(requests) and not any(limits):
        return "BestEffort"
    has_limits = all(len(one) == len(SHARED_RESOURCES) for one in limits)
    is_guaranteed = has_limits and all(map(_AMOUNTS.is_equal, requests, limits))
    return "Guaranteed" if is_guaranteed else "Burstable"


def _positive(quantities: Mapping[str, str]) -> dict[str, str]:
    return {
        name: quantities[name]
        for name in SHARED_RESOURCES
        if name in quantities and parse_quantity(quantities[name]).sign > 0
    }


def of_containers(spec: Plain, kind: str) -> dict[str, Amount]:
    """Return the sum of `requests` or `limits` of a pod's containers.

    If an init container and its sidecars need more, their need counts.
    """
    containers = {
        name: [
            {"resources": one["resources"], "restartPolicy": one.get("restartPolicy", "")}
            for one in spec.get(name) or ()
        ]
        for name in ("containers", "initContainers")
    }
    pod = msgspec.convert({"spec": containers}, Pod)
    total = pod_request_amounts if kind == "requests" else pod_limit_amounts
    return total(pod, pod_level=False)


_CONTAINER_RESOURCES: Final = ("cpu", "memory", "ephemeral-storage")
_INTEGER_RESOURCES: Final = (
    *("configmaps", "persistentvolumeclaims", "pods", "replicationcontrollers", "resourcequotas"),
    *("secrets", "services", "services.loadbalancers", "services.nodeports"),
)
_STANDARD_RESOURCES: Final = (
    *(*_CONTAINER_RESOURCES, *_INTEGER_RESOURCES, "storage", "requests.storage"),
    *("limits.cpu", "limits.ephemeral-storage", "limits.memory"),
    *("requests.cpu", "requests.ephemeral-storage", "requests.memory"),
)


def check_resources(owner: Plain, path: str, claims: Collection[str], errors: FieldErrors) -> None:
    """Add field errors for the resources of a container, or of the specification of a pod.

    `claims` are the names of the pod's resource claims.
    """
    resources, path = owner["resources"], f"{path}.resources"
    is_of_pod = "containers" in owner
    if is_of_pod and resources.get("claims"):
        errors.forbidden(f"{path}.claims", "claims may not be set for Resources at pod-level")
    _check(resources, claims, path, errors, is_of_pod=is_of_pod)
    if is_of_pod:
        _check_sums(owner, path, errors)


def check_overhead(overhead: Plain, path: str, errors: FieldErrors) -> None:
    """Add field errors for the overhead of a pod, which has the rules of limits."""
    _check({"limits": overhead}, (), path, errors)


def check_amount(name: str, quantity: str, path: str, errors: FieldErrors) -> None:
    """Add field errors for an amount of a resource."""
    amount = parse_quantity(quantity)
    if amount.sign < 0:
        errors.invalid(path, quantity, "must be greater than or equal to 0")
    is_integer = name in _INTEGER_RESOURCES or is_extended_resource_name(name)
    if is_integer and amount.milli_value() % 1000:
        errors.invalid(path, quantity, "must be an integer")


def _check_name(name: str, path: str, errors: FieldErrors, *, is_of_pod: bool) -> None:
    wrong = label_key_errors(name)
    errors.each(path, name, wrong)
    is_standard = name in _STANDARD_RESOURCES or name.startswith(
        ("hugepages-", "requests.hugepages-")
    )
    is_unknown = not wrong and "/" not in name and not is_standard
    if is_unknown:
        errors.invalid(path, name, "must be a standard resource type or fully qualified")
    if is_of_pod:
        if not wrong and not is_unknown and not is_pod_level_resource(name):
            errors.not_supported(path, name, ("cpu", "hugepages-", "memory"))
    elif "/" not in name:
        if name not in _CONTAINER_RESOURCES and not is_huge_page_resource_name(name):
            errors.invalid(path, name, "must be a standard resource for containers")
    elif not is_native_resource(name) and not is_extended_resource_name(name):
        errors.invalid(path, name, "doesn't follow extended resource name standard")


def _check(
    resources: Plain,
    claims: Collection[str],
    path: str,
    errors: FieldErrors,
    *,
    is_of_pod: bool = False,
) -> None:
    limits, requests = resources.get("limits") or {}, resources.get("requests") or {}
    for kind, amounts in (("limits", limits), ("requests", requests)):
        for name, quantity in amounts.items():
            at = f"{path}.{kind}[{name}]"
            _check_name(name, at, errors, is_of_pod=is_of_pod)
            check_amount(name, quantity, at, errors)
            if kind == "requests":
                _check_limit(name, quantity, limits.get(name), path, errors)
            if is_huge_page_resource_name(name) and not _is_divisible(name, quantity):
                detail = f"{quantity} is not positive integer multiple of {name}"
                errors.invalid(at, quantity, detail)
    names = (*limits, *requests)
    if any(map(is_huge_page_resource_name, names)) and not any(
        name in SHARED_RESOURCES for name in names
    ):
        errors.forbidden(path, "HugePages require cpu or memory")
    _check_claims(resources, claims, path, errors)


def _check_limit(
    name: str, quantity: str, limit: str | None, path: str, errors: FieldErrors
) -> None:
    may_exceed = is_native_resource(name) and not is_huge_page_resource_name(name)
    if limit is None:
        if not may_exceed:
            errors.required(f"{path}.limits", "Limit must be set for non overcommitable resources")
        return
    order = parse_quantity(quantity).compare(parse_quantity(limit))
    if order and not may_exceed:
        errors.invalid(f"{path}.requests", quantity, f"must be equal to {name} limit of {limit}")
    elif order > 0:
        detail = f"must be less than or equal to {name} limit of {limit}"
        errors.invalid(f"{path}.requests", quantity, detail)


def _is_divisible(name: str, quantity: str) -> bool:
    """Return whether an amount is a whole number of pages."""
    try:
        page = parse_quantity(name.removeprefix("hugepages-"))
    except QuantityError:
        return False
    if page.sign <= 0 or page.milli_value() % 1000:
        return False
    return parse_quantity(quantity).value() % page.value() == 0


def _check_claims(resources: Plain, known: Collection[str], path: str, errors: FieldErrors) -> None:
    keys: list[str] = []
    for at, claim in entries(resources, path, "claims"):
        name, request = claim["name"], claim.get("request", "")
        if not name:
            errors.required(at)
            continue
        key = f"{name}/{request}" if request else name
        if request:
            errors.each(f"{at}.request", request, dns_label(request))
        # A whole claim clashes with any of its requests.
        is_taken = name in keys or (
            not request and any(one.partition("/")[0] == name for one in keys)
        )
        if is_taken or key in keys:
            errors.duplicate(at, key if key in keys else name)
        keys.append(key)
        if name not in known:
            names = f": {', '.join(sorted(known))}" if known else " which is empty"
            errors.not_found(
                at, name, f"must be one of the names in pod.spec.resourceClaims{names}"
            )


def _check_sums(spec: Plain, path: str, errors: FieldErrors) -> None:
    """Add a field error where containers request more than the pod."""
    for kind in ("requests", "limits"):
        own = spec["resources"].get(kind) or {}
        for name, amount in sorted(of_containers(spec, kind).items()):
            is_bound = name in own and (kind == "requests" or is_huge_page_resource_name(name))
            if is_bound and amount.compare(parse_quantity(own[name])) > 0:
                detail = f"must be greater than or equal to aggregate container {kind} of {amount}"
                errors.invalid(f"{path}.{kind}[{name}]", own[name], detail)
    limits = spec["resources"].get("limits") or {}
    for at, container in entries(spec, path, "containers"):
        for name, limit in (container["resources"].get("limits") or {}).items():
            bound = limits.get(name)
            if bound is not None and parse_quantity(limit).compare(parse_quantity(bound)) > 0:
                detail = f"must be less than or equal to pod limits of {bound}"
                errors.invalid(f"{at}[{name}].limits", limit, detail)
