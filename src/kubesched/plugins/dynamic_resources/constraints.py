"""Constraints on the devices of several requests of a claim.

Upstream: staging/src/k8s.io/dynamic-resource-allocation/structured/internal/incubating/
          {allocator_incubating,constraint}.go (v1.36)
Reads:    device.attributes
Differs:  nothing.
"""

from collections.abc import Iterable
from typing import Protocol

from kubesched.api.resource import Device, DeviceAttribute, DeviceConstraint
from kubesched.plugins.dynamic_resources.pools import DeviceID


class Constraint(Protocol):
    """A constraint, with the devices chosen so far."""

    def add(self, request: str, subrequest: str, device: Device, device_id: DeviceID) -> bool:
        """Add the device if the constraint allows it; return whether it does."""
        ...

    def remove(self, request: str, subrequest: str, device: Device, device_id: DeviceID) -> None:
        """Undo one successful `add`."""
        ...


def constraint_of(spec: DeviceConstraint) -> Constraint | None:
    """Return the constraint, or None if its kind is unknown."""
    if spec.match_attribute is not None:
        return MatchAttribute(spec.match_attribute, spec.requests)
    if spec.distinct_attribute is not None:
        return DistinctAttribute(spec.distinct_attribute, spec.requests)
    return None


class _AttributeConstraint:
    """Applies to the requests it names, or to all if it names none."""

    def __init__(self, attribute_name: str, requests: Iterable[str]) -> None:
        self._attribute_name = attribute_name
        self._requests = frozenset(requests)
        self._devices = 0

    def _applies(self, request: str, subrequest: str) -> bool:
        if not self._requests or request in self._requests:
            return True
        return bool(subrequest) and f"{request}/{subrequest}" in self._requests


class MatchAttribute(_AttributeConstraint):
    """Requires that all devices have the attribute, with equal values."""

    _attribute: DeviceAttribute | None = None

    def add(self, request: str, subrequest: str, device: Device, device_id: DeviceID) -> bool:
        """Add the device if it is the first or has the first one's value."""
        if not self._applies(request, subrequest):
            return True
        attribute = lookup_attribute(device, device_id, self._attribute_name)
        if attribute is None:
            return False
        if self._devices == 0:
            self._attribute = attribute
        elif self._attribute is None or not _is_same(attribute, self._attribute):
            return False
        self._devices += 1
        return True

    def remove(self, request: str, subrequest: str, device: Device, device_id: DeviceID) -> None:
        """Remove a device; without devices, any value is allowed."""
        if self._applies(request, subrequest):
            self._devices -= 1


class DistinctAttribute(_AttributeConstraint):
    """Requires that all devices have the attribute, with different values.

    As upstream, only the last device of each request is compared.
    """

    def __init__(self, attribute_name: str, requests: Iterable[str]) -> None:
        super().__init__(attribute_name, requests)
        self._attributes: dict[str, DeviceAttribute] = {}

    def add(self, request: str, subrequest: str, device: Device, device_id: DeviceID) -> bool:
        """Add the device if no recorded value is equal."""
        if not self._applies(request, subrequest):
            return True
        attribute = lookup_attribute(device, device_id, self._attribute_name)
        if attribute is None:
            return False
        if self._devices and not all(
            _is_different(attribute, other) for other in self._attributes.values()
        ):
            return False
        self._attributes[request] = attribute
        self._devices += 1
        return True

    def remove(self, request: str, subrequest: str, device: Device, device_id: DeviceID) -> None:
        """Remove the request's value."""
        if self._applies(request, subrequest):
            self._attributes.pop(request, None)
            self._devices -= 1


def lookup_attribute(device: Device, device_id: DeviceID, name: str) -> DeviceAttribute | None:
    """Return an attribute by its qualified name; the driver's own may lack the domain."""
    found = device.attributes.get(name)
    if found is not None:
        return found
    domain, slash, identifier = name.partition("/")
    if not slash or domain != device_id[0]:
        return None
    return device.attributes.get(identifier)


def _scalar(attribute: DeviceAttribute) -> tuple[str, object] | None:
    """Return the kind and value of an attribute, or None if the kind is not comparable."""
    if attribute.string_value is not None:
        return "string", attribute.string_value
    if attribute.int_value is not None:
        return "int", attribute.int_value
    if attribute.bool_value is not None:
        return "bool", attribute.bool_value
    if attribute.version_value is not None:
        return "version", attribute.version_value
    return None


def _is_same(attribute: DeviceAttribute, other: DeviceAttribute) -> bool:
    scalar = _scalar(attribute)
    return scalar is not None and scalar == _scalar(other)


def _is_different(attribute: DeviceAttribute, other: DeviceAttribute) -> bool:
    scalar = _scalar(attribute)
    return scalar is not None and scalar != _scalar(other)
