"""DeviceMatcher: evaluates the selectors of classes and requests on devices.

Upstream: staging/src/k8s.io/dynamic-resource-allocation/structured/internal/incubating/
          allocator_incubating.go, selectorsMatch (v1.36)
Reads:    device.attributes, device.capacity, selectors
Differs:  the result of a selector is cached as long as the device does not change.
"""

from __future__ import annotations

from collections.abc import Iterable

from kubesched import cel
from kubesched.api.resource import Device, DeviceSelector
from kubesched.cel.values import CelError
from kubesched.plugins.dynamic_resources.requests import AllocationError


class _MatchedDevice:
    """A device of a driver, with cached results of selectors."""

    __slots__ = ("answers", "device", "driver", "variables")

    def __init__(self, driver: str, device: Device) -> None:
        self.driver = driver
        self.device = device
        self.variables: cel.DeviceVariables | None = None
        self.answers: dict[str, bool | str] = {}

    def evaluate(self, expression: str) -> bool | str:
        """Return the result of a valid selector, or what its evaluation failed with."""
        try:
            if self.variables is None:
                self.variables = cel.device_variables(self.driver, self.device)
            return cel.compile_selector(expression).matches(self.variables)
        except CelError as error:
            return str(error)


class DeviceMatcher:
    """Caches results of selectors per driver and Device object; drop it when slices change.

    The driver is part of the key because decoded objects share equal parts, so that devices of two
    drivers may be one object. The key has the object's id; keeping the object keeps the id unique.
    """

    def __init__(self) -> None:
        self._devices: dict[tuple[str, int], _MatchedDevice] = {}

    def matches(
        self, selectors: Iterable[DeviceSelector], driver: str, device: Device, owner: str
    ) -> bool:
        """Return whether all selectors match the device.

        The device is the same object as long as it does not change; `owner` is `class x` or `claim
        ns/x`, for errors.

        Raises:
            AllocationError: A selector cannot be compiled or evaluated.
        """
        for at, selector in enumerate(selectors):
            where = f"{owner}: selector #{at}: "
            if selector.cel is None:
                raise AllocationError(f"{where}CEL expression empty (unsupported selector type?)")
            answer = self._answer(selector.cel.expression, driver, device, where)
            if isinstance(answer, str):
                raise AllocationError(f"{where}CEL runtime error: {answer}")
            if not answer:
                return False
        return True

    def _answer(self, expression: str, driver: str, device: Device, where: str) -> bool | str:
        key = driver, id(device)
        matched = self._devices.get(key)
        if matched is None:
            matched = self._devices[key] = _MatchedDevice(driver, device)
        answer = matched.answers.get(expression)
        if answer is None:
            try:
                cel.compile_selector(expression)
            except cel.DeviceSelectorError as error:
                raise AllocationError(f"{where}CEL compile error: {error}") from error
            answer = matched.answers[expression] = matched.evaluate(expression)
        return answer
