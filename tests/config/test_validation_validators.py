"""Names of resources, their weights, and scoring shapes."""

import pytest

from kubesched.config.args import ResourceSpec, UtilizationShapePoint
from kubesched.config.validation import (
    validate_extended_resource_name,
    validate_function_shape,
    validate_resources,
)


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
