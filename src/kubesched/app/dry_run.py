"""DryRun is an API that writes nothing: it reports what would have been written.

Differs:  upstream has no such thing. Plugins are not called from PreBind on, nor extenders to bind:
          volumes and devices stay reserved for a pod and are never written, so a second pod of
          the same ResourceClaim waits until another scheduler allocates the claim.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from kubesched.api.core import Pod
from kubesched.api.scheduling import PodGroup
from kubesched.scheduler.api_client import (
    EventRecord,
    PodConditionPatch,
    PodGroupConditionPatch,
)

Plain = dict[str, Any]


class DryRunClient:
    """An `ApiClient` that carries nothing out.

    A pod that would be bound stays assumed, so later pods are decided as if it were there. Pods
    that would be evicted stay.
    """

    def __init__(self, report: Callable[[Plain], None]) -> None:
        """Take what is handed each report: plain values with an `action`."""
        self._report = report

    async def bind(self, pod: Pod, node_name: str) -> None:
        """Report where the pod would go."""
        self._report({"action": "bind", "pod": _name(pod), "node": node_name})

    async def patch_pod_status(
        self,
        pod: Pod,
        condition: PodConditionPatch | None = None,
        nominated_node_name: str | None = None,
    ) -> None:
        """Report why a pod would wait, and where room would be made for it."""
        report: Plain = {"action": "status", "pod": _name(pod)}
        if condition is not None:
            report |= {
                "type": condition.type,
                "status": condition.status,
                "reason": condition.reason,
                "message": condition.message,
            }
        if nominated_node_name:
            report["nominatedNode"] = nominated_node_name
        if len(report) > 2:
            self._report(report)

    async def patch_pod_group_status(
        self, group: PodGroup, condition: PodGroupConditionPatch
    ) -> None:
        """Report what would be said of the group."""
        metadata = group.metadata
        self._report(
            {
                "action": "status",
                "podGroup": f"{metadata.namespace}/{metadata.name}",
                "type": condition.type,
                "status": condition.status,
                "reason": condition.reason,
                "message": condition.message,
            }
        )

    async def delete_pod(self, pod: Pod) -> None:
        """Report who would be evicted."""
        self._report({"action": "evict", "pod": _name(pod), "node": pod.spec.node_name})

    def record_event(self, event: EventRecord) -> None:
        """Write no events; the other reports say the same."""


def _name(pod: Pod) -> str:
    return f"{pod.metadata.namespace}/{pod.metadata.name}"
