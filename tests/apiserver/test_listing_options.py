"""What lists and watches may ask for."""

from __future__ import annotations

import pytest

from kubesched.apiserver.listing import (
    ListOptions,
    exact_version,
    list_options,
    list_version,
    version_of_object,
)
from kubesched.apiserver.request import ApiRequest
from kubesched.apiserver.resources import RESOURCES
from kubesched.apiserver.status import StatusError


def asked(*, is_watch: bool = False, **query: str) -> ListOptions:
    """Return the options of a request with these parameters."""
    pods = RESOURCES.find("", "v1", "pods")
    assert pods is not None
    parameters = {name: (value,) for name, value in query.items()}
    return list_options(ApiRequest("GET", "/", parameters), pods, is_watch=is_watch)


def test_everything_is_read() -> None:
    """Parameters become options."""
    options = asked(
        is_watch=True,
        resourceVersion="5",
        timeoutSeconds="7",
        allowWatchBookmarks="true",
        sendInitialEvents="false",
        resourceVersionMatch="NotOlderThan",
    )
    assert ("5", 7, True, False) == (
        options.resource_version,
        options.timeout_seconds,
        options.allows_bookmarks,
        options.sends_initial_events,
    )
    assert options.selection.is_everything


def test_a_negative_limit_is_none() -> None:
    """A limit below zero means all."""
    assert asked(limit="-1").limit == 0


@pytest.mark.parametrize(
    ("query", "code", "message"),
    [
        pytest.param({"limit": "x"}, 400, 'parsing "x": invalid syntax', id="limit"),
        pytest.param({"limit": "9" * 5000}, 400, "value out of range", id="huge-limit"),
        pytest.param(
            {"timeoutSeconds": "99999999999999999999"}, 400, "value out of range", id="timeout"
        ),
        pytest.param({"labelSelector": "a=b=c"}, 400, "found '='", id="labels"),
        pytest.param({"fieldSelector": "x.y=1"}, 400, "field label not supported", id="fields"),
        pytest.param(
            {"resourceVersionMatch": "Exact"}, 422, "unless resourceVersion is provided", id="match"
        ),
        pytest.param(
            {"resourceVersionMatch": "Exact", "continue": "x", "resourceVersion": "1"},
            422,
            "forbidden when continue is provided",
            id="match-and-continue",
        ),
        pytest.param({"sendInitialEvents": "true"}, 422, "forbidden for list", id="initial"),
        pytest.param(
            {"labelSelector": "a in (", "limit": "x"}, 400, "strconv", id="number-and-labels"
        ),
        pytest.param(
            {"labelSelector": "a in (", "resourceVersionMatch": "Exact"},
            400,
            "unable to parse requirement",
            id="labels-and-match",
        ),
        pytest.param(
            {"fieldSelector": "x=y", "resourceVersionMatch": "Exact"},
            422,
            "unless resourceVersion is provided",
            id="match-and-fields",
        ),
    ],
)
def test_conflicting_options(query: dict[str, str], code: int, message: str) -> None:
    """Options that exclude each other are refused; of several errors the first is reported."""
    with pytest.raises(StatusError) as caught:
        asked(is_watch=False, **query)
    assert code == caught.value.code
    assert message in caught.value.message


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param("", 0, id="none"),
        pytest.param("0", 0, id="any"),
        pytest.param("12", 12, id="some"),
    ],
)
def test_versions(text: str, expected: int) -> None:
    """No version and 0 both mean any version."""
    assert expected == list_version(text) == exact_version(text) == version_of_object(text)


def test_invalid_versions() -> None:
    """A list gets 400, a watch and an object get 500."""
    with pytest.raises(StatusError, match="invalid resource version: ") as listed:
        list_version("-1")
    with pytest.raises(StatusError, match=r"^resourceVersion: ") as watched:
        exact_version("99999999999999999999")
    with pytest.raises(StatusError, match=r"^strconv\.ParseUint") as written:
        version_of_object("abc")
    codes = (listed.value.code, watched.value.code, written.value.code)
    assert codes == (400, 500, 500)
