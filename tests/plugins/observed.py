"""An observer of plugins that writes down what it is told."""

from __future__ import annotations

from kubesched.framework.plugin_observer import (
    BindingConditionsStatus,
    PluginObserver,
    VolumeSchedulingStage,
)


class Observed(PluginObserver):
    """Writes everything down.

    Attributes:
        told: What was told, in order.
    """

    def __init__(self) -> None:
        self.told: list[tuple[object, ...]] = []

    def resource_claim_create_requested(self, *, is_success: bool) -> None:
        """Write it down."""
        self.told.append(("create", is_success))

    def binding_conditions_awaited(
        self, driver: str, status: BindingConditionsStatus, seconds: float
    ) -> None:
        """Write it down."""
        self.told.append(("awaited", driver, status.value, seconds))

    def binding_conditions_used(self, driver: str, status: BindingConditionsStatus) -> None:
        """Write it down."""
        self.told.append(("used", driver, status.value))

    def volume_scheduling_failed(self, stage: VolumeSchedulingStage) -> None:
        """Write it down."""
        self.told.append(("volume", stage.value))
