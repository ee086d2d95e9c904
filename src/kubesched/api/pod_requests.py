"""What a pod asks for, added up over its containers.

Sums are exact and rounded at the end only: three containers of 0.4m cpu ask for 2m.

Upstream: staging/src/k8s.io/component-helpers/resource/helpers.go (v1.36)
Reads:    pod.spec.{containers,initContainers,resources,overhead}, pod.status
Differs:  nothing.
"""

from collections.abc import Callable, Mapping
from typing import Final

from kubesched.api.pod import Container, ContainerStatus, Pod, ResourceRequirements
from kubesched.api.quantity import ZERO, Amount, Quantity, parse_quantity
from kubesched.api.resource_names import (
    CPU,
    MEMORY,
    is_counted_resource_name,
    is_extended_resource_name,
    is_huge_page_resource_name,
    is_scalar_resource_name,
)

__all__ = [
    "DEFAULT_MEMORY_BYTES",
    "DEFAULT_MILLI_CPU",
    "Amounts",
    "has_pod_level_requests",
    "is_counted_resource_name",
    "is_extended_resource_name",
    "is_pod_level_resource",
    "is_scalar_resource_name",
    "pod_limit_amounts",
    "pod_limits",
    "pod_request_amounts",
    "pod_requests",
]

DEFAULT_MILLI_CPU: Final = 100
DEFAULT_MEMORY_BYTES: Final = 200 * 1024 * 1024

Amounts = dict[str, Amount]
_DEFAULTS: Final[Mapping[str, Amount]] = {
    CPU: Amount(DEFAULT_MILLI_CPU, -3),
    MEMORY: Amount(DEFAULT_MEMORY_BYTES, 0),
}
_ALWAYS: Final = "Always"


def pod_requests(
    pod: Pod,
    *,
    use_status: bool = False,
    pod_level: bool = True,
    default_missing: bool = False,
) -> dict[str, int]:
    """Return the requests that count: cpu in milli, everything else in whole units.

    Args:
        pod: The pod.
        use_status: Whether resizes in progress, as the status tells them, count too.
        pod_level: Whether `spec.resources` of the pod replaces the sum over containers.
        default_missing: Whether a container that does not name cpu or memory counts as asking for
            100m and 200 MiB; not for what the pod as a whole names when `pod_level`.

    Raises:
        QuantityError: A quantity cannot be parsed.
    """
    return _numbers(
        pod_request_amounts(
            pod, use_status=use_status, pod_level=pod_level, default_missing=default_missing
        )
    )


def pod_limits(pod: Pod, *, use_status: bool = False, pod_level: bool = True) -> dict[str, int]:
    """Return the limits that count: cpu in milli, everything else in whole units."""
    return _numbers(pod_limit_amounts(pod, use_status=use_status, pod_level=pod_level))


def _numbers(amounts: Amounts) -> dict[str, int]:
    return {
        name: amount.milli_value() if name == CPU else amount.value()
        for name, amount in amounts.items()
        if is_counted_resource_name(name)
    }


def pod_request_amounts(
    pod: Pod,
    *,
    use_status: bool = False,
    pod_level: bool = True,
    default_missing: bool = False,
) -> Amounts:
    """Return exact requests under every name, also under names that do not count."""
    if not default_missing:
        return _total_requests(pod, use_status, pod_level, {})
    defaults = _DEFAULTS
    if pod_level and has_pod_level_requests(pod):
        total = _total_requests(pod, use_status, pod_level, {})
        defaults = {name: amount for name, amount in _DEFAULTS.items() if name not in total}
    return _total_requests(pod, use_status, pod_level, defaults)


def _total_requests(
    pod: Pod, use_status: bool, pod_level: bool, defaults: Mapping[str, Amount]
) -> Amounts:
    spec, status = pod.spec, pod.status
    infeasible = use_status and _is_resize_infeasible(pod)

    def asked(container: Container, reported: ContainerStatus | None) -> Amounts:
        amounts = _amounts(container.resources.requests)
        if reported is not None and reported.resources is not None:
            actuated, allocated = reported.resources.requests, reported.allocated_resources
            amounts = _resized(amounts, actuated, allocated, infeasible)
        return {**defaults, **amounts} if defaults else amounts

    total = _sum_over_containers(pod, use_status, asked)
    if pod_level and has_pod_level_requests(pod):
        assert spec.resources is not None, "it names requests"
        whole = _amounts(spec.resources.requests)
        effective = whole
        if use_status and status.resources is not None:
            actuated, allocated = status.resources.requests, status.allocated_resources
            effective = _resized(whole, actuated, allocated, infeasible)
        for name in whole:
            if is_pod_level_resource(name):
                total[name] = effective.get(name, ZERO)
    _add(total, _amounts(spec.overhead))
    return total


def pod_limit_amounts(pod: Pod, *, use_status: bool = False, pod_level: bool = True) -> Amounts:
    """Return exact limits under every name; overhead counts where there is a limit."""
    spec, status = pod.spec, pod.status
    infeasible = use_status and _is_resize_infeasible(pod)

    def limited(limits: Mapping[str, Quantity], reported: ResourceRequirements | None) -> Amounts:
        amounts = _amounts(limits)
        if reported is None:
            return amounts
        actuated = _amounts(reported.limits)
        return actuated if infeasible else _raised(amounts, actuated)

    total = _sum_over_containers(
        pod,
        use_status,
        lambda container, reported: limited(
            container.resources.limits, reported.resources if reported is not None else None
        ),
    )
    if pod_level and spec.resources is not None and _has_pod_level_resources(spec.resources):
        effective = limited(spec.resources.limits, status.resources if use_status else None)
        for name in spec.resources.limits:
            if is_pod_level_resource(name):
                total[name] = effective.get(name, ZERO)
    for name, amount in _amounts(spec.overhead).items():
        if name in total and total[name].sign:
            total[name] = total[name].add(amount)
    return total


def is_pod_level_resource(name: str) -> bool:
    """Whether a pod as a whole can ask for the resource."""
    return name in (CPU, MEMORY) or is_huge_page_resource_name(name)


def has_pod_level_requests(pod: Pod) -> bool:
    """Whether the pod as a whole asks for a resource that a pod can ask for."""
    resources = pod.spec.resources
    return resources is not None and any(map(is_pod_level_resource, resources.requests))


def _has_pod_level_resources(resources: ResourceRequirements) -> bool:
    return any(map(is_pod_level_resource, (*resources.requests, *resources.limits)))


def _sum_over_containers(
    pod: Pod, use_status: bool, asked: Callable[[Container, ContainerStatus | None], Amounts]
) -> Amounts:
    """Add containers and sidecars; an init container may need more than what runs later."""
    statuses = _statuses_by_name(pod) if use_status else {}
    total: Amounts = {}
    for container in pod.spec.containers:
        _add(total, asked(container, statuses.get(container.name)))
    sidecars: Amounts = {}
    most: Amounts = {}
    for container in pod.spec.init_containers:
        if container.restart_policy == _ALWAYS:
            amounts = asked(container, statuses.get(container.name))
            _add(total, amounts)
            _add(sidecars, amounts)
            most = _raised(most, sidecars)
        else:
            # An init container cannot be resized, so its status does not count.
            use = dict(asked(container, None))
            _add(use, sidecars)
            most = _raised(most, use)
    return _raised(total, most)


def _statuses_by_name(pod: Pod) -> dict[str, ContainerStatus]:
    # Where a name is in both lists, the init container's status wins.
    statuses = (*pod.status.container_statuses, *pod.status.init_container_statuses)
    return {status.name: status for status in statuses}


def _is_resize_infeasible(pod: Pod) -> bool:
    for condition in pod.status.conditions:
        if condition.type == "PodResizePending":
            return condition.reason == "Infeasible"
    return False


def _resized(
    asked: Amounts,
    actuated: Mapping[str, Quantity],
    allocated: Mapping[str, Quantity] | None,
    infeasible: bool,
) -> Amounts:
    """Return the most of what is asked, in force and promised; an infeasible wish is left out."""
    known = _raised(_amounts(actuated), _amounts(allocated or {}))
    return known if infeasible else _raised(asked, known)


def _amounts(quantities: Mapping[str, Quantity]) -> Amounts:
    return {name: parse_quantity(quantity) for name, quantity in quantities.items()}


def _add(total: Amounts, amounts: Mapping[str, Amount]) -> None:
    for name, amount in amounts.items():
        total[name] = total[name].add(amount) if name in total else amount


def _raised(amounts: Amounts, others: Mapping[str, Amount]) -> Amounts:
    """Return the larger amount under each name."""
    most = dict(amounts)
    for name, other in others.items():
        if name not in most or other.compare(most[name]) > 0:
            most[name] = other
    return most
