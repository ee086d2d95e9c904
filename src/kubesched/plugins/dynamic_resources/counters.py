"""Shared counters of a pool, which its devices consume.

Upstream: staging/src/k8s.io/dynamic-resource-allocation/structured/internal/incubating/
          allocator_incubating.go, checkAvailableCounters (v1.36)
Reads:    device.consumesCounters, slice.sharedCounters
Differs:  nothing. As upstream, pools of the same name share their counters even if their drivers
          differ, and the counters of a device stay consumed if it is rejected for another reason.
"""

from collections.abc import Callable

from kubesched.api.quantity import nano_value
from kubesched.api.resource import Device
from kubesched.plugins.dynamic_resources.pools import DeviceID, Pool

Amounts = dict[str, dict[str, int]]
"""Counter set -> counter -> amount in 10^-9 units."""


class AvailableCounters:
    """The counters that allocated devices leave; computed once per pool name."""

    def __init__(self, is_allocated: Callable[[DeviceID], bool]) -> None:
        self._is_allocated = is_allocated
        self._pools: dict[str, Amounts] = {}

    def of(self, pool: Pool) -> Amounts:
        """Return what is left in the pool; may be negative."""
        name = pool.id[1]
        if name not in self._pools:
            self._pools[name] = self._compute(pool)
        return self._pools[name]

    def _compute(self, pool: Pool) -> Amounts:
        available = {
            name: {key: nano_value(counter.value) for key, counter in counters.counters.items()}
            for name, counters in pool.counter_sets.items()
        }
        for item in (*pool.slices, *pool.slices_elsewhere):
            for device in item.spec.devices:
                device_id = (item.spec.driver, item.spec.pool.name, device.name)
                if self._is_allocated(device_id):
                    _subtract_known(available, device)
        return available


def _subtract_known(available: Amounts, device: Device) -> None:
    for consumption in device.consumes_counters:
        amounts = available.get(consumption.counter_set, {})
        for name, counter in consumption.counters.items():
            if name in amounts:
                amounts[name] -= nano_value(counter.value)


class ConsumedCounters:
    """The counters that the devices of one search consume."""

    def __init__(self, available: AvailableCounters) -> None:
        self._available = available
        self._pools: dict[str, Amounts] = {}

    def take(self, pool: Pool, device: Device) -> bool:
        """Consume the device's counters if all suffice; return whether they do."""
        self._book(pool, device, 1)
        consumed = self._pools[pool.id[1]]
        for set_name, amounts in self._available.of(pool).items():
            taken = consumed.get(set_name, {})
            if any(left < taken.get(name, 0) for name, left in amounts.items()):
                self.give_back(pool, device)
                return False
        return True

    def give_back(self, pool: Pool, device: Device) -> None:
        """Undo one successful `take`."""
        self._book(pool, device, -1)

    def _book(self, pool: Pool, device: Device, sign: int) -> None:
        consumed = self._pools.setdefault(pool.id[1], {})
        for consumption in device.consumes_counters:
            amounts = consumed.setdefault(consumption.counter_set, {})
            for name, counter in consumption.counters.items():
                amounts[name] = amounts.get(name, 0) + sign * nano_value(counter.value)
