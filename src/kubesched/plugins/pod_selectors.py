"""The selector that stands for a pod's siblings: what its services and its owner select.

Upstream: pkg/scheduler/framework/plugins/helper/spread.go (v1.36)
Reads:    services, replication controllers, replica sets, stateful sets; the pod's controller
Differs:  nothing.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from kubesched.api.apps import ReplicaSet, StatefulSet
from kubesched.api.core import ReplicationController, Service
from kubesched.api.meta import LabelSelector
from kubesched.api.selectors import (
    CompiledSelector,
    compile_label_selector,
    label_selector_error,
)
from kubesched.snapshot.objects import Objects
from kubesched.snapshot.pod_info import PodInfo

SIBLING_KINDS: Final = (Service, ReplicationController, ReplicaSet, StatefulSet)

_EVERYTHING: Final = compile_label_selector(LabelSelector())
_CORE_VERSIONS: Final = frozenset({"v1", "/v1"})
_APPS_VERSION: Final = "apps/v1"


def versions_of_siblings(objects: Objects) -> tuple[int, ...]:
    """Return numbers that move whenever a selector returned here may become another one."""
    return tuple(objects.version(kind) for kind in SIBLING_KINDS)


def default_selector(pod: PodInfo, objects: Objects) -> CompiledSelector:
    """Return what the pod's services select and what its controller selects; empty if nothing.

    The controller counts whether or not its selector matches the pod.
    """
    labels = _labels_of_services(pod, objects)
    owner = pod.template.controller
    if owner is None:
        return _selector_of(labels)
    if owner.kind == "ReplicationController" and owner.api_version in _CORE_VERSIONS:
        controller = objects.get(ReplicationController, owner.name, pod.namespace)
        if controller is not None:
            labels |= controller.spec.selector or {}
        return _selector_of(labels)
    selector = _selector_of(labels)
    if owner.api_version != _APPS_VERSION:
        return selector
    owning: ReplicaSet | StatefulSet | None = None
    if owner.kind == "ReplicaSet":
        owning = objects.get(ReplicaSet, owner.name, pod.namespace)
    elif owner.kind == "StatefulSet":
        owning = objects.get(StatefulSet, owner.name, pod.namespace)
    return selector if owning is None else _with_selector(selector, owning.spec.selector)


def matching_selector(pod: PodInfo, objects: Objects) -> CompiledSelector:
    """Return what all services and controllers select whose selector matches the pod.

    So kube-scheduler looked for siblings before it asked for the pod's controller. A controller
    without a selector, or with an empty one, selects nothing.
    """
    labels = _labels_of_services(pod, objects)
    for controller in objects.list(ReplicationController, pod.namespace):
        wanted = controller.spec.selector
        if wanted and wanted.items() <= pod.labels.items():
            labels |= wanted
    selector = _selector_of(labels)
    for written in _selectors_of_sets(pod, objects):
        if written is None or label_selector_error(written) is not None:
            continue
        compiled = compile_label_selector(written)
        if not compiled.is_empty and compiled.matches(pod.labels):
            selector = selector.with_requirements(compiled.requirements)
    return selector


def _labels_of_services(pod: PodInfo, objects: Objects) -> dict[str, str]:
    """Return the labels that the services of the pod select; an empty selector adds none."""
    labels: dict[str, str] = {}
    for service in objects.list(Service, pod.namespace):
        wanted = service.spec.selector
        if wanted is not None and wanted.items() <= pod.labels.items():
            labels |= wanted
    return labels


def _selectors_of_sets(pod: PodInfo, objects: Objects) -> Iterator[LabelSelector | None]:
    for replica_set in objects.list(ReplicaSet, pod.namespace):
        yield replica_set.spec.selector
    for stateful_set in objects.list(StatefulSet, pod.namespace):
        yield stateful_set.spec.selector


def _selector_of(labels: dict[str, str]) -> CompiledSelector:
    # Values are compared as they are, so a label that could not be valid does no harm.
    return compile_label_selector(LabelSelector(match_labels=labels)) if labels else _EVERYTHING


def _with_selector(selector: CompiledSelector, written: LabelSelector | None) -> CompiledSelector:
    """Add the requirements of a selector; none that is absent or invalid."""
    if written is None or label_selector_error(written) is not None:
        return selector
    return selector.with_requirements(compile_label_selector(written).requirements)
