"""Coscheduling: pods of a group are bound when enough of them have a place, or none is."""

from functools import lru_cache
from typing import ClassVar

from kubesched.framework import (
    SKIP,
    SUCCESS,
    Code,
    CycleState,
    Handle,
    PermitPlugin,
    PluginArgs,
    PodInfo,
    PodSum,
    PreFilterPlugin,
    PreFilterResult,
    ReservePlugin,
    Snapshot,
    Status,
    unresolvable,
)

GROUP = "pod-group.scheduling.sigs.k8s.io"
MIN_AVAILABLE = f"{GROUP}/min-available"


class CoschedulingArgs(PluginArgs, frozen=True, kw_only=True):
    """How long a placed pod waits for the others."""

    permit_waiting_time_seconds: int = 60


class Coscheduling(PreFilterPlugin[int], ReservePlugin, PermitPlugin):
    """Pods with the same label form a group; an annotation says how many of them are enough."""

    name: ClassVar = "Coscheduling"
    args_type: ClassVar = CoschedulingArgs

    def __init__(self, args: CoschedulingArgs, handle: Handle) -> None:
        super().__init__(args, handle)
        self._seconds = float(args.permit_waiting_time_seconds)
        self._sent_back: dict[tuple[str, str], dict[str, PodInfo]] = {}

    def pre_filter(
        self, cycle: CycleState, pod: PodInfo, snapshot: Snapshot
    ) -> PreFilterResult[int]:
        """Count the group's pods that have a place already, waiting or bound."""
        namespace, group = _group_of(pod)
        if not group:
            return PreFilterResult(0, SKIP)
        if not pod.pod.metadata.annotations.get(MIN_AVAILABLE, "1").isdecimal():
            return PreFilterResult(
                status=unresolvable(f"annotation {MIN_AVAILABLE} is not a number")
            )
        placed = _members(namespace, group).over(snapshot.nodes.groups).column()
        return PreFilterResult(int(placed.sum()), SKIP)

    def reserve(self, cycle: CycleState, pod: PodInfo, node_name: str) -> Status:
        """Take nothing: the pod's place is enough."""
        return SUCCESS

    def permit(self, cycle: CycleState, pod: PodInfo, node_name: str) -> tuple[Status, float]:
        """Wait for the others; the pod that completes the group lets all of them go on."""
        group = _group_of(pod)
        if not group[1]:
            return SUCCESS, 0.0
        needed = int(pod.pod.metadata.annotations.get(MIN_AVAILABLE, "1"))
        placed = cycle.filter_states.get(self.name)
        here = 1 + (placed if isinstance(placed, int) else 0)
        if here < needed:
            # Pods that were sent back earlier should try again now, not after this pod's timeout.
            self.handle.activate(list(self._sent_back.pop(group, {}).values()))
            return Status(Code.WAIT, (f"{here} of {needed} pods have a place",)), self._seconds
        for waiting in self.handle.waiting_pods:
            if _group_of(waiting.pod) == group:
                waiting.allow(self.name)
        self._sent_back.pop(group, None)
        return SUCCESS, 0.0

    def unreserve(self, cycle: CycleState, pod: PodInfo, node_name: str) -> None:
        """One pod gave up: those that wait for it give up at once and free their places."""
        group = _group_of(pod)
        if not group[1]:
            return
        self._sent_back.setdefault(group, {})[pod.uid] = pod
        for waiting in self.handle.waiting_pods:
            if _group_of(waiting.pod) == group:
                waiting.reject(self.name, f"pod {pod.name} of the same group gave up")


@lru_cache(maxsize=1024)
def _members(namespace: str, group: str) -> PodSum:
    # The scheduler keeps the count of a PodSum up to date, so each group has one.
    return PodSum(
        lambda pods: int(pods.labels.get(GROUP) == group and not pods.is_terminating),
        frozenset({namespace}),
        [(GROUP, group)],
    )


def _group_of(pod: PodInfo) -> tuple[str, str]:
    return pod.namespace, pod.labels.get(GROUP, "")
