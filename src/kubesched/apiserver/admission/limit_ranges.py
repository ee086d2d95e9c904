"""Limit ranges fill in what containers may use, and bound it.

Upstream: plugin/pkg/admission/limitranger/admission.go (v1.36)
Reads:    LimitRange objects of the namespace
Differs:  of several bounds that are broken the first by resource name is reported first.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final, TypeAlias

from kubesched.api.field_errors import aggregate
from kubesched.api.quantity import Amount, parse_quantity
from kubesched.apiserver.admission.request import CREATE, UPDATE, AdmissionRequest
from kubesched.apiserver.amounts import SHARED_RESOURCES, of_containers
from kubesched.apiserver.plain import Plain

_ANNOTATION: Final = "kubernetes.io/limit-ranger"
_CLAIM: Final = "PersistentVolumeClaim"
_Amounts: TypeAlias = dict[str, Amount]


def _limits(request: AdmissionRequest, obj: Plain) -> Iterator[list[Plain]]:
    """Yield the limits of each range."""
    is_resize = request.resource.kind == "Pod" and request.subresource == "resize"
    is_bounded = request.is_for("Pod", CREATE) or request.is_for(_CLAIM, CREATE, UPDATE)
    is_going = request.old is not None and request.old["metadata"].get("deletionTimestamp")
    if (is_resize or is_bounded) and not is_going:
        for found in request.lookup.items("limitranges", obj["metadata"].get("namespace", "")):
            yield found["spec"].get("limits") or []


def admit(request: AdmissionRequest, pod: Plain) -> Plain:
    """Return the pod with the defaults of the ranges, which an annotation lists."""
    if request.resource.kind != "Pod":
        return pod
    for limits in _limits(request, pod):
        requests: Plain = {}
        maxima: Plain = {}
        for one in limits:
            if one.get("type") == "Container":
                requests |= one.get("defaultRequest") or {}
                maxima |= one.get("default") or {}
        pod = _filled_in(pod, requests, maxima)
    return pod


def _filled_in(pod: Plain, requests: Plain, limits: Plain) -> Plain:
    notes: list[str] = []
    spec = {**pod["spec"]}
    for field, word in (("containers", "container"), ("initContainers", "init container")):
        filled = []
        for container in spec.get(field) or ():
            resources = {**container["resources"]}
            for kind, amounts in (("requests", requests), ("limits", limits)):
                given = resources.get(kind) or {}
                added = sorted(amounts.keys() - given.keys())
                if added:
                    resources[kind] = {**given, **{name: amounts[name] for name in added}}
                    what = f"{', '.join(added)} {kind.removesuffix('s')}"
                    notes.append(f"{what} for {word} {container['name']}")
            filled.append({**container, "resources": resources})
        if filled:
            spec[field] = filled
    if not notes:
        return pod
    metadata = pod["metadata"]
    note = f"LimitRanger plugin set: {'; '.join(notes)}"
    annotations = {**metadata.get("annotations", {}), _ANNOTATION: note}
    return {**pod, "metadata": {**metadata, "annotations": annotations}, "spec": spec}


def check(request: AdmissionRequest, obj: Plain) -> None:
    """Raise StatusError if an amount is out of bounds."""
    for limits in _limits(request, obj):
        errors = [
            error
            for limit in limits
            for used in _used(request.resource.kind, obj["spec"], limit.get("type", ""))
            for error in _errors(limit, *used)
        ]
        if errors:
            raise request.refusal(obj, aggregate(errors))


def _used(kind: str, spec: Plain, bounded: str) -> Iterator[tuple[_Amounts, _Amounts]]:
    """Yield requests and limits of everything in an object that a limit of some type bounds."""
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
    both = [("request", requests), ("limit", limits)]
    for field, word, order in (
        ("min", "minimum", both),
        ("max", "maximum", both if kind == _CLAIM else both[::-1]),
        ("maxLimitRequestRatio", "ratio", both),
    ):
        for name, text in sorted((limit.get(field) or {}).items()):
            bound = parse_quantity(text)
            if word == "ratio":
                begin = f"{name} max limit to request ratio per {kind} is {bound}"
                why = _ratio_error(bound, requests.get(name), limits.get(name))
            else:
                begin = f"{word} {name} usage per {kind} is {bound}"
                used = [(what, amounts.get(name)) for what, amounts in order]
                why = _bound_error(bound, -1 if field == "min" else 1, used)
            if why:
                yield begin + why


def _bound_error(bound: Amount, sign: int, used: list[tuple[str, Amount | None]]) -> str:
    """Return why amounts are on the wrong side of a bound, "" if they are not.

    `sign` is -1 for a least amount and 1 for a most. Request and limit are used; the first has to
    be given.
    """
    for index, (what, amount) in enumerate(used):
        if amount is None and not index:
            return f".  No {what} is specified"
        if amount is not None and amount.compare(bound) == sign:
            return f", but {what} is {amount}"
    return ""


def _ratio_error(most: Amount, request: Amount | None, limit: Amount | None) -> str:
    for what, amount in (("request", request), ("limit", limit)):
        if amount is None or not amount.sign:
            return f", but no {what} is specified or {what} is 0"
    assert request is not None, "asked before"
    assert limit is not None, "asked before"
    ratio = limit.milli_value() / request.milli_value()
    return f", but provided ratio is {ratio:f}" if ratio * 1000 > most.milli_value() else ""
