"""SchedulingGates: keep pods with scheduling gates out of the active queue.

Upstream: pkg/scheduler/framework/plugins/schedulinggates (v1.36)
Reads:    pod.spec.schedulingGates
Rejects:  UnschedulableAndUnresolvable, because only an update of the pod removes its gates.
Differs:  nothing.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import ClassVar

from kubesched.api.core import Pod
from kubesched.framework.cluster_event import POD, Action, ClusterEventWithHint, retry_on
from kubesched.framework.plugin import PreEnqueuePlugin, Scope
from kubesched.framework.status import SUCCESS, Status, unresolvable
from kubesched.snapshot.pod_info import PodInfo
from kubesched.snapshot.snapshot import Snapshot


class SchedulingGates(PreEnqueuePlugin):
    """Admit a pod to the active queue when it has no gates."""

    name: ClassVar = "SchedulingGates"
    scope: ClassVar = Scope.NODE
    signs_base: ClassVar = True

    def pre_enqueue(self, pod: PodInfo, snapshot: Snapshot) -> Status:
        """Reject a pod with gates, and name them."""
        gates = pod.spec.scheduling_gates
        if not gates:
            return SUCCESS
        names = " ".join(gate.name for gate in gates)
        return unresolvable(f"waiting for scheduling gates: [{names}]")

    def events_to_register(self) -> Sequence[ClusterEventWithHint]:
        """Return the removal of a pod's last gate."""
        return (retry_on(POD, Action.UPDATE_POD_SCHEDULING_GATES_ELIMINATED, _is_about),)

    def sign(self, pod: PodInfo) -> Hashable:
        """Return None, because pods that reach a scheduling cycle have no gates."""
        return None


def _is_about(pod: Pod, _old: object | None, new: object | None) -> bool:
    return not isinstance(new, Pod) or new.metadata.uid == pod.metadata.uid
