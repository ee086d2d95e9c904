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
    """What is remembered of the devices chosen so far."""

    def add(self, request: str, subrequest: str, device: Device, device_id: DeviceID) -> bool:
        """Take the device in, if the constraint allows; whether it did."""
        ...

    def remove(self, request: str, subrequest: str, device: Device, device_id: DeviceID) -> None:
        """Undo one successful `add`."""
        ...


def constraint_of(spec: DeviceConstraint) -> Constraint | None:
    """The constraint, None for one of an unknown kind."""
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
    """All devices have the attribute, with the same value."""

    _attribute: DeviceAttribute | None = None

    def add(self, request: str, subrequest: str, device: Device, device_id: DeviceID) -> bool:
        """Take the device in if it is the first or has the first one's value."""
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
        """Forget one device; after the last one, any value may come."""
        if self._applies(request, subrequest):
            self._devices -= 1


class DistinctAttribute(_AttributeConstraint):
    """All devices have the attribute, with different values.

    Values are remembered by request, so of a request for several devices only the last one's is.
    """

    def __init__(self, attribute_name: str, requests: Iterable[str]) -> None:
        super().__init__(attribute_name, requests)
        self._attributes: dict[str, DeviceAttribute] = {}

    def add(self, request: str, subrequest: str, device: Device, device_id: DeviceID) -> bool:
        """Take the device in if no remembered value is the same."""
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
        """Forget what is remembered of the request."""
        if self._applies(request, subrequest):
            self._attributes.pop(request, None)
            self._devices -= 1


def lookup_attribute(device: Device, device_id: DeviceID, name: str) -> DeviceAttribute | None:
    """The attribute with a fully qualified name; the driver's own need no domain."""
    found = device.attributes.get(name)
    if found is not None:
        return found
    domain, slash, identifier = name.partition("/")
    if not slash or domain != device_id[0]:
        return None
    return device.attributes.get(identifier)


def _scalar(attribute: DeviceAttribute) -> tuple[str, object] | None:
    """The kind and the value of an attribute, None if it is of a kind that cannot be compared."""
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
