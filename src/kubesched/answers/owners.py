"""Owners: the topmost workload behind the controllers of a pod."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, NamedTuple

from kubesched.api.apps import Job, ReplicaSet
from kubesched.api.meta import KubeObject, OwnerReference, controller_of
from kubesched.inputs.pod_names import workloads_of
from kubesched.snapshot.pod_info import PodInfo

_BETWEEN: Final = ("ReplicaSet", "Job")
"""The kinds that other workloads create between themselves and their pods."""


class PodOwner(NamedTuple):
    """The topmost owner of a pod.

    Attributes:
        namespace: Its namespace; empty for a node, which owns its static pods.
        name: Its name.
        kind: Its kind; `Pod` for a pod that nothing owns.
    """

    namespace: str
    name: str
    kind: str

    def __str__(self) -> str:
        place = f"{self.namespace}/{self.name}" if self.namespace else self.name
        return f"{self.kind} {place}"


class Owners:
    """The owners of a cluster's pods."""

    def __init__(self, objects: Iterable[KubeObject]) -> None:
        """Read the ReplicaSets and Jobs among the objects; others are ignored."""
        self._above: dict[PodOwner, OwnerReference | None] = {}
        for item in objects:
            if isinstance(item, ReplicaSet | Job):
                metadata = item.metadata
                key = PodOwner(metadata.namespace, metadata.name, type(item).__name__)
                self._above[key] = controller_of(metadata)

    def of(self, info: PodInfo) -> PodOwner:
        """Return the topmost known owner of a pod."""
        controller = info.template.controller
        if controller is None:
            return PodOwner(info.namespace, info.name, "Pod")
        if controller.kind == "Node":
            return PodOwner("", controller.name, controller.kind)
        owner = PodOwner(info.namespace, controller.name, controller.kind)
        if owner.kind not in _BETWEEN:
            return owner
        if owner in self._above:
            above = self._above[owner]
            return owner if above is None else PodOwner(info.namespace, above.name, above.kind)
        # The input has no ReplicaSets.
        *_, (kind, name) = workloads_of(info.pod)
        return PodOwner(info.namespace, name, kind)
