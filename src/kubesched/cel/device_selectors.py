"""Compile device selectors, which are CEL expressions, and evaluate them on devices.

Upstream: staging/src/k8s.io/dynamic-resource-allocation/cel/{compile,cache}.go (v1.36)
Reads:    device.attributes, device.capacity, device.allowMultipleAllocations; the driver's name
Differs:  list-typed attributes are not supported (gate DRAListTypeAttributes, off in 1.36).
"""

from collections.abc import Callable, Mapping
from functools import lru_cache, partial

from kubesched.api.quantity import nano_value
from kubesched.api.resource import Device, DeviceAttribute
from kubesched.cel.checker import TypeCheckError, check
from kubesched.cel.declarations import ANY, BOOL, QUANTITY, STRING, Type, map_of
from kubesched.cel.device_values import CelQuantity, parse_semver
from kubesched.cel.evaluator import BUDGET, Budget, Evaluation, plan
from kubesched.cel.parser import parse
from kubesched.cel.syntax import CelCompileError
from kubesched.cel.values import CelError, CostLimitExceededError, DefaultMap, type_name

_DEVICE = Type("kubernetes.DRADevice")
_OBJECT_TYPES = {
    _DEVICE.name: {
        "driver": STRING,
        "allowMultipleAllocations": BOOL,
        "attributes": map_of(STRING, map_of(STRING, ANY)),
        "capacity": map_of(STRING, map_of(STRING, QUANTITY)),
    }
}

# Go's errors of converting a value to bool that depend on the value's type.
_NOT_A_BOOL = {
    "string": "unsupported native conversion from string to 'bool'",
    "int": "unsupported type conversion from 'int' to bool",
    "uint": "unsupported type conversion from 'uint' to bool",
    "double": "type conversion error from Double to 'bool'",
    "list": "type conversion error from list to 'bool'",
    "map": "type conversion error from map to 'bool'",
    "kubernetes.Semver": "type conversion error from 'Semver' to 'bool'",
    "kubernetes.Quantity": "type conversion error from 'Quantity' to 'bool'",
}

_ITERATIONS_MAX = 1_000_000

DeviceVariables = Mapping[str, object]


class DeviceSelectorError(ValueError):
    """A selector does not compile; the message is upstream's."""


DeviceSelector = Callable[[DeviceVariables], bool]
"""Whether an expression is true of a device (see `device_variables`). Raises CelError."""


@lru_cache(1024)
def compile_selector(expression: str) -> DeviceSelector:
    """Compile an expression. Raises DeviceSelectorError."""
    try:
        node = parse(expression)
        result = check(expression, node, {"device": _DEVICE}, _OBJECT_TYPES)
        evaluate = plan(node)
    except (CelCompileError, TypeCheckError) as error:
        raise DeviceSelectorError(f"compilation failed: {error}") from error
    except RecursionError as error:
        raise DeviceSelectorError("compilation failed: expression is too deep") from error
    if result not in (BOOL, ANY):
        raise DeviceSelectorError(f"must evaluate to bool or the unknown type, not {result}")
    return partial(_matches, evaluate)


def _matches(evaluate: Evaluation, device: DeviceVariables) -> bool:
    try:
        result = evaluate({"device": device, BUDGET: Budget(_ITERATIONS_MAX)})
    except CostLimitExceededError as error:
        raise CelError(str(error)) from error
    except RecursionError as error:
        raise CelError("expression is too deep") from error
    if isinstance(result, bool):
        return result
    kind = type_name(result)
    reason = _NOT_A_BOOL.get(kind, f"type conversion error from '{kind}' to 'bool'")
    raise CelError(f"CEL result of type {kind} could not be converted to bool: {reason}")


def device_variables(
    driver: str, device: Device, *, allow_multiple_allocations: bool | None = None
) -> DeviceVariables:
    """Return the value of the variable `device`; the driver is the domain of names without one.

    `allow_multiple_allocations` replaces the device's own value unless None. Raises CelError for an
    attribute of an unknown kind and for an invalid version.
    """
    shared = device.allow_multiple_allocations or False
    return {
        "driver": driver,
        "allowMultipleAllocations": (
            shared if allow_multiple_allocations is None else allow_multiple_allocations
        ),
        "attributes": _by_domain(
            driver, {name: _value(name, attr) for name, attr in device.attributes.items()}
        ),
        "capacity": _by_domain(
            driver,
            {
                name: CelQuantity(nano_value(capacity.value))
                for name, capacity in device.capacity.items()
            },
        ),
    }


def qualified_name(name: str, driver: str) -> tuple[str, str]:
    """Split a name into domain and identifier; the default domain is the driver's name."""
    domain, slash, identifier = name.partition("/")
    return (domain, identifier) if slash else (driver, name)


def _by_domain(driver: str, values: Mapping[str, object]) -> DefaultMap:
    domains: dict[object, dict[object, object]] = {}
    for name, value in values.items():
        domain, identifier = qualified_name(name, driver)
        domains.setdefault(domain, {})[identifier] = value
    return DefaultMap(domains)


def _value(name: str, attribute: DeviceAttribute) -> object:
    for value in (attribute.int_value, attribute.bool_value, attribute.string_value):
        if value is not None:
            return value
    if attribute.version_value is None:
        raise CelError(f"attribute {name}: unsupported attribute value")
    try:
        return parse_semver(attribute.version_value)
    except CelError as error:
        raise CelError(f"attribute {name}: parse semantic version: {error}") from error
