"""Bodies of requests."""

from __future__ import annotations

import json
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubesched.api.yaml_syntax import members
from kubesched.apiserver.decoding import patch_problems, read_object
from kubesched.apiserver.request import ApiRequest
from kubesched.apiserver.resources import RESOURCES
from kubesched.apiserver.schema import decoded
from kubesched.apiserver.status import StatusError
from kubesched.apiserver.values import SchemaError

from .test_decoding_protobuf import body
from .verdicts import resource_of


def read(text: bytes, media_type: str = "application/json") -> object:
    """Read a body that should be a pod."""
    return read_object(ApiRequest("POST", "/", {}, {"content-type": media_type}, text), "Pod")


def test_json_and_yaml() -> None:
    """Equal JSON and YAML give equal objects; an empty body gives an empty object."""
    assert read(b'{"a":1}') == {"a": 1} == read(b"a: 1", "application/yaml")
    assert read(b'{"a":1}', "") == {"a": 1}
    assert read(b"null") == {}


@pytest.mark.parametrize(
    ("text", "media_type", "message"),
    [
        pytest.param(
            b"[]",
            "",
            "json parse error: json: cannot unmarshal array into Go value of type struct { "
            'APIVersion string "json:\\"apiVersion,omitempty\\""; Kind string '
            '"json:\\"kind,omitempty\\"" } (5b5d)',
            id="list",
        ),
        pytest.param(b"7", "", "cannot unmarshal number into Go value", id="number"),
        pytest.param(b"", "", "unexpected end of JSON input (<empty>)", id="empty"),
        pytest.param(
            b"a: [", "application/yaml", "yaml: line 1: did not find expected node", id="yaml"
        ),
        pytest.param(
            b"{}", "application/vnd.kubernetes.protobuf", "not appear to be a protobuf", id="proto"
        ),
    ],
)
def test_invalid_bodies(text: bytes, media_type: str, message: str) -> None:
    """The messages are upstream's."""
    with pytest.raises(StatusError) as caught:
        read(text, media_type)
    assert caught.value.code == 400
    begin = "the object provided is unrecognized (must be of type Pod): "
    assert caught.value.message.startswith(begin)
    assert message in caught.value.message


def test_unknown_media_types() -> None:
    """The message lists the supported media types."""
    with pytest.raises(StatusError, match="accepted media types include: application/json") as it:
        read(b"a=b", "application/x-www-form-urlencoded")
    assert it.value.code == 415


def test_what_is_served_is_read_in_protobuf_form_or_the_other_forms_are_named() -> None:
    """An existing kind is never reported as unknown."""
    refusals = []
    for served in RESOURCES.group_versions:
        for resource in served.resources:
            try:
                read(body(served.name, resource.kind, []), "application/vnd.kubernetes.protobuf")
            except StatusError as error:
                refusals.append((error.code, error.message.rpartition(": ")[2]))
    assert {(415, "application/json, application/yaml")} == set(refusals)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param(b"", "<empty>", id="empty"),
        pytest.param(b"{" + b"x" * 29, "{" + "x" * 29, id="short"),
        pytest.param(b"{" + b"x" * 30, "{" + "x" * 29 + " ...", id="long"),
        pytest.param(b"[]", "5b5d", id="other"),
    ],
)
def test_bodies_are_shown_in_part(text: bytes, expected: str) -> None:
    """Objects are shown as text, everything else in hexadecimal, and little of it."""
    with pytest.raises(StatusError) as caught:
        read(text)
    assert caught.value.message.endswith(f" ({expected})")


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
    ],
)
def test_recorded_bodies(kind: str, text: str, expected: list[str]) -> None:
    """Errors and warnings about a body are those of a real server."""
    _, found = decoded(resource_of(kind).type, json.loads(text, object_pairs_hook=members))
    assert expected == found


def test_merge_patches() -> None:
    """Duplicate fields are reported wherever they are."""
    patch = b'{"x": 1, "dta": {"a": 1, "a": 2}, "data": {"b": "1", "b": "2"}}'
    assert _twice("dta.a", "data.b") == patch_problems(patch)


def test_json_patches() -> None:
    """Duplicate and unknown fields of operations are reported."""
    patch = b'[{"op": "add", "path": "/data/a", "value": "1", "value": "2", "foo": 3}]'
    found = patch_problems(patch)
    expected = [
        'json patch duplicate field "[0].value"',
        'json patch unknown field "[0].foo"',
    ]
    assert expected == found


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
def test_unknown_fields_without_duplicates(body: Any) -> None:
    """A body that repeats nothing has no other problems than unknown fields."""
    with suppress(SchemaError):
        _, found = decoded(resource_of("ConfigMap").type, body)
        assert all(one.startswith("unknown") for one in found)
