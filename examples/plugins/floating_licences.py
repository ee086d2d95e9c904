"""FloatingLicences: a few licences are shared by all pods that need one; the others wait."""

from typing import ClassVar

from kubesched.framework import (
    ASSIGNED_POD,
    PRE_FILTER_SKIP,
    Action,
    ClusterEvent,
    ClusterEventWithHint,
    CycleState,
    FilterPlugin,
    Handle,
    NodeTable,
    NodeToStatus,
    PluginArgs,
    Pod,
    PodInfo,
    PreFilterPlugin,
    PreFilterResult,
    Snapshot,
    unresolvable,
)

LICENCE = "example.com/licence"


class FloatingLicencesArgs(PluginArgs, frozen=True, kw_only=True):
    """How many licences there are, and the node label with the name of those a node can use."""

    licences: dict[str, int]
    node_label: str = "example.com/licence-server"


class FloatingLicences(PreFilterPlugin[str], FilterPlugin[str]):
    """A pod with the label `example.com/licence: NAME` needs one of the licences called NAME."""

    name: ClassVar = "FloatingLicences"
    args_type: ClassVar = FloatingLicencesArgs

    def __init__(self, args: FloatingLicencesArgs, handle: Handle) -> None:
        super().__init__(args, handle)
        self._args = args

    def pre_filter(
        self, cycle: CycleState, pod: PodInfo, snapshot: Snapshot
    ) -> PreFilterResult[str]:
        """Count the licences in use; what is returned as state is passed to `filter`."""
        wanted = pod.labels.get(LICENCE, "")
        if not wanted:
            return PRE_FILTER_SKIP
        on_nodes = (other for pods in snapshot.nodes.pods for other in pods.values())
        used = sum(other.labels.get(LICENCE) == wanted for other in on_nodes)
        if used >= self._args.licences.get(wanted, 0):
            return PreFilterResult(status=unresolvable(f"all {used} licences {wanted} are in use"))
        return PreFilterResult(wanted)

    def filter(self, state: str, pod: PodInfo, nodes: NodeTable) -> NodeToStatus:
        """Reject nodes that cannot reach the server of the licence, `state`."""
        reachable = nodes.label(self._args.node_label).equals(state)
        return NodeToStatus.rejecting(~reachable, unresolvable(f"node(s) cannot use {state}"))

    def events_to_register(self) -> list[ClusterEventWithHint]:
        """A pod that waits for a licence is tried again when a pod with that licence goes."""
        gone = ClusterEvent(ASSIGNED_POD, Action.DELETE)
        nodes = ClusterEvent("Node", Action.ADD | Action.UPDATE_NODE_LABEL)
        return [ClusterEventWithHint(gone, _has_same_licence), ClusterEventWithHint(nodes)]


def _has_same_licence(waiting: Pod, old: object | None, new: object | None) -> bool:
    return isinstance(old, Pod) and old.metadata.labels.get(LICENCE) == waiting.metadata.labels.get(
        LICENCE
    )
