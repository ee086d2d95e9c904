"""Statuses of pods: what of them may change, and to what.

Upstream: pkg/apis/core/validation/validation.go (ValidatePodStatusUpdate, v1.36)
Differs:  users of containers and images of volumes are not checked.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from kubesched.api.label_format import label_key_errors
from kubesched.apiserver.field_fault import FieldFault, duplicate, each, failed, forbidden, invalid
from kubesched.apiserver.ip_addresses import address_faults, is_dual_stack, parsed_address
from kubesched.apiserver.names import dns_subdomain
from kubesched.apiserver.plain import Plain, get
from kubesched.apiserver.validation.device_statuses import extended_claim_faults, health_faults
from kubesched.apiserver.validation.internal_form import internal_form
from kubesched.apiserver.validation.metadata import core_metadata_update_faults, immutable_faults
from kubesched.apiserver.validation.pods import annotation_update_faults

_SYSTEM_CONDITIONS: Final = ("Initialized", "PodScheduled", "Ready")
_NOT_NEGATIVE: Final = "must be a non-negative integer"
_NO_CLAIM: Final = "must match the name of an entry in `spec.resourceClaims`"


def pod_status_faults(new: Plain, old: Plain) -> Iterator[FieldFault]:
    """Yield what is wrong with a change of a pod's status."""
    yield from core_metadata_update_faults(new["metadata"], old["metadata"])
    yield from annotation_update_faults(new, old)
    status, before = new["status"], old["status"]
    yield from _condition_faults(status.get("conditions") or ())
    yield from _nomination_faults(
        status.get("nominatedNodeName", ""),
        before.get("nominatedNodeName", ""),
        is_bound=bool(old["spec"].get("nodeName")),
    )
    if status.get("observedGeneration", 0) < 0:
        yield invalid("status.observedGeneration", status["observedGeneration"], _NOT_NEGATIVE)
    yield from immutable_faults(
        status.get("qosClass", ""), before.get("qosClass", ""), "status.qosClass"
    )
    yield from _restart_faults(status, before, old["spec"])
    yield from _claim_faults(
        status.get("resourceClaimStatuses") or (), new["spec"].get("resourceClaims") or ()
    )
    yield from extended_claim_faults(status.get("extendedResourceClaimStatus"), new["spec"])
    yield from _address_faults(status, "podIPs")
    yield from _host_address_faults(status)
    yield from health_faults(status, new["spec"])


def _condition_faults(conditions: Sequence[Plain]) -> Iterator[FieldFault]:
    for index, condition in enumerate(conditions):
        path, kind = f"status.conditions[{index}]", condition["type"]
        generation = condition.get("observedGeneration", 0)
        if generation < 0:
            yield invalid(f"{path}.observedGeneration", generation, _NOT_NEGATIVE)
        if kind not in _SYSTEM_CONDITIONS:
            yield from each(f"{path}.Type", kind, label_key_errors(kind))


def _nomination_faults(new: str, old: str, *, is_bound: bool) -> Iterator[FieldFault]:
    path = "status.nominatedNodeName"
    if not new or new == old:
        return
    yield from each(path, new, dns_subdomain(new))
    if is_bound:
        yield forbidden(path, "may not be set on pods that are already bound to a node")


def _restart_faults(status: Plain, before: Plain, spec: Plain) -> Iterator[FieldFault]:
    """Yield containers that run again although they had ended for good."""
    for name, kind in (
        ("containerStatuses", "containers"),
        ("initContainerStatuses", "initContainers"),
        ("ephemeralContainerStatuses", ""),
    ):
        containers = {one["name"]: one for one in spec.get(kind) or ()} if kind else {}
        after = {one["name"]: one for one in status.get(name) or ()}
        for index, old in enumerate(before.get(name) or ()):
            ended = get(old, "state", "terminated")
            new = after.get(old["name"])
            if ended is None or new is None or get(new, "state", "terminated") is not None:
                continue
            container = containers.get(old["name"])
            if container is None or not _may_restart(container, spec, ended["exitCode"]):
                detail = "may not be transitioned to non-terminated state"
                yield forbidden(f"status.{name}[{index}].state", detail)


def _may_restart(container: Plain, spec: Plain, exit_code: int) -> bool:
    for rule in container.get("restartPolicyRules") or ():
        codes = rule.get("exitCodes") or {}
        is_listed = exit_code in (codes.get("values") or ())
        if is_listed == (codes.get("operator") == "In") and rule.get("action") == "Restart":
            return True
    policy = container.get("restartPolicy") or spec.get("restartPolicy")
    return policy == "Always" or (policy == "OnFailure" and exit_code != 0)


def _claim_faults(statuses: Sequence[Plain], claims: Sequence[Plain]) -> Iterator[FieldFault]:
    known = [claim["name"] for claim in claims]
    seen: set[str] = set()
    for index, status in enumerate(statuses):
        path, name = f"status.resourceClaimStatuses[{index}]", status["name"]
        if name not in known:
            yield invalid(f"{path}.name", name, _NO_CLAIM)
        if name in seen:
            yield duplicate(f"{path}.name", name)
        seen.add(name)
        claim = status.get("resourceClaimName")
        if claim is not None:
            yield from each(f"{path}.resourceClaimName", claim, dns_subdomain(claim))


def _address_faults(status: Plain, name: str) -> Iterator[FieldFault]:
    entries = status.get(name) or ()
    addresses = [entry.get("ip", "") for entry in entries]
    for index, address in enumerate(addresses):
        yield from address_faults(address, f"status.{name}[{index}]")
    broken = [index for index, one in enumerate(addresses) if parsed_address(one) is None]
    if len(addresses) > 1 and broken:
        why = f"invalid IP[{broken[0]}]: {addresses[broken[0]]}"
        yield failed(f"status.{name}", f"failed to check for dual stack with error:{why}")
    if len(addresses) > 1 and (len(addresses) > 2 or not is_dual_stack(addresses)):
        shown = [internal_form("core/PodIP", entry) for entry in entries]
        detail = "may specify no more than one IP for each IP family"
        yield invalid(f"status.{name}", shown, detail)


def _host_address_faults(status: Plain) -> Iterator[FieldFault]:
    entries = status.get("hostIPs")
    if not entries:
        return
    first = entries[0].get("ip", "")
    if status.get("hostIP", "") != first:
        yield invalid("status.hostIPs[0].ip", first, "must be equal to `hostIP`")
    yield from _address_faults(status, "hostIPs")
