"""Bodies are read as Go's decoder reads them, and written as a real server writes them."""

from __future__ import annotations

from typing import Any

import pytest

from kubesched.apiserver.object_types import ObjectType, decoded, type_of
from kubesched.apiserver.reading import DecodeError

from .recorded import read


def _type(kind: str, group: str = "", version: str = "v1") -> ObjectType:
    found = type_of(group, version, kind)
    assert found is not None
    return found


def _pod(**spec: Any) -> dict[str, Any]:
    return {"metadata": {"name": "p"}, "spec": {"containers": [{"name": "c"}], **spec}}


_FIELD = "json: cannot unmarshal {} into Go struct field {} of type {}"


@pytest.mark.parametrize(
    ("kind", "body", "message"),
    [
        pytest.param(
            "Pod",
            _pod(nodeName=1),
            _FIELD.format("number", "PodSpec.spec.nodeName", "string"),
            id="a number for a text",
        ),
        pytest.param(
            "Pod",
            _pod(priority="1"),
            _FIELD.format("string", "PodSpec.spec.priority", "int32"),
            id="a text for a number",
        ),
        pytest.param(
            "Pod",
            _pod(priority=2**31),
            _FIELD.format("number 2147483648", "PodSpec.spec.priority", "int32"),
            id="a number that is too large",
        ),
        pytest.param(
            "Pod",
            _pod(containers={}),
            _FIELD.format("object", "PodSpec.spec.containers", "[]v1.Container"),
            id="an object for a list",
        ),
        pytest.param(
            "Pod",
            _pod(containers=[5]),
            _FIELD.format("number", "PodSpec.spec.containers", "v1.Container"),
            id="a number for an object in a list",
        ),
        pytest.param(
            "Pod",
            _pod(nodeSelector={"a": True}),
            _FIELD.format("bool", "PodSpec.spec.nodeSelector", "string"),
            id="a truth for a text in a map",
        ),
        pytest.param(
            "Pod",
            _pod(overhead={"cpu": "much"}),
            "quantities must match the regular expression "
            "'^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'",
            id="a text that is no quantity",
        ),
        pytest.param(
            "Pod",
            {"status": {"startTime": "2024-01-01"}},
            'parsing time "2024-01-01" as "2006-01-02T15:04:05Z07:00": cannot parse "" as "T"',
            id="a text that is no time",
        ),
        pytest.param(
            "ConfigMap",
            {"binaryData": {"a": "YQ="}},
            "illegal base64 data at input byte 3",
            id="a text that is no base 64",
        ),
    ],
)
def test_misfits(kind: str, body: dict[str, Any], message: str) -> None:
    """Values that do not fit are told in Go's words."""
    with pytest.raises(DecodeError) as caught:
        decoded(_type(kind), body)
    assert message == str(caught.value)


def test_a_text_that_cannot_be_understood_is_told_before_an_earlier_value_of_another_kind() -> None:
    """Go goes on after a value of the wrong kind, and stops at what cannot be understood."""
    body = _pod(nodeName=1, overhead={"cpu": "much"})
    with pytest.raises(DecodeError, match="quantities must match"):
        decoded(_type("Pod"), body)


def test_unknown_fields_are_dropped_and_told_once() -> None:
    """The paths of unknown fields come in the order of the body."""
    body = _pod(nodSelector={}, tolerations=[{"key": "a", "kee": "b"}])
    read_, unknown = decoded(_type("Pod"), body)
    assert ["spec.nodSelector", "spec.tolerations[0].kee"] == unknown
    assert [{"key": "a"}] == read_["spec"]["tolerations"]


@pytest.mark.parametrize(
    ("given", "written"),
    [
        pytest.param({"overhead": {"cpu": "0.1"}}, {"overhead": {"cpu": "100m"}}, id="quantity"),
        pytest.param({"overhead": {"cpu": 2}}, {"overhead": {"cpu": "2"}}, id="number"),
        pytest.param({"overhead": {"cpu": "1n"}}, {"overhead": {"cpu": "1m"}}, id="rounded"),
        pytest.param({"nodeName": ""}, {}, id="empty text"),
        pytest.param({"nodeName": None}, {}, id="null"),
        pytest.param({"volumes": []}, {}, id="empty list"),
        pytest.param({"nodeSelector": {}}, {}, id="empty map"),
        pytest.param({"priority": 0}, {"priority": 0}, id="a 0 that may be absent"),
        pytest.param({"hostNetwork": False}, {}, id="a false that may not be absent"),
        pytest.param(
            {"nodeSelector": {"b": "1", "a": "2"}},
            {"nodeSelector": {"a": "2", "b": "1"}},
            id="maps in order",
        ),
    ],
)
def test_written_form(given: dict[str, Any], written: dict[str, Any]) -> None:
    """Values are written in their canonical form, and what is empty is left out."""
    spec = {"containers": [{"name": "c"}], **given}
    read_, _ = decoded(_type("PodSpec"), spec)
    others = {"containers": [{"name": "c", "resources": {}}]}
    assert {**others, **written} == read_


def test_maps_are_written_in_the_order_of_their_keys() -> None:
    """Two bodies that mean the same are the same text."""
    read_, _ = decoded(_type("ConfigMap"), {"data": {"b": "1", "a": "2"}})
    assert ["a", "b"] == list(read_["data"])


def test_stored_objects_are_read_as_they_are() -> None:
    """What a real server has stored comes back unchanged."""
    for case in read("changes"):
        old = case["old"]
        read_, unknown = decoded(_type(case["kind"], case["group"], case["version"]), old)
        assert (old, []) == (read_, unknown)


def test_kinds_that_are_not_known_have_no_type() -> None:
    """Neither a kind nor a version that does not exist has one."""
    assert type_of("", "v1", "Nothing") is None
    assert type_of("nowhere.example.com", "v1", "Pod") is None
