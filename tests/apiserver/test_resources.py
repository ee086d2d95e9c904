"""The table of resources: names, hashes, and how they are found."""

from __future__ import annotations

import pytest

from kubesched.apiserver.resources import RESOURCES, Resource, Resources


def found(group: str, plural: str, version: str = "v1") -> Resource:
    """The resource of a path."""
    resource = RESOURCES.find(group, version, plural)
    assert resource is not None
    return resource


@pytest.mark.parametrize(
    ("group", "plural", "expected"),
    [
        pytest.param("", "pods", ("pods", "pods", "v1", "pod"), id="core"),
        pytest.param(
            "apps",
            "replicasets",
            ("replicasets.apps", "replicasets.apps", "apps/v1", "replicaset"),
            id="group",
        ),
        pytest.param(
            "events.k8s.io",
            "events",
            ("events.events.k8s.io", "events", "events.k8s.io/v1", "event"),
            id="events-share-a-place",
        ),
    ],
)
def test_names(group: str, plural: str, expected: tuple[str, ...]) -> None:
    """A resource has one name for messages and one for the place where it is kept."""
    one = found(group, plural)
    assert expected == (one.group_resource, one.storage_kind, one.api_version, one.singular)


@pytest.mark.parametrize(
    ("group", "plural", "expected"),
    [
        pytest.param("", "pods", "xPOwRZ+Yhw8=", id="pods"),
        pytest.param("", "events", "r2yiGXH7wu8=", id="events"),
        pytest.param("events.k8s.io", "events", "r2yiGXH7wu8=", id="events-of-the-newer-group"),
        pytest.param("resource.k8s.io", "resourceclaims", "wgAZaHcZxUg=", id="resourceclaims"),
    ],
)
def test_storage_version_hash(group: str, plural: str, expected: str) -> None:
    """The hash is that of the real server."""
    assert expected == found(group, plural).storage_version_hash


def test_every_resource_is_found_by_path_and_by_kind() -> None:
    """Every served resource has a path and a kind."""
    for served in RESOURCES.group_versions:
        for resource in served.resources:
            assert (served.group, served.version) == (resource.group, resource.version)
            assert resource == RESOURCES.find(served.group, served.version, resource.plural)
            assert resource == RESOURCES.find_kind(served.name, resource.kind)


def test_resources_and_subresources_are_sorted() -> None:
    """Discovery shows resources, verbs and subresources by name."""
    for served in RESOURCES.group_versions:
        names = [one.plural for one in served.resources]
        assert sorted(names) == names
        for resource in served.resources:
            parts = [one.plural for one in resource.subresources]
            assert sorted(parts) == parts
            assert sorted(resource.verbs) == list(resource.verbs)


def test_alpha_is_served_on_demand() -> None:
    """Alpha versions are found only if they are enabled."""
    assert RESOURCES.find("scheduling.k8s.io", "v1alpha2", "podgroups") is None
    both = Resources(has_alpha=True)
    assert both.find("scheduling.k8s.io", "v1alpha2", "podgroups") is not None


def test_unknown_resources() -> None:
    """Unknown groups, versions, kinds and subresources return None."""
    assert RESOURCES.find("", "v2", "pods") is None
    assert RESOURCES.find_kind("v1", "Nothing") is None
    assert RESOURCES.group_version("nosuch", "v1") is None
    assert found("", "pods").subresource("nothing") is None
