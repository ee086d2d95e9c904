"""PodLister holds the last observed state of every pod, by name.

Upstream: the pod lister of client-go's shared informer (v1.36)
Differs:  nothing.
"""

from __future__ import annotations

from collections.abc import Collection

from kubesched.api.core import Pod


class PodLister:
    """(namespace, name) -> Pod."""

    def __init__(self) -> None:
        self._pods: dict[tuple[str, str], Pod] = {}

    def __len__(self) -> int:
        return len(self._pods)

    def all(self) -> Collection[Pod]:
        """Return all pods, as a view."""
        return self._pods.values()

    def get(self, namespace: str, name: str) -> Pod | None:
        """Return the pod; None if there is none."""
        return self._pods.get((namespace, name))

    def put(self, pod: Pod) -> None:
        """Store an added or changed pod."""
        self._pods[pod.metadata.namespace, pod.metadata.name] = pod

    def delete(self, pod: Pod) -> None:
        """Remove a deleted pod."""
        self._pods.pop((pod.metadata.namespace, pod.metadata.name), None)
