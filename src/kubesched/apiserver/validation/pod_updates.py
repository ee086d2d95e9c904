"""Changes of pods: of the whole, of their size, and of their status.

Upstream: pkg/apis/core/validation/validation.go (ValidatePodUpdate, ValidatePodResize,
          ValidatePodStatusUpdate, v1.36)
Differs:  messages about forbidden changes do not show the change. Of the devices
          in a status, only the claims are checked. Resizes are refused with fewer messages.
"""

from __future__ import annotations

from typing import Final

from kubesched.api.names import label_key_errors
from kubesched.api.well_known import REQUIRED
from kubesched.apiserver.amounts import qos_class
from kubesched.apiserver.formats import address, between, dns_subdomain, parsed_address
from kubesched.apiserver.plain import Plain, entries, with_fields_of, without
from kubesched.apiserver.schema import known_type
from kubesched.apiserver.status import FieldErrors
from kubesched.apiserver.validation.pods import check_toleration

_SECONDS_MAX: Final = 2**31 - 1
_UPDATABLE: Final = (
    "`spec.containers[*].image`,`spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,"
    "`spec.tolerations` (only additions to existing tolerations),"
    "`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)"
)
_LISTS: Final = ("containers", "initContainers")
_AMOUNTS: Final = ("requests", "limits")
_ONLY_RESIZED: Final = "only cpu and memory resources are mutable"


def check_pod_update(new: Plain, old: Plain, errors: FieldErrors) -> None:
    """Add field errors for a change of a pod."""
    spec, before = new["spec"], old["spec"]
    for kind in _LISTS:
        if len(spec.get(kind) or ()) != len(before.get(kind) or ()):
            errors.forbidden(f"spec.{kind}", "pod updates may not add or remove containers")
            return
    count = len(errors)
    _check_deadline(spec.get("activeDeadlineSeconds"), before.get("activeDeadlineSeconds"), errors)
    if len(errors) > count and spec.get("activeDeadlineSeconds") is not None:
        return
    _check_added_tolerations(spec, before, errors)
    known = [gate["name"] for gate in before.get("schedulingGates") or ()]
    last = {gate["name"]: index for index, gate in enumerate(spec.get("schedulingGates") or ())}
    for name, index in last.items():
        if name not in known:
            detail = f"only deletion is allowed, but found new scheduling gate '{name}'"
            errors.forbidden(f"spec.schedulingGates[{index}].name", detail)
    if not known_type("core_v1", "PodSpec").is_equal(spec, before):
        _check_rest(spec, before, errors)


def _check_deadline(new: int | None, old: int | None, errors: FieldErrors) -> None:
    field = "spec.activeDeadlineSeconds"
    if new is None:
        if old is not None:
            errors.invalid(field, None, "must not update from a positive integer to nil value")
    elif not 0 <= new <= _SECONDS_MAX:
        errors.invalid(field, new, between(0, _SECONDS_MAX))
    elif old is not None and old < new:
        errors.invalid(field, new, "must be less than or equal to previous value")


def _check_added_tolerations(spec: Plain, before: Plain, errors: FieldErrors) -> None:
    """Add field errors for changed tolerations: none may go, and only their seconds may change."""
    new, old = (
        [without(toleration, "tolerationSeconds") for toleration in one.get("tolerations") or ()]
        for one in (spec, before)
    )
    if any(toleration not in new for toleration in old):
        detail = "existing toleration can not be modified except its tolerationSeconds"
        errors.forbidden("spec.tolerations", detail)
        return
    for at, toleration in entries(spec, "spec", "tolerations"):
        check_toleration(toleration, at, errors)


def _check_rest(spec: Plain, before: Plain, errors: FieldErrors) -> None:
    """Add field errors for other changes: all fields that may change are first put back."""
    names = ("activeDeadlineSeconds", "schedulingGates", "tolerations")
    munged = with_fields_of(spec, before, *names)
    for kind in _LISTS:
        if munged.get(kind):
            munged[kind] = [
                {**container, "image": old.get("image", "")}
                for container, old in zip(munged[kind], before[kind], strict=True)
            ]
    if before.get("schedulingGates"):
        munged = _narrowed(munged, before, errors)
    if not known_type("core_v1", "PodSpec").is_equal(munged, before):
        errors.forbidden("spec", f"pod updates may not change fields other than {_UPDATABLE}\n")


def _narrowed(munged: Plain, before: Plain, errors: FieldErrors) -> Plain:
    """Check that a gated pod only loses nodes; return it with the nodes that it had before."""
    selector, old_selector = munged.get("nodeSelector") or {}, before.get("nodeSelector") or {}
    if any(selector.get(key) != value for key, value in old_selector.items()):
        detail = "only additions to spec.nodeSelector are allowed (no mutations or deletions)"
        errors.invalid("spec.nodeSelector", dict(selector) or None, detail)
    munged = with_fields_of(munged, before, "nodeSelector")
    affinity, old_affinity = munged.get("affinity"), before.get("affinity")
    new, old = ((one or {}).get("nodeAffinity") for one in (affinity, old_affinity))
    if new == old:
        return munged
    _check_narrowed_affinity(new, old, errors)
    others = with_fields_of(affinity or {}, old_affinity or {}, "nodeAffinity")
    return {**munged, "affinity": None if old_affinity is None and not others else others}


def _check_narrowed_affinity(new: Plain | None, old: Plain | None, errors: FieldErrors) -> None:
    if (old or {}).get(REQUIRED) is None:
        return
    path = f"spec.affinity.nodeAffinity.{REQUIRED}.nodeSelectorTerms"
    after, before = (
        ((one or {}).get(REQUIRED) or {}).get("nodeSelectorTerms") or [] for one in (new, old)
    )
    if before and len(before) != len(after):
        detail = "no additions/deletions to non-empty NodeSelectorTerms list are allowed"
        errors.invalid(path, after or None, detail)
        return
    for index, (term, old_term) in enumerate(zip(after, before, strict=True)):
        if not _only_adds(term, old_term):
            detail = "only additions are allowed (no mutations or deletions)"
            errors.invalid(f"{path}[{index}]", term, detail)


def _only_adds(new: Plain, old: Plain) -> bool:
    lists = ("matchExpressions", "matchFields")
    if not any(old.get(name) for name in lists):
        return not any(new.get(name) for name in lists)
    return all(
        (new.get(name) or [])[: len(old.get(name) or [])] == (old.get(name) or []) for name in lists
    )


# Resizing: cpu and memory of containers may change, and nothing else.


def check_resize(new: Plain, old: Plain, errors: FieldErrors) -> None:
    """Add field errors for a resize of a pod."""
    spec, before = new["spec"], old["spec"]
    if qos_class(spec) != (old["status"].get("qosClass") or qos_class(before)):
        detail = "Pod QOS Class may not change as a result of resizing"
        errors.invalid("spec", new["status"].get("qosClass", ""), detail)
    own, own_before = (one.get("resources") or {} for one in (spec, before))
    has_amounts = any(one.get(kind) for one in (own, own_before) for kind in _AMOUNTS)
    if has_amounts and _without_resized(own) != _without_resized(own_before):
        errors.forbidden("spec", f"{_ONLY_RESIZED} at pod-level")
    _check_not_removed(own, own_before, "spec.resources", errors)
    count = len(errors)
    for kind in _LISTS:
        _check_order(kind, spec, before, errors)
    if len(errors) > count:
        return
    for kind in _LISTS:
        pairs = zip(spec.get(kind) or (), before.get(kind) or (), strict=True)
        for index, (container, earlier) in enumerate(pairs):
            can_change = kind == "containers" or container.get("restartPolicy") == "Always"
            if container != earlier and (
                not can_change or _without_amounts(container) != _without_amounts(earlier)
            ):
                errors.forbidden("spec", _ONLY_RESIZED)
            at = f"spec.{kind}[{index}].resources"
            _check_not_removed(container["resources"], earlier["resources"], at, errors)


def _check_not_removed(new: Plain, old: Plain, path: str, errors: FieldErrors) -> None:
    for kind in _AMOUNTS:
        if (old.get(kind) or {}).keys() - (new.get(kind) or {}).keys():
            errors.forbidden(f"{path}.{kind}", f"resource {kind} cannot be removed")


def _check_order(kind: str, new: Plain, old: Plain, errors: FieldErrors) -> None:
    after, before = new.get(kind) or (), old.get(kind) or ()
    if len(after) != len(before):
        errors.forbidden(f"spec.{kind}", f"{kind} may not be added or removed on resize")
        return
    for index, container in enumerate(before):
        if after[index]["name"] != container["name"]:
            detail = f"{kind} may not be renamed or reordered on resize"
            errors.forbidden(f"spec.{kind}[{index}].name", detail)


def _without_amounts(container: Plain) -> Plain:
    return {**container, "resources": _without_resized(container["resources"])}


def _without_resized(resources: Plain) -> Plain:
    """Return resources without cpu and memory, and without parts that are empty then."""
    amounts = {kind: without(resources.get(kind) or {}, "cpu", "memory") for kind in _AMOUNTS}
    kept = {kind: others for kind, others in amounts.items() if others}
    return without(resources, *_AMOUNTS) | kept


# Statuses.


def check_status_update(new: Plain, old: Plain, errors: FieldErrors) -> None:
    """Add field errors for a change of a pod's status."""
    status, before = new["status"], old["status"]
    for at, condition in (("status", status), *entries(status, "status", "conditions")):
        generation = condition.get("observedGeneration", 0)
        if generation < 0:
            errors.invalid(f"{at}.observedGeneration", generation, "must be a non-negative integer")
    for at, condition in entries(status, "status", "conditions"):
        if condition["type"] not in ("Initialized", "PodScheduled", "Ready"):
            errors.each(f"{at}.Type", condition["type"], label_key_errors(condition["type"]))
    name, path = status.get("nominatedNodeName", ""), "status.nominatedNodeName"
    if name and name != before.get("nominatedNodeName", ""):
        errors.each(path, name, dns_subdomain(name))
        if old["spec"].get("nodeName"):
            errors.forbidden(path, "may not be set on pods that are already bound to a node")
    errors.changed("status.qosClass", status.get("qosClass", ""), before.get("qosClass", ""))
    _check_claims(status, new["spec"], errors)
    _check_addresses(status, "podIPs", errors)
    if status.get("hostIPs"):
        first = status["hostIPs"][0].get("ip", "")
        if status.get("hostIP", "") != first:
            errors.invalid("status.hostIPs[0].ip", first, "must be equal to `hostIP`")
        _check_addresses(status, "hostIPs", errors)


def _check_claims(status: Plain, spec: Plain, errors: FieldErrors) -> None:
    known = [claim["name"] for claim in spec.get("resourceClaims") or ()]
    claims = entries(status, "status", "resourceClaimStatuses")
    names = [(f"{at}.name", claim["name"]) for at, claim in claims]
    for path, name in names:
        if name not in known:
            errors.invalid(path, name, "must match the name of an entry in `spec.resourceClaims`")
    errors.repeated(names)


def _check_addresses(status: Plain, name: str, errors: FieldErrors) -> None:
    entries = status.get(name) or ()
    texts = [entry.get("ip", "") for entry in entries]
    for index, text in enumerate(texts):
        errors.each(f"status.{name}[{index}]", text, address(text))
    if len(texts) < 2:
        return
    families = {one.version for one in map(parsed_address, texts) if one is not None}
    if len(texts) > 2 or len(families) < 2:
        detail = "may specify no more than one IP for each IP family"
        errors.invalid(f"status.{name}", list(entries), detail)
