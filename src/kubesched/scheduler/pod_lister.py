"""PodLister holds the pods as they were last observed, by name.

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
        """Return the pod, None if it is gone."""
        return self._pods.get((namespace, name))

    def put(self, pod: Pod) -> None:
        """Take in a pod that came or changed."""
        self._pods[pod.metadata.namespace, pod.metadata.name] = pod

    def delete(self, pod: Pod) -> None:
        """Forget a pod that is gone."""
        self._pods.pop((pod.metadata.namespace, pod.metadata.name), None)
