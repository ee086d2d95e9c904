"""Owners, immutability and absent fields."""

import msgspec
import pytest

from kubesched.api.core import Pod, Toleration
from kubesched.api.meta import ObjectMeta, OwnerReference, controller_of


def test_controller() -> None:
    """Only an owner reference marked as controller counts; None without one."""
    other, controller = OwnerReference(name="a"), OwnerReference(name="b", controller=True)
    meta = ObjectMeta(owner_references=(other, controller))
    assert controller is controller_of(meta)
    assert controller_of(ObjectMeta(owner_references=(other,))) is None


def test_objects_are_frozen_and_not_tracked() -> None:
    """Objects are immutable."""
    pod = Pod()
    with pytest.raises(AttributeError):
        pod.kind = "Node"  # type: ignore[misc]  # that is the point
    assert not Pod.__struct_config__.gc


def test_absent_and_empty_fields() -> None:
    """The types distinguish null and empty where the scheduler does."""
    empty = msgspec.json.decode(b'{"spec": {"nodeSelector": {}, "priority": 0}}', type=Pod)
    assert {} == empty.spec.node_selector
    assert Pod().spec.node_selector is None
    assert (0, None) == (empty.spec.priority, Pod().spec.priority)
    assert {Toleration(key="a"): 1} == {Toleration(key="a"): 1}
