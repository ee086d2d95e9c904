"""ReserveNodes: nodes that offer a resource are for pods that ask for it; with arguments."""

from collections.abc import Iterable
from typing import ClassVar

from kubesched.framework import (
    FieldError,
    FilterPlugin,
    Handle,
    NodeTable,
    NodeToStatus,
    PluginArgs,
    PodInfo,
    Scope,
    child,
    required,
    unresolvable,
)


class ReserveNodesArgs(PluginArgs, frozen=True, kw_only=True):
    """Which resource."""

    resource: str = "nvidia.com/gpu"

    def errors(self, path: str) -> Iterable[FieldError]:
        """Report every violation of further rules with its field path."""
        if not self.resource:
            yield required(child(path, "resource"), "name a resource")


class ReserveNodes(FilterPlugin[None]):
    """Reject nodes that offer the resource for pods that do not ask for it."""

    name: ClassVar = "ReserveNodes"
    args_type: ClassVar = ReserveNodesArgs
    scope: ClassVar = Scope.NODE  # a node's answer depends on its Node object alone

    def __init__(self, args: ReserveNodesArgs, handle: Handle) -> None:
        super().__init__(args, handle)
        self._resource = args.resource
        self._rejection = unresolvable(
            f"node(s) were reserved for pods that ask for {args.resource}"
        )

    def sign(self, pod: PodInfo) -> bool:
        """Return whether the pod asks for the resource; nothing else of it is read."""
        return self._asks_for_it(pod)

    def filter(self, state: None, pod: PodInfo, nodes: NodeTable) -> NodeToStatus:
        """Answer for all nodes at once."""
        if self._asks_for_it(pod):
            return NodeToStatus.passing(len(nodes))
        offers = nodes.allocatable_of(self._resource) > 0
        return NodeToStatus.rejecting(offers, self._rejection)

    def describe(self, state: None, pod: PodInfo, nodes: NodeTable) -> str:
        """Say, for explain, what decided on the one row of `nodes`."""
        return f"{self._resource}: {int(nodes.allocatable_of(self._resource)[0])} on the node"

    def _asks_for_it(self, pod: PodInfo) -> bool:
        return pod.template.requests.get(self._resource, 0) > 0
