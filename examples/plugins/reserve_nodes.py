"""ReserveNodes: nodes that offer a resource are for pods that ask for it; with arguments."""

from typing import ClassVar

from kubesched import ConfigError
from kubesched.framework import (
    FilterPlugin,
    Handle,
    NodeTable,
    NodeToStatus,
    PluginArgs,
    PodInfo,
    Scope,
    child,
    decode_args,
    required,
    unresolvable,
)


class ReserveNodesArgs(PluginArgs, frozen=True, kw_only=True):
    """Which resource."""

    resource: str = "nvidia.com/gpu"


class ReserveNodes(FilterPlugin[None]):
    """Reject nodes that offer the resource for pods that do not ask for it."""

    name: ClassVar = "ReserveNodes"
    scope: ClassVar = Scope.NODE  # a node's answer depends on its Node object alone

    def __init__(self, args: ReserveNodesArgs, handle: Handle) -> None:
        super().__init__(args, handle)
        self._resource = args.resource
        self._rejection = unresolvable(
            f"node(s) were reserved for pods that ask for {args.resource}"
        )

    @classmethod
    def decode_args(
        cls, raw: dict[str, object] | None, handle: Handle, path: str
    ) -> ReserveNodesArgs:
        """Decode and check; every field error is reported with its field path."""
        args = decode_args(ReserveNodesArgs, raw, path)
        if not args.resource:
            raise ConfigError([required(child(path, "resource"), "name a resource")])
        return args

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
