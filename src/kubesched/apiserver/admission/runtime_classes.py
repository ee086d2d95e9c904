"""Pods of a runtime class get its overhead, its node selector and its tolerations.

Upstream: plugin/pkg/admission/runtimeclass/admission.go, pkg/util/tolerations (v1.36)
Differs:  nothing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from kubesched.api.quantity import parse_quantity
from kubesched.apiserver.admission.request import CREATE, AdmissionRequest
from kubesched.apiserver.field_errors import go_quoted
from kubesched.apiserver.formats import path_segment
from kubesched.apiserver.plain import Plain
from kubesched.apiserver.status import internal

_CLASSES: Final = "runtimeclasses.node.k8s.io"
_OTHER_OVERHEAD: Final = (
    "pod rejected: Pod's Overhead doesn't match RuntimeClass's defined Overhead"
)
_NO_OVERHEAD: Final = (
    "pod rejected: Pod Overhead set without corresponding RuntimeClass defined Overhead"
)


def admit(request: AdmissionRequest, pod: Plain) -> Plain:
    """Return the pod with what its runtime class asks for.

    Raises:
        StatusError: There is no such class, or the pod says something else.
    """
    if not request.is_for("Pod", CREATE):
        return pod
    runtime_class = _class_of(request, pod)
    if runtime_class is None:
        return pod
    spec = {**pod["spec"]}
    overhead = _overhead(runtime_class)
    if overhead is not None:
        if spec.get("overhead") and not _is_same(spec["overhead"], overhead):
            raise request.refusal(pod, _OTHER_OVERHEAD)
        if overhead:
            spec["overhead"] = dict(overhead)
    scheduling = runtime_class.get("scheduling")
    if scheduling is not None:
        _select_nodes(request, pod, spec, scheduling.get("nodeSelector") or {})
        tolerations = [*spec.get("tolerations", ()), *scheduling.get("tolerations", ())]
        if tolerations:
            spec["tolerations"] = _merged(tolerations)
    return {**pod, "spec": spec}


def check(request: AdmissionRequest, pod: Plain) -> None:
    """Refuse a pod whose overhead is not that of its class.

    Raises:
        StatusError: It is not.
    """
    if not request.is_for("Pod", CREATE):
        return
    runtime_class = _class_of(request, pod)
    overhead = None if runtime_class is None else _overhead(runtime_class)
    given = pod["spec"].get("overhead")
    if overhead is None:
        if given is not None:
            raise request.refusal(pod, _NO_OVERHEAD)
    elif not _is_same(given or {}, overhead):
        raise request.refusal(pod, _OTHER_OVERHEAD)


def _class_of(request: AdmissionRequest, pod: Plain) -> Plain | None:
    name = pod["spec"].get("runtimeClassName")
    if name is None:
        return None
    # Upstream asks itself, and its own client refuses to send such names.
    if not name:
        raise internal("resource name may not be empty")
    if path_segment(name):
        shown = " ".join(path_segment(name))
        raise internal(f"invalid resource name {go_quoted(name)}: [{shown}]")
    found = request.lookup.get(_CLASSES, "", name)
    if found is None:
        raise request.refusal(pod, f"pod rejected: RuntimeClass {go_quoted(name)} not found")
    return found


def _overhead(runtime_class: Plain) -> Mapping[str, str] | None:
    overhead = runtime_class.get("overhead")
    return None if overhead is None else overhead.get("podFixed") or {}


def _is_same(one: Mapping[str, str], other: Mapping[str, str]) -> bool:
    return one.keys() == other.keys() and all(
        parse_quantity(amount).compare(parse_quantity(other[name])) == 0
        for name, amount in one.items()
    )


def _select_nodes(
    request: AdmissionRequest, pod: Plain, spec: Plain, wanted: Mapping[str, str]
) -> None:
    own = spec.get("nodeSelector") or {}
    for key, value in wanted.items():
        if own.get(key, value) != value:
            why = (
                f"conflict: runtimeClass.scheduling.nodeSelector[{key}] = {value}; "
                f"pod.spec.nodeSelector[{key}] = {own[key]}"
            )
            raise request.refusal(pod, why)
    if wanted:
        spec["nodeSelector"] = {**own, **wanted}


def _merged(tolerations: Sequence[Plain]) -> list[Plain]:
    """Return the tolerations without those that others include."""
    merged: list[Plain] = []
    for index, toleration in enumerate(tolerations):
        later = [one for one in tolerations[index + 1 :] if one != toleration]
        if not any(_includes(one, toleration) for one in (*merged, *later)):
            merged.append(toleration)
    return merged


def _includes(wider: Plain, narrower: Plain) -> bool:
    if wider == narrower:
        return True
    key, operator = wider.get("key", ""), wider.get("operator") or "Equal"
    effect = wider.get("effect", "")
    if key != narrower.get("key", "") and (key or operator != "Exists"):
        return False
    if effect not in ("", narrower.get("effect", "")):
        return False
    seconds = wider.get("tolerationSeconds")
    if effect == "NoExecute" and seconds is not None:
        asked = narrower.get("tolerationSeconds")
        if asked is None or asked > seconds:
            return False
    if operator == "Exists":
        return True
    # An operator that is left out means Equal, but does not count as equal here.
    is_equal = narrower.get("operator") == "Equal"
    return is_equal and wider.get("value", "") == narrower.get("value", "")
