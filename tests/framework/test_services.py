from __future__ import annotations

from kubesched.framework.services import (
    BindingConditionsStatus,
    PluginObserver,
    VolumeSchedulingStage,
)


def test_every_method_may_be_left_out() -> None:
    """An observer that overrides nothing takes every call."""
    nobody = PluginObserver()
    nobody.resource_claim_create_requested(is_success=True)
    nobody.binding_conditions_awaited("driver", BindingConditionsStatus.SUCCESS, 1.0)
    nobody.binding_conditions_used("driver", BindingConditionsStatus.SUCCESS)
    nobody.volume_scheduling_failed(VolumeSchedulingStage.BIND)
