"""The scheme finds kinds by name and class."""

from typing import Any

import pytest

from kubesched.api import core
from kubesched.api.meta import KubeObject, KubeStruct
from kubesched.api.scheme import (
    KINDS,
    Kind,
    custom_kinds,
    custom_name_of,
    custom_resource,
    find_kind,
    kind_of,
)


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.type.__qualname__)
def test_kinds_are_found(kind: Kind) -> None:
    """Every version and the class give the same kind."""
    for version in kind.versions:
        api_version = f"{kind.group}/{version}" if kind.group else version
        assert kind is find_kind(api_version, kind.kind)
    assert kind is kind_of(kind.type)
    assert kind is find_kind(kind.api_version, kind.kind)


def test_every_kind_has_metadata() -> None:
    """All classes have apiVersion, kind and metadata."""
    for kind in KINDS:
        assert {"api_version", "kind", "metadata"} <= set(kind.type.__struct_fields__)


@pytest.mark.parametrize(
    ("api_version", "name", "type_"),
    [
        ("v1", "Event", core.CoreEvent),
        ("events.k8s.io/v1", "Event", core.Event),
        ("v1", "Pod", core.Pod),
        ("v2", "Pod", None),
        ("apps/v1", "Pod", None),
        ("", "", None),
    ],
)
def test_names_are_not_enough(api_version: str, name: str, type_: type[KubeStruct] | None) -> None:
    """The class depends on group, version and kind."""
    found = find_kind(api_version, name)
    assert type_ is (found.type if found else None)


def quota(version: type) -> type[KubeObject]:
    """Return a new class of custom resources with a field of this type."""

    @custom_resource("example.com/v1", "quotas")
    class Quota(KubeObject):
        gpus: version = version()  # type: ignore[valid-type]

    return Quota


def test_a_custom_resource() -> None:
    """It is known by its class and by its name in events; one with other fields replaces it."""
    for version in (int, str):
        declared = quota(version)
        assert declared is quota(version)
        kind = Kind(declared, "example.com", ("v1",), "Quota", "quotas", is_namespaced=True)
        assert {"quotas.v1.example.com": kind} == custom_kinds()
        assert kind == find_kind("example.com/v1", "Quota") == kind_of(declared)
        assert "quotas.v1.example.com" == custom_name_of(declared)
    assert custom_name_of(core.Pod) is None


def test_a_custom_resource_with_a_field_of_any_type() -> None:
    """The file that declares it may be loaded again."""

    def thing() -> type[KubeObject]:
        @custom_resource("example.com/v1", "things")
        class Thing(KubeObject):
            status: object = None

        return Thing

    assert thing() is thing()


@pytest.mark.parametrize(("api_version", "message"), [("v1", "GROUP/VERSION"), ("apps/v1", "own")])
def test_what_is_no_custom_resource(api_version: str, message: str) -> None:
    """The core group, and the kinds of Kubernetes."""
    with pytest.raises(ValueError, match=message):

        @custom_resource(api_version, "deployments")
        class Deployment(KubeObject):
            pass


def test_a_custom_resource_that_is_no_object() -> None:
    """Its objects have names at least."""
    no_object: Any = KubeStruct
    with pytest.raises(TypeError, match="KubeStruct: a custom resource inherits KubeObject"):
        custom_resource("example.com/v1", "things")(no_object)
