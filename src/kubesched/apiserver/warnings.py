"""Warnings about valid pods that will hardly run as intended, and the headers of all warnings.

Upstream: pkg/api/{pod,node}/warnings.go, staging/src/k8s.io/apiserver/pkg/endpoints/filters
          (warning.go), staging/src/k8s.io/apimachinery/pkg/util/net/http.go (v1.36)
Differs:  only selectors that match nothing, amounts, grace periods and names are checked, in pods
          and their templates. Warnings beyond the size limit are dropped.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from kubesched.api.quantity import parse_quantity
from kubesched.api.well_known import PREFERRED, REQUIRED
from kubesched.apiserver.formats import dns_label
from kubesched.apiserver.plain import Plain, entries, get
from kubesched.apiserver.resources import Resource

# Where pods and their templates stand, by kind.
_TEMPLATES: Final[Mapping[str, tuple[str, ...]]] = {
    "Pod": (),
    **dict.fromkeys(
        ("DaemonSet", "Deployment", "Job", "ReplicaSet", "ReplicationController", "StatefulSet"),
        ("spec", "template"),
    ),
    "CronJob": ("spec", "jobTemplate", "spec", "template"),
    "PodTemplate": ("template",),
}
# What names are used in, by kind.
_NAMES: Final[Mapping[str, str]] = {
    "Pod": "the Pod's hostname",
    **dict.fromkeys(
        ("CronJob", "Deployment", "Job", "ReplicaSet", "ReplicationController"),
        "Pod names and hostnames",
    ),
}
_NEGATIVE: Final = "must be >= 0; negative values are invalid and will be treated as 1"
_NO_SELECTOR: Final = "a null labelSelector results in matching no pod"
_TOTAL_MAX: Final = 4 * 1024
_TEXT_MAX: Final = 256


def warnings_of_new(resource: Resource, obj: Plain) -> list[str]:
    """Return the warnings about a new object."""
    found: list[str] = []
    wrong, used = dns_label(obj["metadata"]["name"]), _NAMES.get(resource.built_in_kind)
    if wrong and used:
        found.append(
            f"metadata.name: this is used in {used}, which can result in surprising behavior; "
            f"a DNS label is recommended: [{' '.join(wrong)}]"
        )
    return list(dict.fromkeys((*found, *_of_template(resource, obj))))


def warnings_of_update(resource: Resource, new: Plain, old: Plain, subresource: str) -> list[str]:
    """Return the warnings about a changed object."""
    # Pods change often, and rarely by users.
    is_changed = get(new, "metadata", "generation") != get(old, "metadata", "generation")
    if subresource or resource.built_in_kind == "Pod" or not is_changed:
        return []
    return list(dict.fromkeys(_of_template(resource, new)))


def _of_template(resource: Resource, obj: Plain) -> Iterator[str]:
    path = _TEMPLATES.get(resource.built_in_kind)
    if path is not None and (spec := get(obj, *path, "spec")) is not None:
        yield from _of_spec(spec, ".".join((*path, "spec")))


def _of_spec(spec: Plain, at: str) -> Iterator[str]:
    yield from _of_selectors(entries(spec, at, "topologySpreadConstraints"))
    yield from _of_amounts(spec.get("overhead") or {}, f"{at}.overhead")
    for where, container in entries(
        spec, at, "initContainers", "containers", "ephemeralContainers"
    ):
        for name in ("limits", "requests"):
            amounts = (container.get("resources") or {}).get(name) or {}
            yield from _of_amounts(amounts, f"{where}.resources.{name}")
    if (spec.get("terminationGracePeriodSeconds") or 0) < 0:
        yield f"{at}.terminationGracePeriodSeconds: {_NEGATIVE}"
    for name in ("podAffinity", "podAntiAffinity"):
        affinity, where = get(spec, "affinity", name) or {}, f"{at}.affinity.{name}"
        yield from _of_selectors(entries(affinity, where, REQUIRED))
        yield from _of_selectors(
            (f"{path}.podAffinityTerm", term["podAffinityTerm"])
            for path, term in entries(affinity, where, PREFERRED)
        )


def _of_selectors(terms: Iterable[tuple[str, Plain]]) -> Iterator[str]:
    for path, term in terms:
        if term.get("labelSelector") is None:
            yield f"{path}.labelSelector: {_NO_SELECTOR}"


def _of_amounts(amounts: Plain, at: str) -> Iterator[str]:
    for name in ("memory", "ephemeral-storage"):
        text = amounts.get(name)
        if text is not None and parse_quantity(text).milli_value() % 1000:
            yield f'{at}[{name}]: fractional byte value "{text}" is invalid, must be an integer'


# Sending.


def sendable(texts: Iterable[str]) -> tuple[str, ...]:
    """Return the warnings that can be sent, each once and in order.

    Together they have at most 4,096 characters. If they are longer, each is cut to 256 characters,
    and those that still do not fit are left out.
    """
    # Category Cs cannot be encoded in UTF-8.
    unsendable = {"Cc", "Cs"}
    fit = [
        text
        for text in dict.fromkeys(texts)
        if text and unsendable.isdisjoint(map(unicodedata.category, text))
    ]
    if sum(map(len, fit)) <= _TOTAL_MAX:
        return tuple(fit)
    room, kept = _TOTAL_MAX, []
    for text in fit:
        room -= len(text[:_TEXT_MAX])
        if room < 0:
            break
        kept.append(text[:_TEXT_MAX])
    return tuple(kept)
