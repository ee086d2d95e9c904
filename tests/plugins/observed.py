"""An observer of plugins that records its calls."""

from __future__ import annotations

from kubesched.framework.services import (
    BindingConditionsStatus,
    PluginObserver,
    VolumeSchedulingStage,
)


class Observed(PluginObserver):
    """Records every call.

    Attributes:
        calls: The calls, in order.
    """

    def __init__(self) -> None:
        self.calls: list[tuple[object, ...]] = []

    def resource_claim_create_requested(self, *, is_success: bool) -> None:
        """Record the call."""
        self.calls.append(("create", is_success))

    def binding_conditions_awaited(
        self, driver: str, status: BindingConditionsStatus, seconds: float
    ) -> None:
        """Record the call."""
        self.calls.append(("awaited", driver, status.value, seconds))

    def binding_conditions_used(self, driver: str, status: BindingConditionsStatus) -> None:
        """Record the call."""
        self.calls.append(("used", driver, status.value))

    def volume_scheduling_failed(self, stage: VolumeSchedulingStage) -> None:
        """Record the call."""
        self.calls.append(("volume", stage.value))
