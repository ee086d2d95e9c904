"""Which class backs an extended resource."""

from __future__ import annotations

import pytest

from kubesched.api.meta import ObjectMeta
from kubesched.api.resource import DeviceClass, DeviceClassSpec
from kubesched.framework.dra.devices import (
    DeviceClasses,
    device_classes_of,
    is_dra_extended_resource_name,
)
from kubesched.snapshot.objects import ObjectStore

PREFIX = "deviceclass.resource.kubernetes.io/"


def named(name: str, resource: str | None = None, created: str | None = None) -> DeviceClass:
    """A class."""
    return DeviceClass(
        metadata=ObjectMeta(name=name, creation_timestamp=created),
        spec=DeviceClassSpec(extended_resource_name=resource),
    )


@pytest.mark.parametrize(
    ("name", "is_one"),
    [
        pytest.param("example.com/gpu", True, id="extended"),
        pytest.param(PREFIX + "gpu", True, id="implicit"),
        pytest.param("cpu", False, id="native"),
        pytest.param("kubernetes.io/x", False, id="own-domain"),
        pytest.param("requests.example.com/gpu", False, id="quota"),
    ],
)
def test_names_that_devices_can_stand_for(name: str, is_one: bool) -> None:
    """Extended resources, and the implicit names of classes."""
    assert is_one == is_dra_extended_resource_name(name)


def test_explicit_and_implicit_names() -> None:
    """A class backs the resource it names and the one named after it."""
    classes = DeviceClasses([named("gpu", "example.com/gpu"), named("net")])
    assert {"example.com/gpu", PREFIX + "gpu", PREFIX + "net"} == set(classes.by_resource)


def test_the_newer_class_takes_a_resource_over() -> None:
    """Then the first by name; a later loser does not get its implicit name either."""
    older, newer = "2026-01-01T00:00:00Z", "2026-02-01T00:00:00Z"
    classes = DeviceClasses([named("a", "x.com/x", older), named("b", "x.com/x", newer)])
    assert "b" == classes.by_resource["x.com/x"].metadata.name
    assert {"x.com/x", PREFIX + "a", PREFIX + "b"} == set(classes.by_resource)
    classes = DeviceClasses([named("a", "x.com/x", newer), named("b", "x.com/x", older)])
    assert "a" == classes.by_resource["x.com/x"].metadata.name
    assert {"x.com/x", PREFIX + "a"} == set(classes.by_resource)
    assert "b" in classes.by_name
    same = DeviceClasses([named("b", "x.com/x"), named("a", "x.com/x")])
    assert "a" == same.by_resource["x.com/x"].metadata.name


def test_classes_are_remembered_until_one_changes() -> None:
    """The cached classes are used until one changes."""
    store = ObjectStore()
    store.put(named("gpu"))
    before = device_classes_of(store)
    assert before is device_classes_of(store)
    store.put(named("net"))
    assert "net" in device_classes_of(store).by_name
