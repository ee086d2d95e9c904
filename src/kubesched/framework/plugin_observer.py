"""PluginObserver: receives the metrics that in-tree plugins report themselves.

Upstream: pkg/scheduler/metrics/metrics.go, the metrics that plugins write themselves;
          pkg/scheduler/framework/plugins/volumebinding/metrics/metrics.go (v1.36)
Differs:  nothing.
"""

from __future__ import annotations

from enum import StrEnum


class BindingConditionsStatus(StrEnum):
    """The result of waiting for a pod's devices."""

    SUCCESS = "success"
    FAILURE = "failure"
    TIMEOUT = "timeout"
    ERROR = "error"


class VolumeSchedulingStage(StrEnum):
    """A step of volume scheduling."""

    PREDICATE = "predicate"
    ASSUME = "assume"
    BIND = "bind"


class PluginObserver:
    """Receives metrics of one profile's plugins; does nothing unless a method is overridden."""

    def resource_claim_create_requested(self, *, is_success: bool) -> None:
        """Handle the creation, or failed creation, of a claim for extended resources."""

    def binding_conditions_awaited(
        self, driver: str, status: BindingConditionsStatus, seconds: float
    ) -> None:
        """Handle the end of a pod's wait; called for each device of its claims."""

    def binding_conditions_used(self, driver: str, status: BindingConditionsStatus) -> None:
        """Handle the end of a pod's wait; called for each device with binding conditions."""

    def volume_scheduling_failed(self, stage: VolumeSchedulingStage) -> None:
        """Handle an error in a step of volume scheduling; a rejected node is no error."""
