from __future__ import annotations

from kubesched.framework.plugin_observer import (
    BindingConditionsStatus,
    PluginObserver,
    VolumeSchedulingStage,
    plugin_observer_of,
)
from kubesched.testing.handle import FakeHandle


def test_observer_of_a_handle() -> None:
    """A handle's own observer is found; a handle that has none is as good."""
    handle = FakeHandle()
    handle.plugin_observer = observer = PluginObserver()
    assert observer is plugin_observer_of(handle)
    nobody = plugin_observer_of(object())
    nobody.resource_claim_create_requested(is_success=True)
    nobody.binding_conditions_awaited("driver", BindingConditionsStatus.SUCCESS, 1.0)
    nobody.binding_conditions_used("driver", BindingConditionsStatus.SUCCESS)
    nobody.volume_scheduling_failed(VolumeSchedulingStage.BIND)
