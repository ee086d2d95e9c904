"""DefaultBinder: create the pod's Binding in the API.

Upstream: pkg/scheduler/framework/plugins/defaultbinder (v1.36)
Rejects:  never; a request that the API server rejects is an Error.
Differs:  nothing.
"""

from __future__ import annotations

from collections.abc import Coroutine, Hashable, Sequence
from typing import Any, ClassVar

from kubesched.framework.cluster_event import ClusterEventWithHint
from kubesched.framework.cycle_state import CycleState
from kubesched.framework.plugin import BindPlugin, Scope
from kubesched.framework.status import Status
from kubesched.snapshot.pod_info import PodInfo


class DefaultBinder(BindPlugin):
    """Bind through the binder of the scheduler."""

    name: ClassVar = "DefaultBinder"
    scope: ClassVar = Scope.NODE
    signs_base: ClassVar = True

    def bind(self, cycle: CycleState, pod: PodInfo, node_name: str) -> Coroutine[Any, Any, Status]:
        """Create the Binding."""
        return self.handle.services.bind(pod.pod, node_name)

    def events_to_register(self) -> Sequence[ClusterEventWithHint]:
        """Return no events, because the plugin never rejects a pod."""
        return ()

    def sign(self, pod: PodInfo) -> Hashable:
        """Return None, because the plugin does not evaluate nodes."""
        return None
