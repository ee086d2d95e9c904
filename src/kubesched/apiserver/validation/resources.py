"""What containers and pods ask for: names of resources and amounts.

Upstream: pkg/apis/core/validation/validation.go (validateResourceRequirements),
          pkg/apis/core/helper/helpers.go (v1.36)
Differs:  several wrong resources are told in the order of their names.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from typing import Final

from kubesched.api.label_format import label_key_errors
from kubesched.api.quantity import QuantityError, parse_quantity
from kubesched.api.resource_names import is_extended_resource_name, is_native_resource
from kubesched.apiserver.field_fault import (
    FieldFault,
    duplicate,
    each,
    forbidden,
    invalid,
    not_found,
    not_supported,
    required,
)
from kubesched.apiserver.names import dns_label
from kubesched.apiserver.plain import Plain
from kubesched.apiserver.resource_amounts import is_huge_page, is_pod_level, is_shared
from kubesched.apiserver.validation.metadata import NOT_NEGATIVE

_CONTAINER_RESOURCES: Final = ("cpu", "memory", "ephemeral-storage")
_QUOTA_RESOURCES: Final = (
    *_CONTAINER_RESOURCES,
    "configmaps",
    "limits.cpu",
    "limits.ephemeral-storage",
    "limits.memory",
    "persistentvolumeclaims",
    "pods",
    "replicationcontrollers",
    "requests.cpu",
    "requests.ephemeral-storage",
    "requests.memory",
    "requests.storage",
    "resourcequotas",
    "secrets",
    "services",
    "services.loadbalancers",
    "services.nodeports",
)
_STANDARD_RESOURCES: Final = (*_QUOTA_RESOURCES, "storage")
_INTEGER_RESOURCES: Final = (
    "configmaps",
    "persistentvolumeclaims",
    "pods",
    "replicationcontrollers",
    "resourcequotas",
    "secrets",
    "services",
    "services.loadbalancers",
    "services.nodeports",
)
_NO_OVERCOMMIT: Final = "Limit must be set for non overcommitable resources"
_POD_LEVEL_NAMES: Final = ("cpu", "hugepages-", "memory")

_NameFaults = Callable[[str, str], Iterator[FieldFault]]


def resource_name_faults(name: str, path: str) -> Iterator[FieldFault]:
    """Yield what is wrong with the name of any resource."""
    errors = label_key_errors(name)
    yield from each(path, name, errors)
    is_standard = name in _STANDARD_RESOURCES or name.startswith(
        ("hugepages-", "requests.hugepages-")
    )
    if not errors and "/" not in name and not is_standard:
        yield invalid(path, name, "must be a standard resource type or fully qualified")


def container_resource_name_faults(name: str, path: str) -> Iterator[FieldFault]:
    """Yield what is wrong with the name of a resource of containers."""
    yield from resource_name_faults(name, path)
    if "/" not in name:
        if name not in _CONTAINER_RESOURCES and not is_huge_page(name):
            yield invalid(path, name, "must be a standard resource for containers")
    elif not is_native_resource(name) and not is_extended_resource_name(name):
        yield invalid(path, name, "doesn't follow extended resource name standard")


def quota_resource_name_faults(name: str, path: str) -> Iterator[FieldFault]:
    """Yield what is wrong with the name of a resource of quotas."""
    yield from resource_name_faults(name, path)
    is_standard = name in _QUOTA_RESOURCES or name.startswith(("hugepages-", "requests.hugepages-"))
    if "/" not in name and not is_standard:
        yield invalid(path, name, "must be a standard resource for quota")


def _pod_resource_name_faults(name: str, path: str) -> Iterator[FieldFault]:
    faults = list(resource_name_faults(name, path))
    yield from faults
    if not faults and not is_pod_level(name):
        yield not_supported(path, name, _POD_LEVEL_NAMES)


def quantity_faults(name: str, quantity: str, path: str) -> Iterator[FieldFault]:
    """Yield what is wrong with an amount of a resource."""
    amount = parse_quantity(quantity)
    if amount.sign < 0:
        yield invalid(path, quantity, NOT_NEGATIVE)
    is_integer = name in _INTEGER_RESOURCES or is_extended_resource_name(name)
    if is_integer and amount.milli_value() % 1000:
        yield invalid(path, quantity, "must be an integer")


def _is_overcommit_allowed(name: str) -> bool:
    return is_native_resource(name) and not is_huge_page(name)


def container_resource_faults(
    resources: Plain, claims: Collection[str], path: str
) -> Iterator[FieldFault]:
    """Yield what is wrong with the resources of a container.

    Args:
        resources: Requests, limits and claims.
        claims: Names of the pod's resource claims.
        path: Of the resources.
    """
    if resources:
        yield from _faults(resources, container_resource_name_faults, claims, path)


def overhead_faults(overhead: Plain, path: str) -> Iterator[FieldFault]:
    """Yield what is wrong with the overhead of a pod; upstream checks it as limits."""
    yield from _faults({"limits": overhead}, container_resource_name_faults, (), path)


def pod_resource_faults(
    resources: Plain, claims: Collection[str], path: str
) -> Iterator[FieldFault]:
    """Yield what is wrong with the resources of a pod as a whole."""
    yield from _faults(resources, _pod_resource_name_faults, claims, path)


def _faults(
    resources: Plain, name_faults: _NameFaults, claims: Collection[str], path: str
) -> Iterator[FieldFault]:
    limits, requests = resources.get("limits") or {}, resources.get("requests") or {}
    for name, quantity in limits.items():
        yield from _one_amount(name, quantity, name_faults, f"{path}.limits[{name}]")
    for name, quantity in requests.items():
        own_path = f"{path}.requests[{name}]"
        yield from name_faults(name, own_path)
        yield from quantity_faults(name, quantity, own_path)
        yield from _limit_faults(name, quantity, limits.get(name), path)
        yield from _huge_page_faults(name, quantity, own_path)
    names = (*limits, *requests)
    if any(map(is_huge_page, names)) and not any(map(is_shared, names)):
        yield forbidden(path, "HugePages require cpu or memory")
    yield from _claim_faults(resources.get("claims") or (), claims, f"{path}.claims")


def _one_amount(
    name: str, quantity: str, name_faults: _NameFaults, path: str
) -> Iterator[FieldFault]:
    yield from name_faults(name, path)
    yield from quantity_faults(name, quantity, path)
    yield from _huge_page_faults(name, quantity, path)


def _limit_faults(name: str, quantity: str, limit: str | None, path: str) -> Iterator[FieldFault]:
    is_allowed = _is_overcommit_allowed(name)
    if limit is None:
        if not is_allowed:
            yield required(f"{path}.limits", _NO_OVERCOMMIT)
        return
    order = parse_quantity(quantity).compare(parse_quantity(limit))
    if order and not is_allowed:
        detail = f"must be equal to {name} limit of {limit}"
        yield invalid(f"{path}.requests", quantity, detail)
    elif order > 0:
        detail = f"must be less than or equal to {name} limit of {limit}"
        yield invalid(f"{path}.requests", quantity, detail)


def _huge_page_faults(name: str, quantity: str, path: str) -> Iterator[FieldFault]:
    if not is_huge_page(name) or _is_divisible(name, quantity):
        return
    yield invalid(path, quantity, f"{quantity} is not positive integer multiple of {name}")


def _is_divisible(name: str, quantity: str) -> bool:
    """Whether an amount is a whole number of pages."""
    try:
        page = parse_quantity(name.removeprefix("hugepages-"))
    except QuantityError:
        return False
    if page.sign <= 0 or page.milli_value() % 1000:
        return False
    return parse_quantity(quantity).value() % page.value() == 0


def _claim_faults(
    claims: Sequence[Plain], known: Collection[str], path: str
) -> Iterator[FieldFault]:
    keys: list[str] = []
    for index, claim in enumerate(claims):
        own_path, name, request = f"{path}[{index}]", claim["name"], claim.get("request", "")
        if not name:
            yield required(own_path)
            continue
        if name in keys:
            yield duplicate(own_path, name)
        else:
            key = name
            if request:
                yield from each(f"{own_path}.request", request, dns_label(request))
                key = f"{name}/{request}"
            if key in keys:
                yield duplicate(own_path, key)
            elif not request:
                same = [one for one in keys if one.partition("/")[0] == name]
                yield from (duplicate(own_path, name) for _ in same)
            keys.append(key)
        if name not in known:
            names = f": {', '.join(sorted(known))}" if known else " which is empty"
            detail = f"must be one of the names in pod.spec.resourceClaims{names}"
            yield not_found(own_path, name)._replace(detail=detail)
