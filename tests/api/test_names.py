"""The format of label keys and values, and which names of resources count."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubesched.api.names import (
    is_counted_resource_name,
    is_extended_resource_name,
    is_scalar_resource_name,
    label_key_errors,
    label_value_errors,
)

_NAME = (
    "name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end "
    "with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for "
    "validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')"
)
_PREFIX = (
    "prefix part a lowercase RFC 1123 subdomain must consist of lower case alphanumeric "
    "characters, '-' or '.', and must start and end with an alphanumeric character (e.g. "
    "'example.com', regex used for validation is "
    r"'[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"
)
_TWO_SLASHES = (
    "a valid label key must consist of alphanumeric characters, '-', '_' or '.', and must start "
    "and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex "
    "used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]') with an optional DNS "
    "subdomain prefix and '/' (e.g. 'example.com/MyName')"
)


@pytest.mark.parametrize(
    ("key", "errors"),
    [
        pytest.param("a", (), id="short"),
        pytest.param("example.com/My_Name.1", (), id="prefixed"),
        pytest.param("a" * 253 + "/" + "a" * 63, (), id="longest"),
        pytest.param("a" * 64, ("name part must be no more than 63 bytes",), id="too-long"),
        pytest.param("", ("name part must be non-empty", _NAME), id="empty"),
        pytest.param("-a", (_NAME,), id="dash"),
        pytest.param("a-", (_NAME,), id="dash-at-the-end"),
        pytest.param("a b", (_NAME,), id="blank"),
        pytest.param("a\n", (_NAME,), id="newline"),
        pytest.param("\u00e4", (_NAME,), id="umlaut"),
        pytest.param("a/", ("name part must be non-empty", _NAME), id="no-name"),
        pytest.param("/a", ("prefix part must be non-empty",), id="no-prefix"),
        pytest.param("Ex/a", (_PREFIX,), id="upper-prefix"),
        pytest.param(
            "a" * 254 + "/a", ("prefix part must be no more than 253 bytes",), id="long-prefix"
        ),
        pytest.param("a/b/c", (_TWO_SLASHES,), id="two-slashes"),
    ],
)
def test_key(key: str, errors: tuple[str, ...]) -> None:
    """A label key is checked part by part, with upstream's texts."""
    assert errors == label_key_errors(key)


@given(st.text("aA0-_./\n\u00e4\ud800", max_size=70))
def test_value(value: str) -> None:
    """Empty, or up to 63 bytes with alphanumeric ends."""
    form = re.compile(r"([A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?)?\Z", re.ASCII)
    is_valid = form.match(value) is not None and len(value.encode(errors="surrogatepass")) <= 63
    assert is_valid == (not label_value_errors(value))


# Resources.


@pytest.mark.parametrize(
    ("name", "is_scalar", "is_extended"),
    [
        pytest.param("cpu", False, False, id="cpu"),
        pytest.param("pods", False, False, id="pods"),
        pytest.param("ephemeral-storage", False, False, id="ephemeral-storage"),
        pytest.param("foo", False, False, id="unknown native"),
        pytest.param("example.com/gpu", True, True, id="extended"),
        pytest.param("kubernetes.io/foo", True, False, id="native with its domain"),
        pytest.param("x.kubernetes.io/foo", True, False, id="below the native domain"),
        pytest.param("deviceclass.resource.kubernetes.io/c", True, False, id="implicit"),
        pytest.param("requests.example.com/gpu", False, False, id="quota prefix"),
        pytest.param("Example.com/gpu", False, False, id="no domain"),
        pytest.param("a/b/c", False, False, id="no qualified name"),
        pytest.param("hugepages-2Mi", True, False, id="huge pages"),
        pytest.param("attachable-volumes-csi-x", True, False, id="attachable volumes"),
        pytest.param("example.com/" + "x" * 64, False, False, id="too long"),
        pytest.param("a" * 253 + "/x", False, False, id="no room for the quota prefix"),
    ],
)
def test_kinds_of_names(name: str, is_scalar: bool, is_extended: bool) -> None:
    """A scalar name is extended, prefixed native, huge pages or attachable volumes."""
    assert (is_scalar, is_extended) == (
        is_scalar_resource_name(name),
        is_extended_resource_name(name),
    )


def test_counted_names() -> None:
    """The three named resources and scalar ones count; pods are counted as pods."""
    names = ("cpu", "memory", "ephemeral-storage", "example.com/gpu", "pods", "foo")
    assert ["cpu", "memory", "ephemeral-storage", "example.com/gpu"] == [
        name for name in names if is_counted_resource_name(name)
    ]
