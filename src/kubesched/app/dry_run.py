"""DryRunClient reports what a scheduler would write, and writes nothing.

Differs:  upstream has no dry run. Plugins are not called from PreBind on, nor extenders to bind:
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
    """An `ApiClient` that only reports.

    A pod that would be bound remains assumed, so later pods are scheduled around it. Pods that
    would be evicted stay.
    """

    def __init__(self, report: Callable[[Plain], None]) -> None:
        """Take a function that gets each report: JSON values with an `action`."""
        self._report = report

    async def bind(self, pod: Pod, node_name: str) -> None:
        """Report a binding."""
        self._report({"action": "bind", "pod": _name(pod), "node": node_name})

    async def patch_pod_status(
        self,
        pod: Pod,
        condition: PodConditionPatch | None = None,
        nominated_node_name: str | None = None,
    ) -> None:
        """Report a pod's condition and nominated node."""
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
        """Report a pod group's condition."""
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
        """Report an eviction."""
        self._report({"action": "evict", "pod": _name(pod), "node": pod.spec.node_name})

    def record_event(self, event: EventRecord) -> None:
        """Ignore the event; the other reports contain the same information."""


def _name(pod: Pod) -> str:
    return f"{pod.metadata.namespace}/{pod.metadata.name}"
