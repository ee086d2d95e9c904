"""GangScheduling: bind the pods of a gang together or not at all.

    PreEnqueue  rejects a pod until its PodGroup and `minCount` pods of the gang exist
    Permit      delays a placed pod until `minCount` pods of the gang have a node

Upstream: pkg/scheduler/framework/plugins/gangscheduling (v1.36)
Reads:    pod.spec.schedulingGroup; PodGroups; the group's pods and their states
Rejects:  UnschedulableAndUnresolvable in PreEnqueue; Permit waits for at most five minutes.
Differs:  a pod that leaves its gang short of `minCount` pods does not have the others asked again.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import ClassVar, Final

from kubesched.api.core import Pod
from kubesched.api.scheduling import PodGroup
from kubesched.framework.cluster_event import (
    POD,
    POD_GROUP,
    Action,
    ClusterEventWithHint,
    Filing,
    retry_on,
)
from kubesched.framework.cycle_state import CycleState
from kubesched.framework.plugin import PermitPlugin, PreEnqueuePlugin, Scope
from kubesched.framework.pod_groups import pod_group_name_of, state_not_found
from kubesched.framework.status import SUCCESS, Code, Status, failure, unresolvable
from kubesched.snapshot.pod_info import PodInfo
from kubesched.snapshot.snapshot import Snapshot

PERMIT_TIMEOUT_SECONDS: Final = 5 * 60.0


class GangScheduling(PreEnqueuePlugin, PermitPlugin):
    """Delay the pods of a gang until there are enough of them."""

    name: ClassVar = "GangScheduling"
    scope: ClassVar = Scope.NODE
    signs_base: ClassVar = True
    too_few: ClassVar = unresolvable(
        "waiting for minCount pods from a gang to appear in scheduling queue"
    )
    waiting: ClassVar = Status(
        Code.WAIT, ("waiting for minCount pods from a gang to be scheduled",)
    )

    def pre_enqueue(self, pod: PodInfo, snapshot: Snapshot) -> Status:
        """Reject the pod until its group and enough pods of the gang exist."""
        return self._gate(pod.pod)

    def _gate(self, pod: Pod) -> Status:
        name, namespace = pod_group_name_of(pod), pod.metadata.namespace
        if not name:
            return SUCCESS
        group = self.handle.objects.get(PodGroup, name, namespace)
        if group is None:
            text = f'waiting for pods\'s pod group "{name}" to appear in scheduling queue'
            return unresolvable(text)
        gang = group.spec.scheduling_policy.gang
        if gang is None:
            return SUCCESS
        state = self.handle.pod_group_states.get(namespace, name)
        if state is None:
            return failure(state_not_found(namespace, name))
        return self.too_few if state.all_pods_count < gang.min_count else SUCCESS

    def permit(self, cycle: CycleState, pod: PodInfo, node_name: str) -> tuple[Status, float]:
        """Return Wait until the gang is complete; the last pod approves all the others."""
        name = pod_group_name_of(pod.pod)
        if not name:
            return SUCCESS, 0.0
        group = self.handle.objects.get(PodGroup, name, pod.namespace)
        if group is None:
            cause = f'podgroup.scheduling.k8s.io "{name}" not found'
            return failure(f"failed to get podGroup {pod.namespace}/{name}: {cause}"), 0.0
        gang = group.spec.scheduling_policy.gang
        if gang is None:
            return SUCCESS, 0.0
        state = self.handle.pod_group_states.get(pod.namespace, name)
        if state is None:
            return failure(state_not_found(pod.namespace, name)), 0.0
        if state.scheduled_pods_count < gang.min_count:
            # The others may be in backoff; activate them, or this pod might time out.
            self.handle.activate(state.unscheduled_pods)
            return self.waiting, PERMIT_TIMEOUT_SECONDS
        for other in state.assumed_pods:
            waiting = self.handle.waiting_pods.get(other.uid)
            if waiting is not None:
                waiting.allow(self.name)
        return SUCCESS, 0.0

    def events_to_register(self) -> Sequence[ClusterEventWithHint]:
        """Return additions of pods and PodGroups; a group's identity never changes."""
        filing = Filing(_names_of, self._names_of_change)
        return (
            retry_on(POD, Action.ADD, _is_about_its_group, filing=filing),
            retry_on(POD_GROUP, Action.ADD, _is_about_its_group, filing=filing),
        )

    def _names_of_change(self, _old: object | None, new: object | None) -> tuple[str, ...] | None:
        if isinstance(new, Pod) and self._gate(new) is self.too_few:
            # Asking all others would take a time that grows with the square of the gang.
            return ()
        return _names_of(new) if isinstance(new, Pod | PodGroup) else None

    def sign(self, pod: PodInfo) -> Hashable:
        """Return None, because the plugin does not evaluate nodes."""
        return None


def _is_about_its_group(pod: Pod, old: object | None, new: object | None) -> bool:
    """Whether the new object is the pod's group, or another pod of it."""
    if not isinstance(new, Pod | PodGroup):
        return True
    names = _names_of(new)
    return bool(names) and names == _names_of(pod)


def _names_of(item: Pod | PodGroup) -> tuple[str, ...]:
    """Return the group that a pod belongs to, or a PodGroup is; () for other pods."""
    name = pod_group_name_of(item) if isinstance(item, Pod) else item.metadata.name
    return (f"{item.metadata.namespace}/{name}",) if name else ()
