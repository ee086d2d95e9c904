"""Patched objects as text."""

from __future__ import annotations

from kubesched.apiserver.patched_text import merged_text, operated_text
from kubesched.apiserver.resources import RESOURCES

CONFIG_MAPS = RESOURCES.find("", "v1", "configmaps")
CHANGED = {
    "kind": "ConfigMap",
    "apiVersion": "v1",
    "metadata": {"labels": {"b": "<", "a": "1"}, "name": "c"},
    "data": {"z": "1", "a": "2"},
}


def test_what_a_merge_does_not_touch_keeps_its_order() -> None:
    """Objects that the patch goes through are sorted, others have the order of their type."""
    assert CONFIG_MAPS is not None
    expected = (
        '{"apiVersion":"v1","data":{"a":"2","z":"1"},"kind":"ConfigMap",'
        '"metadata":{"name":"c","labels":{"a":"1","b":"\\u003c"}}}'
    )
    assert expected == merged_text(CONFIG_MAPS, CHANGED, {"data": {"z": "1"}})
    sorted_too = expected.replace(
        '"name":"c","labels":{"a":"1","b":"\\u003c"}', '"labels":{"a":"1","b":"\\u003c"},"name":"c"'
    )
    assert sorted_too == merged_text(CONFIG_MAPS, CHANGED, {"metadata": {"name": "c"}})


def test_operations_touch_what_they_lead_through() -> None:
    """Every object on the way of an operation is sorted."""
    assert CONFIG_MAPS is not None
    operations = [{"op": "add", "path": "/metadata/labels/a~1b", "value": "1"}, "odd"]
    assert '"metadata":{"labels":' in operated_text(CONFIG_MAPS, CHANGED, operations)
    assert '"metadata":{"name":' in operated_text(CONFIG_MAPS, CHANGED, [{"path": "/data/a"}])
    assert '"metadata":{"name":' in operated_text(CONFIG_MAPS, CHANGED, None)
