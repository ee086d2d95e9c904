"""ServiceIndex finds the services of a pod without comparing it with all of its namespace.

Reads:      services; pod.metadata.namespace, labels
Invariants: each service that has a selector is filed under one of the labels that it requires.
"""

from __future__ import annotations

from typing import Final

from kubesched.api.core import Service
from kubesched.api.selectors import matches_set
from kubesched.snapshot.changes import ChangeReader
from kubesched.snapshot.objects import ObjectName, Objects
from kubesched.snapshot.pod_info import PodInfo

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
