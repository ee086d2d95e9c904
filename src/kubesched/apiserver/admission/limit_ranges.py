"""The LimitRanger plugin: default requests and limits for containers, and bounds on both.

Upstream: plugin/pkg/admission/limitranger/admission.go (v1.36)
Reads:    LimitRange objects of the namespace
Differs:  errors are reported in order of resource names, not in random order.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final, TypeAlias

from kubesched.api.field_errors import aggregate
from kubesched.api.quantity import Amount, parse_quantity
from kubesched.apiserver.admission.request import AdmissionRequest
from kubesched.apiserver.amounts import SHARED_RESOURCES, of_containers
from kubesched.apiserver.plain import Plain

_ANNOTATION: Final = "kubernetes.io/limit-ranger"
_CLAIM: Final = "PersistentVolumeClaim"
_Amounts: TypeAlias = dict[str, Amount]


def _limits(request: AdmissionRequest, obj: Plain) -> Iterator[list[Plain]]:
    old = request.old
    if old is None or not old["metadata"].get("deletionTimestamp"):
        for found in request.lookup.items("limitranges", obj["metadata"].get("namespace", "")):
            yield found["spec"].get("limits") or []


def add_defaults(request: AdmissionRequest, pod: Plain) -> Plain:
    """Return the pod with the defaults of the ranges, which an annotation lists."""
    for limits in _limits(request, pod):
        defaults: dict[str, Plain] = {"requests": {}, "limits": {}}
        for one in limits:
            if one.get("type") == "Container":
                defaults["requests"] |= one.get("defaultRequest") or {}
                defaults["limits"] |= one.get("default") or {}
        pod = _pod_with_defaults(pod, defaults)
    return pod


def _pod_with_defaults(pod: Plain, defaults: Mapping[str, Plain]) -> Plain:
    notes: list[str] = []
    spec = {**pod["spec"]}
    for field, word in (("containers", "container"), ("initContainers", "init container")):
        if containers := spec.get(field):
            spec[field] = [_with_defaults(one, defaults, word, notes) for one in containers]
    if not notes:
        return pod
    metadata = pod["metadata"]
    note = f"LimitRanger plugin set: {'; '.join(notes)}"
    annotations = {**metadata.get("annotations", {}), _ANNOTATION: note}
    return {**pod, "metadata": {**metadata, "annotations": annotations}, "spec": spec}


def _with_defaults(
    container: Plain, defaults: Mapping[str, Plain], word: str, notes: list[str]
) -> Plain:
    """Return the container with the amounts it lacks, and add to `notes` which these are."""
    resources = {**container["resources"]}
    for kind, amounts in defaults.items():
        given = resources.get(kind) or {}
        if added := sorted(amounts.keys() - given.keys()):
            resources[kind] = {**given, **{name: amounts[name] for name in added}}
            what = f"{', '.join(added)} {kind.removesuffix('s')}"
            notes.append(f"{what} for {word} {container['name']}")
    return {**container, "resources": resources}


def check(request: AdmissionRequest, obj: Plain) -> None:
    """Raise StatusError if an amount is out of bounds."""
    for limits in _limits(request, obj):
        errors = [
            error
            for limit in limits
            for used in _used(request.resource.built_in_kind, obj["spec"], limit.get("type", ""))
            for error in _errors(limit, *used)
        ]
        if errors:
            raise request.refusal(obj, aggregate(errors))


def _used(kind: str, spec: Plain, bounded: str) -> Iterator[tuple[_Amounts, _Amounts]]:
    """Yield requests and limits of each part of an object to which a type of limit applies."""
    if kind == bounded == _CLAIM:
        yield _amounts(spec["resources"].get("requests")), {}
    elif kind == bounded == "Pod":
        yield _of_pod(spec, "requests"), _of_pod(spec, "limits")
    elif kind == "Pod" and bounded == "Container":
        for container in (*(spec.get("containers") or ()), *(spec.get("initContainers") or ())):
            resources = container["resources"]
            yield _amounts(resources.get("requests")), _amounts(resources.get("limits"))


def _amounts(quantities: Mapping[str, str] | None) -> _Amounts:
    return {name: parse_quantity(text) for name, text in (quantities or {}).items()}


def _of_pod(spec: Plain, kind: str) -> _Amounts:
    amounts = of_containers(spec, kind)
    for name, amount in _amounts((spec.get("resources") or {}).get(kind)).items():
        if name in SHARED_RESOURCES:
            amounts[name] = amount
    return amounts


def _errors(limit: Plain, requests: _Amounts, limits: _Amounts) -> Iterator[str]:
    """Yield which bounds of a limit are broken."""
    kind = limit["type"]
    used = (("request", requests), ("limit", limits))
    for name, bound in _bounds(limit, "min"):
        if why := _bound_error(bound, -1, name, used):
            yield f"minimum {name} usage per {kind} is {bound}{why}"
    for name, bound in _bounds(limit, "max"):
        if why := _bound_error(bound, 1, name, used if kind == _CLAIM else used[::-1]):
            yield f"maximum {name} usage per {kind} is {bound}{why}"
    for name, ratio in _bounds(limit, "maxLimitRequestRatio"):
        if why := _ratio_error(ratio, requests.get(name), limits.get(name)):
            yield f"{name} max limit to request ratio per {kind} is {ratio}{why}"


def _bounds(limit: Plain, field: str) -> Iterator[tuple[str, Amount]]:
    for name, text in sorted((limit.get(field) or {}).items()):
        yield name, parse_quantity(text)


def _bound_error(bound: Amount, sign: int, name: str, used: Sequence[tuple[str, _Amounts]]) -> str:
    """Return why an amount of a resource is out of bounds, "" if none is.

    `sign` is -1 for a minimum, 1 for a maximum. The first amount in `used` must be specified.
    """
    if name not in used[0][1]:
        return f".  No {used[0][0]} is specified"
    for what, amounts in used:
        amount = amounts.get(name)
        if amount is not None and amount.compare(bound) == sign:
            return f", but {what} is {amount}"
    return ""


def _ratio_error(most: Amount, request: Amount | None, limit: Amount | None) -> str:
    if request is None or not request.sign:
        return ", but no request is specified or request is 0"
    if limit is None or not limit.sign:
        return ", but no limit is specified or limit is 0"
    ratio = limit.milli_value() / request.milli_value()
    return f", but provided ratio is {ratio:f}" if ratio * 1000 > most.milli_value() else ""
