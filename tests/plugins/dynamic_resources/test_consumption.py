"""Consumable capacity: what a request uses, and whether policies allow it."""

from __future__ import annotations

import pytest

from kubesched.api.quantity import Quantity
from kubesched.api.resource import (
    CapacityRequestPolicy,
    CapacityRequestPolicyRange,
    CapacityRequirements,
    DeviceCapacity,
)
from kubesched.plugins.dynamic_resources.consumption import consumed_capacity, has_capacity
from tests.plugins.dynamic_resources.objects import device

STEPS = CapacityRequestPolicy(
    default="2Gi", valid_range=CapacityRequestPolicyRange(min="1Gi", max="8Gi", step="1Gi")
)
VALUES = CapacityRequestPolicy(default="1Gi", valid_values=("1Gi", "2Gi", "4Gi"))
FREE = CapacityRequestPolicy(default="1Gi")


@pytest.mark.parametrize(
    ("policy", "wanted", "consumed", "allowed"),
    [
        pytest.param(None, None, "10Gi", True, id="everything"),
        pytest.param(None, "3Gi", "3Gi", True, id="as-asked"),
        pytest.param(None, "11Gi", "11Gi", False, id="too-much"),
        pytest.param(FREE, None, "1Gi", True, id="default"),
        pytest.param(FREE, "5Gi", "5Gi", True, id="no-limits"),
        pytest.param(STEPS, None, "2Gi", True, id="default-in-range"),
        pytest.param(STEPS, "512Mi", "1Gi", True, id="below-the-range"),
        pytest.param(STEPS, "2500Mi", "3Gi", True, id="up-to-the-next-step"),
        pytest.param(STEPS, "3Gi", "3Gi", True, id="on-a-step"),
        pytest.param(STEPS, "9Gi", "9Gi", False, id="above-the-range"),
        pytest.param(VALUES, "1500Mi", "2Gi", True, id="up-to-the-next-value"),
        pytest.param(VALUES, "5Gi", "5Gi", False, id="above-all-values"),
    ],
)
def test_policies(
    policy: CapacityRequestPolicy | None, wanted: Quantity | None, consumed: str, allowed: bool
) -> None:
    """Requests are rounded up by the policy, then checked against policy and capacity."""
    shared = device("d0", capacity={"memory": DeviceCapacity(value="10Gi", request_policy=policy)})
    need = None if wanted is None else CapacityRequirements(requests={"memory": wanted})
    assert {"memory": consumed} == consumed_capacity(need, shared)
    assert allowed == has_capacity(need, shared, {}, {})


def test_capacity_that_a_device_lacks() -> None:
    """A device without a requested capacity is excluded."""
    need = CapacityRequirements(requests={"bandwidth": 1})
    assert not has_capacity(need, device("d0"), {}, {})


def test_what_others_take_counts() -> None:
    """Allocated and allocating amounts add up."""
    shared = device("d0", capacity={"memory": DeviceCapacity(value=10)})
    need = CapacityRequirements(requests={"memory": 4})
    nano = 10**9
    assert has_capacity(need, shared, {"memory": 3 * nano}, {"memory": 3 * nano})
    assert not has_capacity(need, shared, {"memory": 3 * nano}, {"memory": 4 * nano})
