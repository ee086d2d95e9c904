"""Fields that nobody knows or that stand twice are found, in the order of the body."""

from __future__ import annotations

import json
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from kubesched.apiserver.field_validation import patch_problems, problems, warnings_of
from kubesched.apiserver.resource import Resource

from .verdicts import resource_of

_YAML = """apiVersion: v1
kind: ConfigMap
metadata:
  name: a
  name: b
  x: 1
data:
  a: b
  a: c
zz: 1
data: {}
"""


def _unknown(*paths: str) -> list[str]:
    return [f'unknown field "{path}"' for path in paths]


def _twice(*paths: str) -> list[str]:
    return [f'duplicate field "{path}"' for path in paths]


@pytest.mark.parametrize(
    ("kind", "text", "expected"),
    [
        pytest.param("ConfigMap", '{"data": {"a": "1"}}', [], id="nothing"),
        pytest.param(
            "ConfigMap",
            '{"metadata": {"labls": {}}, "data": {}, "nosuch": 1}',
            _unknown("metadata.labls", "nosuch"),
            id="unknown",
        ),
        pytest.param(
            "ConfigMap", '{"data": {"a": "1", "a": "2"}}', _twice("data.a"), id="in a map"
        ),
        pytest.param(
            "ConfigMap",
            '{"data": {"a": "1"}, "data": {"b": "1", "b": "2"}}',
            _twice("data", "data.b"),
            id="in what stands twice itself",
        ),
        pytest.param(
            "ConfigMap",
            '{"x": {"a": 1, "a": 2}, "data": {"a": "1", "a": "1"}, "x": 1}',
            _unknown("x") + _twice("data.a"),
            id="not in what is unknown",
        ),
        pytest.param(
            "Pod",
            '{"spec": {"containers": [{"name": "a", "name": "b", "resource": {}}]}}',
            _twice("spec.containers[0].name") + _unknown("spec.containers[0].resource"),
            id="in a list",
        ),
        pytest.param(
            "Pod",
            '{"metadata": {"managedFields": [{"fieldsV1": {"a": {}, "a": {}}}], "name": "a"}}',
            [],
            id="not in what is kept as it is",
        ),
        pytest.param(
            "Pod",
            '{"metadata": {"creationTimestamp": null, "creationTimestamp": null}}',
            _twice("metadata.creationTimestamp"),
            id="null",
        ),
        pytest.param("Pod", '{"spec": {"nodeName": 1, "x": 1}}', [], id="what does not fit"),
    ],
)
def test_bodies(kind: str, text: str, expected: list[str]) -> None:
    """A real server tells of a body just this."""
    assert expected == problems(resource_of(kind), json.loads(text), text.encode())


def test_yaml() -> None:
    """Keys of YAML are told with their lines, one by one where they are only warned of."""
    found = problems(resource_of("ConfigMap"), yaml.safe_load(_YAML), _YAML.encode())
    lines = [
        'line 5: key "name" already set in map',
        'line 9: key "a" already set in map',
        'line 11: key "data" already set in map',
    ]
    shown = "\n".join(f"  {line}" for line in lines)
    assert [f"yaml: unmarshal errors:\n{shown}", *_unknown("metadata.x", "zz")] == found
    assert [*lines, *_unknown("metadata.x", "zz")] == warnings_of(found)


def test_merge_patches() -> None:
    """Whatever stands twice in a patch is told, and then what is unknown in the outcome."""
    patch = b'{"x": 1, "dta": {"a": 1, "a": 2}, "data": {"b": "1", "b": "2"}}'
    changed = {"metadata": {"name": "a"}, "x": 1, "dta": {"a": 2}, "data": {"b": "2"}}
    expected = [*_twice("dta.a", "data.b"), *_unknown("dta", "x")]
    resource = resource_of("ConfigMap")
    assert expected == patch_problems(resource, changed, patch, is_merged=False)
    assert expected == patch_problems(resource, changed, patch, is_merged=True)


def test_json_patches() -> None:
    """Of operations both are told as such."""
    patch = b'[{"op": "add", "path": "/data/a", "value": "1", "value": "2", "foo": 3}]'
    found = patch_problems(resource_of("ConfigMap"), {"data": {"a": "2"}}, patch, is_merged=False)
    expected = [
        'json patch duplicate field "[0].value"',
        'json patch unknown field "[0].foo"',
    ]
    assert expected == found


def test_kinds_that_are_not_known_have_no_problems() -> None:
    """Nothing can be said of their fields."""
    widgets = Resource("widgets", "Widget", "example.com", "v1")
    assert [] == problems(widgets, {"a": 1}, b'{"a": 1, "a": 1}')


_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=3),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["name", "data", "metadata", "spec", "x"]), inner)
    ),
    max_leaves=8,
)


@pytest.mark.slow
@given(st.dictionaries(st.sampled_from(["metadata", "data", "immutable", "x"]), _VALUES))
def test_bodies_in_which_nothing_stands_twice_have_unknown_fields_only(body: Any) -> None:
    """Both ways to find unknown fields agree."""
    resource = resource_of("ConfigMap")
    text = json.dumps(body)
    assert all(one.startswith("unknown") for one in problems(resource, body, text.encode()))
