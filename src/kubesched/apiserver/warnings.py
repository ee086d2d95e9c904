"""Warnings: about pods that are accepted and yet will hardly run as meant; and how all are sent.

Upstream: pkg/api/{pod,node}/warnings.go, staging/src/k8s.io/apiserver/pkg/endpoints/filters
          (warning.go), staging/src/k8s.io/apimachinery/pkg/util/net/http.go (v1.36)
Differs:  only what decides where a pod goes, what it asks for and which of its settings hold is
          looked at, in pods and their templates. Too many warnings are cut to the room for all.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from kubesched.api.quantity import QuantityError, parse_quantity
from kubesched.apiserver.formats import dns_label
from kubesched.apiserver.plain import Plain, get
from kubesched.apiserver.resources import Resource

TEMPLATES: Final[Mapping[str, tuple[str, ...]]] = {
    **dict.fromkeys(
        ("DaemonSet", "Deployment", "Job", "ReplicaSet", "ReplicationController", "StatefulSet"),
        ("spec", "template"),
    ),
    "CronJob": ("spec", "jobTemplate", "spec", "template"),
    "PodTemplate": ("template",),
}
"""Where the templates of pods stand, by kind."""
_NAMES_PODS: Final = ("CronJob", "Deployment", "Job", "ReplicaSet", "ReplicationController")
_NO_SELECTOR: Final = "a null labelSelector results in matching no pod"
_REQUIRED: Final = "requiredDuringSchedulingIgnoredDuringExecution"
_PREFERRED: Final = "preferredDuringSchedulingIgnoredDuringExecution"
_OLD_LABELS: Final = {
    "beta.kubernetes.io/arch": 'deprecated since v1.14; use "kubernetes.io/arch" instead',
    "beta.kubernetes.io/os": 'deprecated since v1.14; use "kubernetes.io/os" instead',
    "failure-domain.beta.kubernetes.io/region": (
        'deprecated since v1.17; use "topology.kubernetes.io/region" instead'
    ),
    "failure-domain.beta.kubernetes.io/zone": (
        'deprecated since v1.17; use "topology.kubernetes.io/zone" instead'
    ),
    "beta.kubernetes.io/instance-type": (
        'deprecated since v1.17; use "node.kubernetes.io/instance-type" instead'
    ),
    "node-role.kubernetes.io/master": 'use "node-role.kubernetes.io/control-plane" instead',
}
_TOTAL_MAX: Final = 4 * 1024
_TEXT_MAX: Final = 256


def warnings_of_new(resource: Resource, obj: Plain) -> list[str]:
    """Return the warnings about a new object."""
    found: list[str] = []
    wrong = dns_label(obj["metadata"]["name"])
    if wrong and resource.kind == "Pod":
        found.append(
            "metadata.name: this is used in the Pod's hostname, which can result in surprising "
            f"behavior; a DNS label is recommended: [{' '.join(wrong)}]"
        )
    elif wrong and resource.kind in _NAMES_PODS:
        found.append(
            "metadata.name: this is used in Pod names and hostnames, which can result in "
            f"surprising behavior; a DNS label is recommended: [{' '.join(wrong)}]"
        )
    return list(dict.fromkeys((*found, *_of_template(resource, obj))))


def warnings_of_update(resource: Resource, new: Plain, old: Plain, subresource: str) -> list[str]:
    """Return the warnings about a changed object."""
    # Pods change too often, and seldom by people.
    is_changed = get(new, "metadata", "generation") != get(old, "metadata", "generation")
    if subresource or resource.kind == "Pod" or not is_changed:
        return []
    return list(dict.fromkeys(_of_template(resource, new)))


def _of_template(resource: Resource, obj: Plain) -> Iterator[str]:
    path = () if resource.kind == "Pod" else TEMPLATES.get(resource.kind)
    spec = None if path is None else get(obj, *path, "spec")
    if path is not None and spec is not None:
        yield from _of_spec(spec, ".".join((*path, "spec")))


def _of_spec(spec: Plain, at: str) -> Iterator[str]:
    for key in spec.get("nodeSelector") or ():
        if key in _OLD_LABELS:
            yield f"{at}.nodeSelector[{key}]: {_OLD_LABELS[key]}"
    affinity = spec.get("affinity") or {}
    yield from _of_node_affinity(affinity.get("nodeAffinity") or {}, f"{at}.affinity.nodeAffinity")
    for index, constraint in enumerate(spec.get("topologySpreadConstraints") or ()):
        where, key = f"{at}.topologySpreadConstraints[{index}]", constraint.get("topologyKey", "")
        if key in _OLD_LABELS:
            yield f"{where}.topologyKey: {key} is {_OLD_LABELS[key]}"
        if constraint.get("labelSelector") is None:
            yield f"{where}.labelSelector: {_NO_SELECTOR}"
    yield from _of_amounts(spec.get("overhead") or {}, f"{at}.overhead")
    for kind in ("initContainers", "containers", "ephemeralContainers"):
        for index, container in enumerate(spec.get(kind) or ()):
            yield from _of_container(container, f"{at}.{kind}[{index}]")
    if (spec.get("terminationGracePeriodSeconds") or 0) < 0:
        yield (
            f"{at}.terminationGracePeriodSeconds: must be >= 0; negative values are invalid and "
            "will be treated as 1"
        )
    for name in ("podAffinity", "podAntiAffinity"):
        yield from _of_pod_affinity(affinity.get(name) or {}, f"{at}.affinity.{name}")


def _of_node_affinity(affinity: Plain, at: str) -> Iterator[str]:
    required = get(affinity, _REQUIRED, "nodeSelectorTerms") or ()
    preferred = affinity.get(_PREFERRED) or ()
    terms = [
        *((f"{_REQUIRED}.nodeSelectorTerms[{at_}]", term) for at_, term in enumerate(required)),
        *(
            (f"{_PREFERRED}[{at_}].preference", one.get("preference") or {})
            for at_, one in enumerate(preferred)
        ),
    ]
    for where, term in terms:
        for index, expression in enumerate(term.get("matchExpressions") or ()):
            key = expression["key"]
            if key in _OLD_LABELS:
                field = f"{at}.{where}.matchExpressions[{index}].key"
                yield f"{field}: {key} is {_OLD_LABELS[key]}"


def _of_pod_affinity(affinity: Plain, at: str) -> Iterator[str]:
    for index, term in enumerate(affinity.get(_REQUIRED) or ()):
        if term.get("labelSelector") is None:
            yield f"{at}.{_REQUIRED}[{index}].labelSelector: {_NO_SELECTOR}"
    for index, term in enumerate(affinity.get(_PREFERRED) or ()):
        if get(term, "podAffinityTerm", "labelSelector") is None:
            yield f"{at}.{_PREFERRED}[{index}].podAffinityTerm.labelSelector: {_NO_SELECTOR}"


def _of_container(container: Plain, at: str) -> Iterator[str]:
    for name in ("limits", "requests"):
        amounts = (container.get("resources") or {}).get(name) or {}
        yield from _of_amounts(amounts, f"{at}.resources.{name}")
    seen: list[str] = []
    for index, one in enumerate(container.get("env") or ()):
        name, value = one["name"], one.get("value", "")
        earlier = f"$({name})"
        is_kept = "valueFrom" not in one and value != earlier and earlier in value
        if name in seen and not is_kept:
            yield (
                f'{at}.env[{index}]: hides previous definition of "{name}", which may be dropped '
                "when using apply"
            )
        seen.append(name)


def _of_amounts(amounts: Plain, at: str) -> Iterator[str]:
    for name in ("memory", "ephemeral-storage"):
        text = amounts.get(name)
        if text is not None and _is_fraction(text):
            yield f'{at}[{name}]: fractional byte value "{text}" is invalid, must be an integer'


def _is_fraction(text: str) -> bool:
    try:
        return parse_quantity(text).milli_value() % 1000 != 0
    except QuantityError:
        return False


# Sending.


def sendable(texts: Iterable[str]) -> tuple[str, ...]:
    """Return the warnings that can be sent, each once and in order.

    Together they have at most 4,096 characters; where that is too little, each is cut to 256, and
    what no longer finds room is left out.
    """
    fit = [text for text in dict.fromkeys(texts) if text and _is_sendable(text)]
    if sum(map(len, fit)) <= _TOTAL_MAX:
        return tuple(fit)
    room, kept = _TOTAL_MAX, []
    for text in fit:
        room -= len(text[:_TEXT_MAX])
        if room < 0:
            break
        kept.append(text[:_TEXT_MAX])
    return tuple(kept)


def _is_sendable(text: str) -> bool:
    # Category Cs is what no UTF-8 can say.
    return not any(unicodedata.category(letter) in {"Cc", "Cs"} for letter in text)
