"""PluginCounts counts the observations of the plugins of one profile.

Upstream: pkg/scheduler/metrics/metrics.go,
          pkg/scheduler/framework/plugins/volumebinding/metrics/metrics.go (v1.36)
Differs:  nothing.
"""

from __future__ import annotations

from kubesched.app.metrics.accumulators import CounterVec, HistogramVec
from kubesched.framework.plugin_observer import (
    BindingConditionsStatus,
    PluginObserver,
    VolumeSchedulingStage,
)


class PluginTallies:
    """The accumulators of plugins of all profiles."""

    def __init__(
        self,
        claim_creates: CounterVec,
        binding_conditions: CounterVec,
        binding_waits: HistogramVec,
        volume_errors: CounterVec,
    ) -> None:
        self.claim_creates = claim_creates
        self.binding_conditions = binding_conditions
        self.binding_waits = binding_waits
        self.volume_errors = volume_errors


class PluginCounts(PluginObserver):
    """The `PluginObserver` of one profile.

    Attributes:
        unsettled: Failures in filtering, which do not count if the cycle starts over.
    """

    def __init__(self, scheduler_name: str, tallies: PluginTallies) -> None:
        self.unsettled = 0
        self._name = scheduler_name
        self._tallies = tallies

    def settle(self) -> None:
        """Count the unsettled failures."""
        if self.unsettled:
            self._tallies.volume_errors.add(
                (VolumeSchedulingStage.PREDICATE.value,), self.unsettled
            )
            self.unsettled = 0

    def resource_claim_create_requested(self, *, is_success: bool) -> None:
        """Count a claim."""
        self._tallies.claim_creates.add(("success" if is_success else "failure",))

    def binding_conditions_awaited(
        self, driver: str, status: BindingConditionsStatus, seconds: float
    ) -> None:
        """Observe how long the pod waited for a device."""
        self._tallies.binding_waits.observe(seconds, (self._name, driver, status.value))

    def binding_conditions_used(self, driver: str, status: BindingConditionsStatus) -> None:
        """Count a device."""
        self._tallies.binding_conditions.add((self._name, driver, status.value))

    def volume_scheduling_failed(self, stage: VolumeSchedulingStage) -> None:
        """Count a failure; in filtering only once the cycle continues."""
        if stage is VolumeSchedulingStage.PREDICATE:
            self.unsettled += 1
        else:
            self._tallies.volume_errors.add((stage.value,))
