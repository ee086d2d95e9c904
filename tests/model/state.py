# ruff: noqa: N802, N803 - the names are those of the formulas in docs/model.md
"""The state of the model: a set of Kubernetes objects, and which pod is bound to which node."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from msgspec.structs import replace

from kubesched.api.core import Node, Pod, PodStatus

Victims = tuple[Pod, ...]
"""A set of pods, written in the order in which the state has them."""


def key(p: Pod) -> str:
    """Return the identity of a pod: `namespace/name`."""
    return f"{p.metadata.namespace}/{p.metadata.name}"


def priority(p: Pod) -> int:
    """Return the pod's priority; 0 if it has none."""
    return p.spec.priority or 0


@dataclass(frozen=True)
class Objects:
    """A set S of nodes and pods.

    Attributes:
        nodes: By name.
        pods: By `namespace/name`, in order of arrival.
    """

    nodes: Mapping[str, Node] = field(default_factory=dict)
    pods: Mapping[str, Pod] = field(default_factory=dict)

    @classmethod
    def of(cls, items: Iterable[object]) -> Objects:
        """Return the set of the nodes and pods among objects."""
        items = list(items)
        return cls(
            {item.metadata.name: item for item in items if isinstance(item, Node)},
            {key(item): item for item in items if isinstance(item, Pod)},
        )

    @property
    def Nodes(self) -> Collection[Node]:
        """{ n ∈ S : n.kind = "Node" }."""
        return self.nodes.values()

    @property
    def Pods(self) -> Collection[Pod]:
        """{ p ∈ S : p.kind = "Pod" }."""
        return self.pods.values()

    def __contains__(self, item: Node | Pod) -> bool:
        if isinstance(item, Pod):
            return key(item) in self.pods
        return item.metadata.name in self.nodes

    def __iter__(self) -> Iterator[Node | Pod]:
        yield from self.nodes.values()
        yield from self.pods.values()

    def __sub__(self, V: Iterable[Pod]) -> Objects:
        """S without the pods V."""
        gone = {key(q) for q in V}
        return Objects(self.nodes, {k: q for k, q in self.pods.items() if k not in gone})

    def bind(self, p: Pod, n: Node) -> Objects:
        """S with p.spec.nodeName = n.metadata.name; p's nomination is dropped."""
        spec = replace(p.spec, node_name=n.metadata.name)
        status = replace(p.status, nominated_node_name="")
        return self.put(replace(p, spec=spec, status=status))

    def put(self, item: Node | Pod) -> Objects:
        """S with this object, in place of one of the same name."""
        if isinstance(item, Pod):
            return Objects(self.nodes, {**self.pods, key(item): item})
        return Objects({**self.nodes, item.metadata.name: item}, self.pods)


def Same(S: Objects, T: Objects) -> bool:
    """S = T, except the pods' statuses and metadata that the API server changes."""
    return (
        S.nodes == T.nodes
        and S.pods.keys() == T.pods.keys()
        and all(_bare(p) == _bare(T.pods[k]) for k, p in S.pods.items())
    )


def _bare(p: Pod) -> Pod:
    metadata = replace(p.metadata, resource_version="", generation=0)
    return replace(p, metadata=metadata, status=PodStatus())


def BoundTo(p: Pod, n: Node, S: Objects) -> bool:
    """Pod p ∈ S ∧ node n ∈ S ∧ p.spec.nodeName = n.metadata.name."""
    return (
        isinstance(p, Pod)
        and isinstance(n, Node)
        and p in S
        and n in S
        and p.spec.node_name == n.metadata.name
    )


def Bound(p: Pod, S: Objects) -> bool:
    """∃ n ∈ S : BoundTo(p, n, S)."""
    n = S.nodes.get(p.spec.node_name)
    return n is not None and BoundTo(p, n, S)


def Unbound(S: Objects) -> list[Pod]:
    """{ p ∈ S : p is a pod ∧ ¬Bound(p, S) }."""
    return [p for p in S.Pods if not Bound(p, S)]


def On(n: Node, S: Objects) -> list[Pod]:
    """{ q ∈ S : BoundTo(q, n, S) }."""
    return [q for q in S.Pods if BoundTo(q, n, S)]
