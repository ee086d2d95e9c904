"""Which names of resources count."""

import pytest

from kubesched.api.names import (
    is_counted_resource_name,
    is_extended_resource_name,
    is_scalar_resource_name,
)


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
