"""PluginObserver is told what in-tree plugins count, if somebody wants to know.

Upstream: pkg/scheduler/metrics/metrics.go, the metrics that plugins write themselves;
          pkg/scheduler/framework/plugins/volumebinding/metrics/metrics.go (v1.36)
Differs:  nothing.
"""

from __future__ import annotations

from enum import StrEnum


class BindingConditionsStatus(StrEnum):
    """How the wait for a pod's devices ended."""

    SUCCESS = "success"
    FAILURE = "failure"
    TIMEOUT = "timeout"
    ERROR = "error"


class VolumeSchedulingStage(StrEnum):
    """What was done about a pod's volumes."""

    PREDICATE = "predicate"
    ASSUME = "assume"
    BIND = "bind"


class PluginObserver:
    """What plugins of one profile tell; whoever wants to know overrides what it wants to know."""

    def resource_claim_create_requested(self, *, is_success: bool) -> None:
        """A ResourceClaim for extended resources was to be created."""

    def binding_conditions_awaited(
        self, driver: str, status: BindingConditionsStatus, seconds: float
    ) -> None:
        """A pod has waited; told for each device of its claims, ready from the start or not."""

    def binding_conditions_used(self, driver: str, status: BindingConditionsStatus) -> None:
        """The same pod's claims have a device with binding conditions; told for each of them."""

    def volume_scheduling_failed(self, stage: VolumeSchedulingStage) -> None:
        """A step towards a pod's volumes failed, which is more than rejecting a node."""
