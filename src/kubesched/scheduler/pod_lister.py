"""PodLister holds the last observed state of every pod, by name.

Upstream: the pod lister of client-go's shared informer (v1.36)
Differs:  nothing.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from itertools import chain

from kubesched.api.core import Pod


class PodLister:
    """The pods by namespace, then by name: no pod needs a key of its own."""

    def __init__(self) -> None:
        self._namespaces: defaultdict[str, dict[str, Pod]] = defaultdict(dict)

    def all(self) -> Iterable[Pod]:
        """Return all pods, while none is added or removed."""
        return chain.from_iterable(pods.values() for pods in self._namespaces.values())

    def get(self, namespace: str, name: str) -> Pod | None:
        """Return the pod; None if there is none."""
        pods = self._namespaces.get(namespace)
        return None if pods is None else pods.get(name)

    def put(self, pod: Pod) -> None:
        """Store an added or changed pod."""
        self._namespaces[pod.metadata.namespace][pod.metadata.name] = pod

    def delete(self, pod: Pod) -> None:
        """Remove a deleted pod."""
        pods = self._namespaces[pod.metadata.namespace]
        pods.pop(pod.metadata.name, None)
        if not pods:
            del self._namespaces[pod.metadata.namespace]
