"""Objects of a workload, each decoded from its own JSON text, as from a watch."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import count

import msgspec

from benchmarks import templates
from benchmarks.templates import Json
from benchmarks.workloads import Nodes, Pods, Workload
from kubesched.api.codec import decode_object
from kubesched.api.core import Pod
from kubesched.api.meta import KubeObject

_encode = msgspec.json.Encoder().encode
_NUMBERS_PER_OBJECT = 3
"""The maximum number of objects per node or pod, including those that come with it."""


def decoded(item: Json) -> KubeObject:
    """Decode a JSON value to an object that shares nothing with other objects."""
    return decode_object(_encode(item))


class Objects:
    """Creates the objects of one workload; numbers, and so names and uids, are unique."""

    def __init__(self, workload: Workload) -> None:
        self.workload = workload
        self._numbers = count(1000, _NUMBERS_PER_OBJECT)

    def cluster(self) -> Iterator[KubeObject]:
        """Yield nodes, namespaces and other objects that must exist before the first pod."""
        for nodes in self.workload.nodes:
            yield from self._nodes(nodes)
        for item in self.workload.objects:
            yield decoded(item)
        labels = {"team": "devops"} if self.workload.team_namespaces else {}
        for name in self._namespaces():
            yield decoded(templates.namespace(name, next(self._numbers), labels))

    def _nodes(self, nodes: Nodes) -> Iterator[KubeObject]:
        for index in range(nodes.count):
            labels: Mapping[str, str] = {}
            if nodes.zones:
                labels = {templates.ZONE: nodes.zones[index % len(nodes.zones)]}
            for item in nodes.template(index, next(self._numbers), labels):
                yield decoded(item)

    def _namespaces(self) -> list[str]:
        groups = (*self.workload.before, self.workload.measured)
        return list(dict.fromkeys(name for pods in groups for name in _namespaces_of(pods)))

    def pods(self, pods: Pods) -> tuple[list[Pod], list[KubeObject]]:
        """Return pods in order of creation, and the objects that come with them."""
        found: list[Pod] = []
        brought: list[KubeObject] = []
        names = _namespaces_of(pods)
        for index in range(pods.count):
            item = self._pod(pods.template, names[index * len(names) // pods.count])
            if pods.brings is not None:
                brought.extend(map(decoded, pods.brings(item, index)))
            found.append(_as_pod(decoded(item)))
        return found, brought

    def churn(self, pods: int) -> list[Pod]:
        """Return the churn pods for this number of measured pods."""
        churn = self.workload.churn
        if churn is None:
            return []
        namespace = self.workload.measured.namespace
        return [
            _as_pod(decoded(self._pod(churn.template, namespace)))
            for _ in range(-(-pods // churn.every_pods))
        ]

    def _pod(self, template: str, namespace: str) -> Json:
        number = next(self._numbers)
        item = templates.PODS[template]
        prefix = item["metadata"]["generateName"]
        own = templates.metadata(f"{prefix}{number:07d}", number, namespace, **item["metadata"])
        return {**item, "metadata": own}


def _namespaces_of(pods: Pods) -> list[str]:
    return [pods.namespace.format(number) for number in range(pods.namespaces)]


def _as_pod(item: KubeObject) -> Pod:
    assert isinstance(item, Pod), "the template of a pod is a pod"
    return item
