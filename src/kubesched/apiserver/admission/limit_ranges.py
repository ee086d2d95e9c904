"""Limit ranges fill in what containers may use, and bound it.

Upstream: plugin/pkg/admission/limitranger/admission.go (v1.36)
Reads:    LimitRange objects of the namespace
Differs:  of several bounds that are broken the first by resource name is reported first.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Final

from kubesched.api.field_errors import aggregate
from kubesched.api.quantity import Amount, parse_quantity
from kubesched.apiserver.admission.request import CREATE, UPDATE, AdmissionRequest
from kubesched.apiserver.amounts import Amounts, is_shared, of_containers
from kubesched.apiserver.plain import Plain

_ANNOTATION: Final = "kubernetes.io/limit-ranger"
_MILLI_MAX: Final = (2**63 - 1) // 1000


def _is_bounded(request: AdmissionRequest) -> bool:
    is_resize = request.resource.kind == "Pod" and request.subresource == "resize"
    return (
        is_resize
        or request.is_for("Pod", CREATE)
        or request.is_for("PersistentVolumeClaim", CREATE, UPDATE)
    )


def _limits(request: AdmissionRequest, obj: Plain) -> Iterator[list[Plain]]:
    """Yield the limits of each range."""
    if not _is_bounded(request):
        return
    if request.old is not None and request.old["metadata"].get("deletionTimestamp"):
        return
    for found in request.lookup.items("limitranges", obj["metadata"].get("namespace", "")):
        yield found["spec"].get("limits") or []


def admit(request: AdmissionRequest, pod: Plain) -> Plain:
    """Return the pod with what the ranges fill in, and with a note of it."""
    if request.resource.kind != "Pod":
        return pod
    for limits in _limits(request, pod):
        containers = [one for one in limits if one.get("type") == "Container"]
        requests: Plain = {}
        maxima: Plain = {}
        for one in containers:
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
            for kind, amounts, noun in (
                ("requests", requests, "request"),
                ("limits", limits, "limit"),
            ):
                given = resources.get(kind) or {}
                added = sorted(amounts.keys() - given.keys())
                if added:
                    resources[kind] = {**given, **{name: amounts[name] for name in added}}
                    notes.append(f"{', '.join(added)} {noun} for {word} {container['name']}")
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
    """Refuse what is out of bounds.

    Raises:
        StatusError: It is.
    """
    for limits in _limits(request, obj):
        errors = [error for limit in limits for error in _errors(request, obj, limit)]
        if errors:
            raise request.refusal(obj, aggregate(errors))


def _errors(request: AdmissionRequest, obj: Plain, limit: Plain) -> Iterator[str]:
    kind, spec = limit.get("type", ""), obj["spec"]
    if request.resource.kind == "PersistentVolumeClaim":
        if kind == "PersistentVolumeClaim":
            wanted = _amounts(spec["resources"].get("requests"))
            yield from _each(
                limit, "min", lambda name, least: _below(kind, name, least, wanted, Amounts())
            )
            yield from _each(
                limit, "max", lambda name, most: _request_above(kind, name, most, wanted)
            )
        return
    if kind == "Pod":
        yield from _pod_errors(kind, limit, _of_pod(spec, "requests"), _of_pod(spec, "limits"))
    elif kind == "Container":
        for container in (*(spec.get("containers") or ()), *(spec.get("initContainers") or ())):
            resources = container["resources"]
            requests, limits = (_amounts(resources.get(name)) for name in ("requests", "limits"))
            yield from _pod_errors(kind, limit, requests, limits)


def _pod_errors(kind: str, limit: Plain, requests: Amounts, limits: Amounts) -> Iterator[str]:
    given = (requests, limits)
    yield from _each(limit, "min", lambda name, least: _below(kind, name, least, *given))
    yield from _each(limit, "max", lambda name, most: _above(kind, name, most, *given))
    yield from _each(
        limit, "maxLimitRequestRatio", lambda name, most: _ratio_above(kind, name, most, *given)
    )


def _each(limit: Plain, name: str, error: Callable[[str, Amount], str]) -> Iterator[str]:
    bounds: Mapping[str, str] = limit.get(name) or {}
    for resource in sorted(bounds):
        found = error(resource, parse_quantity(bounds[resource]))
        if found:
            yield found


def _amounts(quantities: Mapping[str, str] | None) -> Amounts:
    amounts = Amounts()
    amounts.add(quantities)
    return amounts


def _of_pod(spec: Plain, kind: str) -> Amounts:
    amounts = of_containers(spec, kind)
    for name, amount in _amounts((spec.get("resources") or {}).get(kind)).items():
        if is_shared(name):
            amounts[name] = amount
    return amounts


def _below(kind: str, name: str, least: Amount, requests: Amounts, limits: Amounts) -> str:
    begin = f"minimum {name} usage per {kind} is {least}"
    if name not in requests:
        return f"{begin}.  No request is specified"
    if requests[name].compare(least) < 0:
        return f"{begin}, but request is {requests[name]}"
    if name in limits and limits[name].compare(least) < 0:
        return f"{begin}, but limit is {limits[name]}"
    return ""


def _request_above(kind: str, name: str, most: Amount, requests: Amounts) -> str:
    begin = f"maximum {name} usage per {kind} is {most}"
    if name not in requests:
        return f"{begin}.  No request is specified"
    return f"{begin}, but request is {requests[name]}" if requests[name].compare(most) > 0 else ""


def _above(kind: str, name: str, most: Amount, requests: Amounts, limits: Amounts) -> str:
    begin = f"maximum {name} usage per {kind} is {most}"
    if name not in limits:
        return f"{begin}.  No limit is specified"
    if limits[name].compare(most) > 0:
        return f"{begin}, but limit is {limits[name]}"
    if name in requests and requests[name].compare(most) > 0:
        return f"{begin}, but request is {requests[name]}"
    return ""


def _ratio_above(kind: str, name: str, most: Amount, requests: Amounts, limits: Amounts) -> str:
    begin = f"{name} max limit to request ratio per {kind} is {most}"
    if name not in requests or not requests[name].sign:
        return f"{begin}, but no request is specified or request is 0"
    if name not in limits or not limits[name].sign:
        return f"{begin}, but no limit is specified or limit is 0"
    request, limit = requests[name], limits[name]
    is_small = max(request.value(), limit.value()) <= _MILLI_MAX
    ratio = (
        limit.milli_value() / request.milli_value() if is_small else limit.value() / request.value()
    )
    return f"{begin}, but provided ratio is {ratio:f}" if ratio * 1000 > most.milli_value() else ""
