"""Resources of a pod as a whole, beside those of its containers.

Upstream: pkg/apis/core/validation/validation.go (validatePodResources, v1.36)
Differs:  nothing.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator

from kubesched.api.quantity import parse_quantity
from kubesched.apiserver.field_fault import FieldFault, forbidden, invalid
from kubesched.apiserver.plain import Plain
from kubesched.apiserver.resource_amounts import is_huge_page, of_containers
from kubesched.apiserver.validation.resources import pod_resource_faults


def pod_level_resource_faults(
    spec: Plain, claims: Collection[str], path: str
) -> Iterator[FieldFault]:
    """Yield what is wrong with the resources that a pod asks for as a whole."""
    resources = spec.get("resources")
    if resources is None:
        return
    path = f"{path}.resources"
    if (spec.get("os") or {}).get("name") == "windows":
        yield forbidden(path, "may not be set for a windows pod")
        return
    if resources.get("claims"):
        yield forbidden(f"{path}.claims", "claims may not be set for Resources at pod-level")
    yield from pod_resource_faults(resources, claims, path)
    yield from _sum_faults(spec, resources, path)


def _sum_faults(spec: Plain, resources: Plain, path: str) -> Iterator[FieldFault]:
    """Yield where containers ask for more than the pod."""
    requests, limits = resources.get("requests") or {}, resources.get("limits") or {}
    for name, amount in sorted(of_containers(spec, "requests").items()):
        if name in requests and amount.compare(parse_quantity(requests[name])) > 0:
            detail = f"must be greater than or equal to aggregate container requests of {amount}"
            yield invalid(f"{path}.requests[{name}]", requests[name], detail)
    for name, amount in sorted(of_containers(spec, "limits").items()):
        is_bounded = is_huge_page(name) and name in limits
        if is_bounded and amount.compare(parse_quantity(limits[name])) > 0:
            detail = f"must be greater than or equal to aggregate container limits of {amount}"
            yield invalid(f"{path}.limits[{name}]", limits[name], detail)
    for index, container in enumerate(spec.get("containers") or ()):
        for name, limit in (container["resources"].get("limits") or {}).items():
            bound = limits.get(name)
            if bound is not None and parse_quantity(limit).compare(parse_quantity(bound)) > 0:
                field = f"{path}.containers[{index}][{name}].limits"
                detail = f"must be less than or equal to pod limits of {bound}"
                yield invalid(field, limit, detail)
