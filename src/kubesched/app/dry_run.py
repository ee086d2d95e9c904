"""DryRunClient reports what a scheduler would write.

Differs:  upstream has no dry run. Plugins are not called from PreBind on, nor extenders to bind:
          volumes and devices stay reserved for a pod and are never written, so a second pod of the
          same ResourceClaim waits until another scheduler allocates the claim.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from msgspec.structs import asdict

from kubesched.api.conditions import ConditionPatch
from kubesched.api.core import EventRecord, Pod
from kubesched.api.scheduling import PodGroup

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
        self._report({"action": "bind", "pod": pod.metadata.key, "node": node_name})

    async def patch_pod_status(
        self,
        pod: Pod,
        condition: ConditionPatch | None = None,
        nominated_node_name: str | None = None,
    ) -> None:
        """Report a pod's condition and nominated node."""
        report: Plain = {"action": "status", "pod": pod.metadata.key}
        if condition is not None:
            report |= asdict(condition)
        if nominated_node_name:
            report["nominatedNode"] = nominated_node_name
        if len(report) > 2:
            self._report(report)

    async def patch_pod_group_status(self, group: PodGroup, condition: ConditionPatch) -> None:
        """Report a pod group's condition."""
        self._report({"action": "status", "podGroup": group.metadata.key, **asdict(condition)})

    async def delete_pod(self, pod: Pod) -> None:
        """Report an eviction."""
        self._report({"action": "evict", "pod": pod.metadata.key, "node": pod.spec.node_name})

    def record_event(self, event: EventRecord) -> None:
        """Ignore the event; the other reports contain the same information."""
