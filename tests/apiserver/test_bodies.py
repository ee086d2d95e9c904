"""Bodies of requests."""

from __future__ import annotations

import pytest

from kubesched.apiserver.bodies import internal_package, read_object, summary
from kubesched.apiserver.request import Request
from kubesched.apiserver.resource_table import GROUP_VERSIONS
from kubesched.apiserver.status import StatusError

from .test_protobuf import body


def read(text: bytes, media_type: str = "application/json") -> object:
    """Read a body that should be a pod."""
    return read_object(Request("POST", "/", {}, {"content-type": media_type}, text), "Pod")


def test_objects() -> None:
    """JSON and YAML say the same; nothing is an object without fields."""
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
def test_refused(text: bytes, media_type: str, message: str) -> None:
    """What is no object is refused, and why, in upstream's words."""
    with pytest.raises(StatusError) as caught:
        read(text, media_type)
    assert caught.value.code == 400
    begin = "the object provided is unrecognized (must be of type Pod): "
    assert caught.value.message.startswith(begin)
    assert message in caught.value.message


def test_unknown_media_types() -> None:
    """What is not read is told with what is."""
    with pytest.raises(StatusError, match="accepted media types include: application/json") as it:
        read(b"a=b", "application/x-www-form-urlencoded")
    assert it.value.code == 415


def test_what_is_served_is_read_in_protobuf_form_or_the_other_forms_are_named() -> None:
    """Nobody is told that a kind does not exist which does."""
    refusals = []
    for served in GROUP_VERSIONS:
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
def test_summary(text: bytes, expected: str) -> None:
    """Objects are shown as text, everything else in hexadecimal, and little of it."""
    assert expected == summary(text)


def test_internal_package() -> None:
    """The core group has a name in messages."""
    assert ("core", "apps", "coordination") == tuple(
        internal_package(group) for group in ("", "apps", "coordination.k8s.io")
    )
