"""Which devices the selectors of classes and requests choose.

Upstream: staging/src/k8s.io/dynamic-resource-allocation/structured/internal/incubating/
          allocator_incubating.go, selectorsMatch (v1.36)
Reads:    device.attributes, device.capacity, selectors
Differs:  what a selector says of a device is remembered as long as the device does not change.
"""

from collections.abc import Iterable

from kubesched.api.cel.values import CelError
from kubesched.api.device_selectors import (
    DeviceSelectorError,
    DeviceVariables,
    compile_selector,
    device_variables,
)
from kubesched.api.resource import Device, DeviceSelector
from kubesched.plugins.dynamic_resources.requests import AllocationError


class DeviceMatcher:
    """Answers of selectors, per device object; drop it when slices change."""

    def __init__(self) -> None:
        self._variables: dict[int, DeviceVariables | CelError] = {}
        self._answers: dict[str, dict[int, bool | CelError]] = {}

    def matches(
        self, selectors: Iterable[DeviceSelector], driver: str, device: Device, owner: str
    ) -> bool:
        """Whether all selectors choose the device.

        Args:
            selectors: Of a class or of a request.
            driver: The device's driver.
            device: The device; the same object as long as it does not change.
            owner: `class x` or `claim ns/x`, for error texts.

        Raises AllocationError if a selector cannot be compiled or evaluated.
        """
        for at, selector in enumerate(selectors):
            where = f"{owner}: selector #{at}: "
            if selector.cel is None:
                raise AllocationError(f"{where}CEL expression empty (unsupported selector type?)")
            answer = self._answer(selector.cel.expression, driver, device, where)
            if isinstance(answer, CelError):
                raise AllocationError(f"{where}CEL runtime error: {answer}") from answer
            if not answer:
                return False
        return True

    def _answer(self, expression: str, driver: str, device: Device, where: str) -> bool | CelError:
        answers = self._answers.get(expression)
        if answers is None:
            try:
                compile_selector(expression)
            except DeviceSelectorError as error:
                raise AllocationError(f"{where}CEL compile error: {error}") from error
            answers = self._answers[expression] = {}
        answer = answers.get(id(device))
        if answer is None:
            answer = answers[id(device)] = self._ask(expression, driver, device)
        return answer

    def _ask(self, expression: str, driver: str, device: Device) -> bool | CelError:
        try:
            return compile_selector(expression).matches(self._variables_of(driver, device))
        except CelError as error:
            return error

    def _variables_of(self, driver: str, device: Device) -> DeviceVariables:
        known = self._variables.get(id(device))
        if known is None:
            try:
                known = device_variables(driver, device)
            except CelError as error:
                known = error
            self._variables[id(device)] = known
        if isinstance(known, CelError):
            raise known
        return known
