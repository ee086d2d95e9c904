"""A pod's siblings: the pods that its services and its controller select.

Upstream: pkg/scheduler/framework/plugins/helper/spread.go (v1.36)
Reads:    services, replication controllers, replica sets, stateful sets; the pod's controller
Differs:  nothing.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from typing import Final

import numpy as np
from numpy.typing import NDArray

from kubesched.api.apps import ReplicaSet, StatefulSet
from kubesched.api.core import ReplicationController, Service
from kubesched.api.meta import LabelSelector, OwnerReference
from kubesched.api.requirements import NOTHING, CompiledSelector, SelectorError
from kubesched.api.selectors import compile_label_selector, matches_set, selector_from_set
from kubesched.framework.plugin import Decides, NeededKind
from kubesched.snapshot.changes import ChangeReader
from kubesched.snapshot.label_groups import LabelGroup
from kubesched.snapshot.node_columns import NodeColumns
from kubesched.snapshot.node_table import NodeTable
from kubesched.snapshot.objects import ObjectName, Objects
from kubesched.snapshot.pod_info import PodInfo
from kubesched.snapshot.pod_sums import PodSum

_SUMS_MAX: Final = 4096
_NO_OWNER: Final = OwnerReference()
_NO_SERVICES: Final[dict[str, dict[str, str]]] = {}


class ServiceIndex:
    """Services by one of the labels that they require, so that few are compared with a pod."""

    def __init__(self) -> None:
        self._changed: ChangeReader[ObjectName] = ChangeReader()
        # Namespace and label -> service -> the labels it requires.
        self._by_label: dict[tuple[str, str, str], dict[str, dict[str, str]]] = {}
        self._filed: dict[ObjectName, tuple[str, str, str]] = {}

    def labels_for(self, pod: PodInfo, objects: Objects) -> dict[str, str]:
        """Return the labels that the pod's services require; an empty selector requires none."""
        self._update(objects)
        labels: dict[str, str] = {}
        for key, value in pod.labels.items():
            for wanted in self._by_label.get((pod.namespace, key, value), _NO_SERVICES).values():
                if matches_set(wanted, pod.labels):
                    labels |= wanted
        return labels

    def _update(self, objects: Objects) -> None:
        changed = self._changed.read(objects.changes_of(Service))
        if changed is None:
            self._by_label.clear()
            self._filed.clear()
            services = objects.list(Service)
            changed = [(each.metadata.namespace, each.metadata.name) for each in services]
        for name in changed:
            self._file(name, objects)

    def _file(self, service_name: ObjectName, objects: Objects) -> None:
        namespace, name = service_name
        place = self._filed.pop(service_name, None)
        if place is not None:
            del self._by_label[place][name]
            if not self._by_label[place]:
                del self._by_label[place]
        service = objects.get(Service, name, namespace)
        wanted = None if service is None else service.spec.selector
        if wanted:
            places = [(namespace, *label) for label in wanted.items()]
            # All services may share a label such as that of their application.
            place = min(places, key=lambda place: len(self._by_label.get(place, _NO_SERVICES)))
            self._by_label.setdefault(place, {})[name] = wanted
            self._filed[service_name] = place


def versions_of_siblings(objects: Objects) -> tuple[int, ...]:
    """Return version numbers that change whenever a selector returned here may change."""
    version = objects.version
    # Without a loop, because this runs for every pod.
    return (
        version(Service),
        version(ReplicationController),
        version(ReplicaSet),
        version(StatefulSet),
    )


def default_selector(pod: PodInfo, objects: Objects, services: ServiceIndex) -> CompiledSelector:
    """Return the combined selector of the pod's services and controller; empty if there are none.

    The controller's selector need not match the pod.
    """
    labels = services.labels_for(pod, objects)
    owner = pod.template.controller
    if owner is None:
        return selector_from_set(labels)
    owning: ReplicaSet | StatefulSet | None = None
    match owner.api_version, owner.kind:
        case ("v1" | "/v1", "ReplicationController"):
            controller = objects.get(ReplicationController, owner.name, pod.namespace)
            if controller is not None:
                labels |= controller.spec.selector or {}
        case ("apps/v1", "ReplicaSet"):
            owning = objects.get(ReplicaSet, owner.name, pod.namespace)
        case ("apps/v1", "StatefulSet"):
            owning = objects.get(StatefulSet, owner.name, pod.namespace)
    selector = selector_from_set(labels)
    if owning is None:
        return selector
    # A selector that matches nothing has no requirements to add.
    return selector.with_requirements(_compile(owning.spec.selector).requirements)


def matching_selector(pod: PodInfo, objects: Objects, services: ServiceIndex) -> CompiledSelector:
    """Return the combined selector of all services and controllers that match the pod.

    kube-scheduler used this selector before it read the pod's owner reference. Controllers without
    a selector, or with an empty one, are ignored.
    """
    labels = services.labels_for(pod, objects)
    for controller in objects.list(ReplicationController, pod.namespace):
        wanted = controller.spec.selector
        if wanted and matches_set(wanted, pod.labels):
            labels |= wanted
    selector = selector_from_set(labels)
    sets: list[ReplicaSet | StatefulSet] = [*objects.list(ReplicaSet, pod.namespace)]
    sets += objects.list(StatefulSet, pod.namespace)
    for each in sets:
        compiled = _compile(each.spec.selector)
        if not compiled.is_empty and compiled.matches(pod.labels):
            selector = selector.with_requirements(compiled.requirements)
    return selector


@lru_cache(maxsize=_SUMS_MAX)
def siblings(namespace: str, selector: CompiledSelector) -> PodSum:
    """Return the sum that counts the pods of a namespace that a selector matches.

    Pods that are being deleted do not count. An empty selector matches no pod.
    """

    def weigh(group: LabelGroup) -> int:
        return int(not group.is_terminating and selector.matches(group.labels))

    if selector.is_empty:
        return PodSum(weigh, frozenset())
    return PodSum(weigh, frozenset((namespace,)), selector.needed_labels)


def count_siblings(
    selector: CompiledSelector, namespace: str, nodes: NodeTable
) -> NDArray[np.int64]:
    """Return, as int64 per row, how many pods on it `siblings` counts."""
    if isinstance(nodes, NodeColumns):
        return siblings(namespace, selector).over(nodes.groups).column()
    counts = [
        sum(
            other.namespace == namespace
            and not other.is_terminating
            and not selector.is_empty
            and selector.matches(other.labels)
            for other in pods.values()
        )
        for pods in nodes.pods
    ]
    return np.array(counts, np.int64)


def kinds_of_siblings(pod: PodInfo, decides: Decides) -> Iterator[NeededKind]:
    """Yield the kinds that a selector returned here depends on.

    No service selects a pod without labels, and only a pod's owner counts as its controller.
    """
    why = "they select the pods to spread"
    if pod.labels:
        yield NeededKind(Service, why, decides)
    owner = pod.template.controller or _NO_OWNER
    for kind in (ReplicationController, ReplicaSet, StatefulSet):
        if owner.kind == kind.__name__:
            yield NeededKind(kind, why, decides)


def _compile(written: LabelSelector | None) -> CompiledSelector:
    """Compile a selector; one that is absent or invalid matches nothing."""
    try:
        return compile_label_selector(written)
    except SelectorError:
        return NOTHING
