"""What devices consume: shared counters of their pool, and shares of their own capacity.

Upstream: staging/src/k8s.io/dynamic-resource-allocation/structured/internal/incubating/
          {allocator_incubating.go, checkAvailableCounters; consumable_capacity.go} (v1.36)
Reads:    device.consumesCounters, slice.sharedCounters; device.capacity, request.capacity
Differs:  a request of the same amount as the policy's default counts as the default, even if it is
          written differently. As upstream, pools of the same name share their counters even if
          their drivers differ, and the counters of a device stay consumed if it is rejected for
          another reason.
"""

from collections.abc import Callable, Mapping

from kubesched.api.quantity import BINARY_SI, NANO, Amount, Quantity, nano_value
from kubesched.api.resource import (
    CapacityRequestPolicy,
    CapacityRequestPolicyRange,
    CapacityRequirements,
    Device,
    DeviceCapacity,
)
from kubesched.framework.dra.claim_tracker import DeviceID
from kubesched.framework.dra.pools import Pool

_Counters = dict[str, dict[str, int]]
"""Counter set -> counter -> amount in 10^-9 units."""


class AvailableCounters:
    """The counters that allocated devices leave; computed once per pool name."""

    def __init__(self, is_allocated: Callable[[DeviceID], bool]) -> None:
        self._is_allocated = is_allocated
        self._pools: dict[str, _Counters] = {}

    def of(self, pool: Pool) -> _Counters:
        """Return what is left in the pool; may be negative."""
        name = pool.id[1]
        if name not in self._pools:
            self._pools[name] = self._compute(pool)
        return self._pools[name]

    def _compute(self, pool: Pool) -> _Counters:
        available = {
            name: {key: nano_value(counter.value) for key, counter in counters.counters.items()}
            for name, counters in pool.counter_sets.items()
        }
        for item in (*pool.slices, *pool.slices_elsewhere):
            for device in item.spec.devices:
                device_id = (item.spec.driver, item.spec.pool.name, device.name)
                if self._is_allocated(device_id):
                    _consume(available, device, 1)
        return available


class ConsumedCounters:
    """The counters that the devices of one search leave."""

    def __init__(self, available: AvailableCounters) -> None:
        self._available = available
        self._left: dict[str, _Counters] = {}

    def take(self, pool: Pool, device: Device) -> bool:
        """Consume the device's counters if all suffice; return whether they do."""
        name = pool.id[1]
        if name not in self._left:
            available = self._available.of(pool)
            self._left[name] = {key: dict(amounts) for key, amounts in available.items()}
        left = self._left[name]
        _consume(left, device, 1)
        if any(amount < 0 for amounts in left.values() for amount in amounts.values()):
            _consume(left, device, -1)
            return False
        return True

    def suffice(self, pool: Pool, device: Device) -> bool:
        """Whether the counters would suffice if nothing had been taken."""
        return ConsumedCounters(self._available).take(pool, device)

    def give_back(self, pool: Pool, device: Device) -> None:
        """Undo one successful `take`."""
        _consume(self._left[pool.id[1]], device, -1)


def _consume(counters: _Counters, device: Device, times: int) -> None:
    """Subtract what the device consumes of the counters that exist."""
    for consumption in device.consumes_counters:
        amounts = counters.get(consumption.counter_set, {})
        for name, counter in consumption.counters.items():
            if name in amounts:
                amounts[name] -= times * nano_value(counter.value)


# Capacity.

Amounts = Mapping[str, int]
"""Capacity name -> amount in 10^-9 units."""


def consumed_capacity(request: CapacityRequirements | None, device: Device) -> dict[str, Quantity]:
    """Return what an allocation of the device uses of each capacity."""
    requested = {} if request is None else request.requests
    return {
        name: _consumed(requested.get(name), capacity) for name, capacity in device.capacity.items()
    }


def has_capacity(
    request: CapacityRequirements | None, device: Device, allocated: Amounts, allocating: Amounts
) -> bool:
    """Return whether the device has enough capacity left, and its policies allow the request.

    `allocated` are the amounts that allocated claims use, `allocating` those of this search so far.
    """
    if request is not None and not request.requests.keys() <= device.capacity.keys():
        return False
    for name, consumed in consumed_capacity(request, device).items():
        capacity = device.capacity[name]
        amount = nano_value(consumed)
        if _violates(amount, capacity.request_policy):
            return False
        total = allocated.get(name, 0) + allocating.get(name, 0) + amount
        if total > nano_value(capacity.value):
            return False
    return True


def _consumed(requested: Quantity | None, capacity: DeviceCapacity) -> Quantity:
    policy = capacity.request_policy
    if requested is None:
        return capacity.value if policy is None or policy.default is None else policy.default
    if policy is None:
        return requested
    if policy.valid_range is not None and policy.valid_range.min is not None:
        return _round_up_to_range(requested, policy.valid_range, policy.valid_range.min)
    amount = nano_value(requested)
    return next((v for v in policy.valid_values if amount <= nano_value(v)), requested)


def _round_up_to_range(
    requested: Quantity, valid_range: CapacityRequestPolicyRange, least: Quantity
) -> Quantity:
    if nano_value(requested) < nano_value(least):
        return least
    if valid_range.step is None:
        return requested
    start, step = _whole(least), _whole(valid_range.step)
    steps = -(-(_whole(requested) - start) // step)
    return str(Amount(start + step * steps, format=BINARY_SI))


def _violates(amount: int, policy: CapacityRequestPolicy | None) -> bool:
    """Whether the policy forbids the amount."""
    if policy is None:
        return False
    if policy.default is not None and amount == nano_value(policy.default):
        return False
    if policy.valid_range is not None:
        return _violates_range(amount, policy.valid_range)
    return bool(policy.valid_values) and amount not in map(nano_value, policy.valid_values)


def _violates_range(amount: int, valid_range: CapacityRequestPolicyRange) -> bool:
    if valid_range.max is not None and amount > nano_value(valid_range.max):
        return True
    if valid_range.step is None:
        return False
    start = 0 if valid_range.min is None else _whole(valid_range.min)
    return (_round_up(amount) - start) % _whole(valid_range.step) != 0


def _whole(quantity: Quantity) -> int:
    """Return the quantity in whole units, rounded up."""
    return _round_up(nano_value(quantity))


def _round_up(nano: int) -> int:
    return -(-nano // NANO) if nano >= 0 else nano // NANO
