"""Disruption budgets, priority classes, leases and runtime classes.

Upstream: pkg/apis/{policy,scheduling,coordination,node}/validation/validation.go (v1.36)
Differs:  leases that are led by strategy are not checked for it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from kubesched.apiserver.field_fault import (
    FieldFault,
    duplicate,
    each,
    forbidden,
    invalid,
    not_supported,
    required,
)
from kubesched.apiserver.names import dns_label, dns_subdomain
from kubesched.apiserver.plain import Plain
from kubesched.apiserver.validation.internal_form import internal_form
from kubesched.apiserver.validation.labels import label_faults, selector_faults
from kubesched.apiserver.validation.metadata import (
    core_metadata_update_faults,
    immutable_faults,
    metadata_faults,
    metadata_update_faults,
    plain_metadata_faults,
)
from kubesched.apiserver.validation.numbers import (
    above_hundred_faults,
    condition_faults,
    int_or_percent_faults,
    negative_faults,
)
from kubesched.apiserver.validation.pod_spec import PREEMPTION_POLICIES
from kubesched.apiserver.validation.resources import overhead_faults
from kubesched.apiserver.validation.tolerations import toleration_faults

_EVICTION_POLICIES: Final = ("AlwaysAllow", "IfHealthyBudget")
_SYSTEM_PREFIX: Final = "system-"
_SYSTEM_VALUES: Final = {
    "system-cluster-critical": 2_000_000_000,
    "system-node-critical": 2_000_001_000,
}
_USER_VALUE_MAX: Final = 1_000_000_000
_RESERVED: Final = (
    "priority class names with 'system-' prefix are reserved for system use only. error: "
)


def budget_faults(budget: Plain) -> Iterator[FieldFault]:
    """Yield what is wrong with a disruption budget."""
    spec = budget["spec"]
    if spec.get("minAvailable") is not None and spec.get("maxUnavailable") is not None:
        shown = internal_form("policy/PodDisruptionBudgetSpec", spec)
        yield invalid("spec", shown, "minAvailable and maxUnavailable cannot be both set")
    for name in ("minAvailable", "maxUnavailable"):
        value = spec.get(name)
        if value is not None:
            yield from int_or_percent_faults(value, f"spec.{name}")
            yield from above_hundred_faults(value, f"spec.{name}")
    yield from selector_faults(spec.get("selector"), "spec.selector")
    policy = spec.get("unhealthyPodEvictionPolicy")
    if policy is not None and policy not in _EVICTION_POLICIES:
        yield not_supported("spec.unhealthyPodEvictionPolicy", policy, _EVICTION_POLICIES)


def budget_update_faults(new: Plain, _old: Plain) -> Iterator[FieldFault]:
    """Yield what is wrong with a change of a disruption budget."""
    yield from budget_faults(new)


def budget_status_faults(new: Plain, _old: Plain) -> Iterator[FieldFault]:
    """Yield what is wrong with a change of a disruption budget's status."""
    status = new["status"]
    yield from condition_faults(status.get("conditions") or (), "status.conditions")
    names = ("disruptionsAllowed", "currentHealthy", "desiredHealthy", "expectedPods")
    yield from negative_faults(status, "status", *names)


def priority_class_faults(priority_class: Plain) -> Iterator[FieldFault]:
    """Yield what is wrong with a priority class."""
    yield from metadata_faults(priority_class["metadata"], False, dns_subdomain)
    name, value = priority_class["metadata"].get("name", ""), priority_class["value"]
    if name.startswith(_SYSTEM_PREFIX):
        if error := _system_class_error(name, value, bool(priority_class.get("globalDefault"))):
            yield forbidden("metadata.name", f"{_RESERVED}{error}")
    elif value > _USER_VALUE_MAX:
        detail = f"maximum allowed value of a user defined priority is {_USER_VALUE_MAX}"
        yield forbidden("value", detail)
    policy = priority_class.get("preemptionPolicy")
    if policy == "":
        yield required("preemptionPolicy")
    elif policy is not None and policy not in PREEMPTION_POLICIES:
        yield not_supported("preemptionPolicy", policy, PREEMPTION_POLICIES)


def _system_class_error(name: str, value: int, is_default: bool) -> str:
    known = _SYSTEM_VALUES.get(name)
    if known is None:
        return f"{name} is not a known system priority class"
    if value != known:
        return f"value of {name} PriorityClass must be {known}"
    return f"globalDefault of {name} PriorityClass must be false" if is_default else ""


def priority_class_update_faults(new: Plain, old: Plain) -> Iterator[FieldFault]:
    """Yield what is wrong with a change of a priority class."""
    yield from core_metadata_update_faults(new["metadata"], old["metadata"])
    if new["value"] != old["value"]:
        yield forbidden("value", "may not be changed in an update.")
    policy = new.get("preemptionPolicy")
    yield from immutable_faults(policy, old.get("preemptionPolicy"), "preemptionPolicy")


def lease_faults(lease: Plain) -> Iterator[FieldFault]:
    """Yield what is wrong with a new lease."""
    yield from plain_metadata_faults(lease["metadata"], True, dns_subdomain)
    yield from _lease_spec_faults(lease["spec"])


def _lease_spec_faults(spec: Plain) -> Iterator[FieldFault]:
    seconds, count = spec.get("leaseDurationSeconds"), spec.get("leaseTransitions")
    if seconds is not None and seconds <= 0:
        yield invalid("spec.leaseDurationSeconds", seconds, "must be greater than 0")
    if count is not None and count < 0:
        yield invalid("spec.leaseTransitions", count, "must be greater than or equal to 0")


def lease_update_faults(new: Plain, old: Plain) -> Iterator[FieldFault]:
    """Yield what is wrong with a change of a lease."""
    yield from metadata_update_faults(new["metadata"], old["metadata"])
    yield from _lease_spec_faults(new["spec"])


def runtime_class_faults(runtime_class: Plain) -> Iterator[FieldFault]:
    """Yield what is wrong with a new runtime class."""
    yield from plain_metadata_faults(runtime_class["metadata"], False, dns_subdomain)
    handler = runtime_class["handler"]
    if handler:
        yield from each("handler", handler, dns_label(handler))
    else:
        yield required("handler")
    fixed = (runtime_class.get("overhead") or {}).get("podFixed")
    if fixed:
        yield from overhead_faults(fixed, "overhead")
    scheduling = runtime_class.get("scheduling")
    if scheduling is not None:
        yield from label_faults(scheduling.get("nodeSelector"), "scheduling.nodeSelector")
        yield from _scheduling_toleration_faults(scheduling.get("tolerations") or ())


def _scheduling_toleration_faults(tolerations: Sequence[Plain]) -> Iterator[FieldFault]:
    path = "scheduling.tolerations"
    yield from toleration_faults(tolerations, path)
    seen = set()
    for index, toleration in enumerate(tolerations):
        key = tuple(toleration.get(name, "") for name in ("key", "operator", "value", "effect"))
        if key in seen:
            yield duplicate(f"{path}[{index}]", internal_form("core/Toleration", toleration))
        seen.add(key)


def runtime_class_update_faults(new: Plain, old: Plain) -> Iterator[FieldFault]:
    """Yield what is wrong with a change of a runtime class."""
    yield from metadata_update_faults(new["metadata"], old["metadata"])
    yield from immutable_faults(new["handler"], old["handler"], "handler")
