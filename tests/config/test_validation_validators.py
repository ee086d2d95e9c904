"""Names, labels, weighted resources and scoring shapes."""

import pytest

from kubesched.api.names import is_extended_resource_name, label_key_errors, label_value_errors
from kubesched.config.args import ResourceSpec, UtilizationShapePoint
from kubesched.config.validation import (
    validate_extended_resource_name,
    validate_function_shape,
    validate_label_name,
    validate_resources,
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
    ("name", "errors"),
    [
        pytest.param("a", (), id="short"),
        pytest.param("example.com/My_Name.1", (), id="prefixed"),
        pytest.param("a" * 63, (), id="longest"),
        pytest.param("a" * 64, ("name part must be no more than 63 bytes",), id="too-long"),
        pytest.param("", ("name part must be non-empty", _NAME), id="empty"),
        pytest.param("-a", (_NAME,), id="dash"),
        pytest.param("a\n", (_NAME,), id="newline"),
        pytest.param("/a", ("prefix part must be non-empty",), id="no-prefix"),
        pytest.param("Ex/a", (_PREFIX,), id="upper-prefix"),
        pytest.param(
            "a" * 254 + "/a", ("prefix part must be no more than 253 bytes",), id="long-prefix"
        ),
        pytest.param("a/b/c", (_TWO_SLASHES,), id="two-slashes"),
    ],
)
def test_qualified_name(name: str, errors: tuple[str, ...]) -> None:
    """A label key is checked part by part, with upstream's texts."""
    assert errors == label_key_errors(name)
    assert len(errors) == len(validate_label_name(name, "p"))


@pytest.mark.parametrize(
    ("value", "count"),
    [("", 0), ("a.b_c-1", 0), ("a" * 63, 0), ("a" * 64, 1), ("-", 1), ("é", 1), ("\ud800", 1)],
)
def test_label_value(value: str, count: int) -> None:
    """A label's value may be empty; it has at most 63 bytes."""
    assert count == len(label_value_errors(value))


@pytest.mark.parametrize(
    ("name", "is_extended"),
    [
        ("example.com/gpu", True),
        ("cpu", False),
        ("kubernetes.io/x", False),
        ("a.kubernetes.io/x", False),
        ("requests.example.com/gpu", False),
        ("a" * 253 + "/x", False),
    ],
)
def test_extended_resource_name(name: str, is_extended: bool) -> None:
    """An extended resource has another domain than Kubernetes', and room for a prefix."""
    assert is_extended is is_extended_resource_name(name)


def test_native_resource_is_no_extended_resource() -> None:
    """A well-formed name that is not extended is one field error."""
    expected = ['p: Invalid value: "cpu": is an invalid extended resource name']
    assert expected == [
        str(field_error) for field_error in validate_extended_resource_name("cpu", "p")
    ]


def test_resource_weights() -> None:
    """Weights are from 1 to 100."""
    resources = [ResourceSpec("a", w) for w in (0, 1, 100, 101)]
    expected = [
        "r[0].weight: Invalid value: 0: resource weight of a not in valid range (0, 100]",
        "r[3].weight: Invalid value: 101: resource weight of a not in valid range (0, 100]",
    ]
    assert expected == [str(field_error) for field_error in validate_resources(resources, "r")]


@pytest.mark.parametrize(
    ("points", "expected"),
    [
        pytest.param([(0, 0), (100, 10)], [], id="good"),
        pytest.param(
            [], ["s: Required value: at least one point must be specified"], id="no-points"
        ),
        pytest.param(
            [(0, 0), (0, 1), (0, 2)],
            ["s[1].utilization: Invalid value: 0: values must be sorted in increasing order"],
            id="not-increasing-said-once",
        ),
        pytest.param(
            [(-1, -1), (101, 11)],
            [
                "s[0].utilization: Invalid value: -1: not in valid range [0, 100]",
                "s[0].score: Invalid value: -1: not in valid range [0, 10]",
                "s[1].utilization: Invalid value: 101: not in valid range [0, 100]",
                "s[1].score: Invalid value: 11: not in valid range [0, 10]",
            ],
            id="ranges",
        ),
    ],
)
def test_function_shape(points: list[tuple[int, int]], expected: list[str]) -> None:
    """A shape's utilization strictly increases; both coordinates have their range."""
    shape = [UtilizationShapePoint(u, s) for u, s in points]
    assert expected == [str(field_error) for field_error in validate_function_shape(shape, "s")]
