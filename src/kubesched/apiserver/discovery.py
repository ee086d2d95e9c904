"""Discovery: what the server serves, in the older form and in the aggregated one.

Upstream: staging/src/k8s.io/apiserver/pkg/endpoints/discovery (v1.36)
Differs:  nothing.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from kubesched.apiserver.media_types import MediaType, parse_accept
from kubesched.apiserver.plain import Plain
from kubesched.apiserver.resources import GroupVersion, Resource, Resources, Subresource
from kubesched.apiserver.status import not_acceptable

_GROUP: Final = "apidiscovery.k8s.io"
_KIND: Final = "APIGroupDiscoveryList"
_VERSIONS: Final = ("v2", "v2beta1")


class Discovery:
    """The documents that say what is served."""

    def __init__(self, resources: Resources) -> None:
        self._resources = resources

    def versions(self, address: str) -> Plain:
        """Return the versions of the core group.

        Args:
            address: Host and port of the server.
        """
        return {
            "kind": "APIVersions",
            "versions": [one.version for one in self._served() if not one.group],
            "serverAddressByClientCIDRs": [{"clientCIDR": "0.0.0.0/0", "serverAddress": address}],
        }

    def groups(self) -> Plain:
        """Return all groups but the core group."""
        return {
            "kind": "APIGroupList",
            "apiVersion": "v1",
            "groups": [_group(name, served) for name, served in self._by_group().items()],
        }

    def group(self, name: str) -> Plain | None:
        """Return a group, None if it is not served."""
        served = self._by_group().get(name)
        if served is None:
            return None
        return {"kind": "APIGroup", "apiVersion": "v1", **_group(name, served)}

    def group_version(self, group: str, version: str) -> Plain | None:
        """Return the resources of a version of a group, None if it is not served."""
        served = self._resources.group_version(group, version)
        if served is None:
            return None
        listed: Plain = {"kind": "APIResourceList"}
        # The core group is older than the field.
        if group:
            listed["apiVersion"] = "v1"
        return listed | {
            "groupVersion": served.name,
            "resources": [
                entry
                for resource in served.resources
                for entry in (_entry(resource), *_subresource_entries(resource))
            ],
        }

    def aggregated(self, version: str, *, is_core: bool) -> Plain:
        """Return groups with all their resources.

        Args:
            version: Of the form.
            is_core: Whether the core group is wanted, or the others.
        """
        if is_core:
            items: list[Plain] = [{"metadata": {}, "versions": self._aggregated_versions("")}]
        else:
            items = [
                {"metadata": {"name": name}, "versions": self._aggregated_versions(name)}
                for name in self._by_group()
            ]
        return {
            "kind": _KIND,
            "apiVersion": f"{_GROUP}/{version}",
            "metadata": {},
            "items": items,
        }

    def _served(self) -> Iterable[GroupVersion]:
        return self._resources.group_versions

    def _by_group(self) -> dict[str, list[GroupVersion]]:
        groups: dict[str, list[GroupVersion]] = {}
        for served in self._served():
            if served.group:
                groups.setdefault(served.group, []).append(served)
        return groups

    def _aggregated_versions(self, group: str) -> list[Plain]:
        return [
            {
                "version": served.version,
                "resources": [_aggregated(resource) for resource in served.resources],
                "freshness": "Current",
            }
            for served in self._served()
            if served.group == group
        ]


def aggregated_form(accept: str) -> MediaType | None:
    """Return the aggregated form that a client takes, None if it takes the older one.

    Raises:
        StatusError: It takes neither.
    """
    accepted = parse_accept(accept)
    for one in accepted:
        if one.name not in {"application/json", "*/*"}:
            continue
        if not one.kind:
            return None
        if (one.group, one.kind) == (_GROUP, _KIND) and one.version in _VERSIONS:
            return one
    if not accept or not any(one.kind for one in accepted):
        return None
    raise not_acceptable()


def aggregated_type(form: MediaType) -> str:
    """Return the media type of the aggregated form."""
    return f"application/json;g={form.group};v={form.version};as={form.kind}"


def _group(name: str, served: list[GroupVersion]) -> Plain:
    versions = [{"groupVersion": one.name, "version": one.version} for one in served]
    return {"name": name, "versions": versions, "preferredVersion": versions[0]}


def _entry(resource: Resource) -> Plain:
    entry: Plain = {
        "name": resource.plural,
        "singularName": resource.singular,
        "namespaced": resource.is_namespaced,
        "kind": resource.kind,
        "verbs": list(resource.verbs),
    }
    if resource.short_names:
        entry["shortNames"] = list(resource.short_names)
    if resource.categories:
        entry["categories"] = list(resource.categories)
    if resource.is_stored:
        entry["storageVersionHash"] = resource.storage_version_hash
    return entry


def _subresource_entries(resource: Resource) -> Iterable[Plain]:
    for one in resource.subresources:
        entry: Plain = {
            "name": f"{resource.plural}/{one.name}",
            "singularName": "",
            "namespaced": resource.is_namespaced,
        }
        if one.version:
            entry |= {"group": one.group, "version": one.version}
        yield entry | {"kind": one.kind, "verbs": list(one.verbs)}


def _aggregated(resource: Resource) -> Plain:
    entry: Plain = {
        "resource": resource.plural,
        "responseKind": {"group": "", "version": "", "kind": resource.kind},
        "scope": "Namespaced" if resource.is_namespaced else "Cluster",
        "singularResource": resource.singular,
        "verbs": list(resource.verbs),
    }
    if resource.short_names:
        entry["shortNames"] = list(resource.short_names)
    if resource.categories:
        entry["categories"] = list(resource.categories)
    if resource.subresources:
        entry["subresources"] = [_aggregated_subresource(one) for one in resource.subresources]
    return entry


def _aggregated_subresource(one: Subresource) -> Plain:
    return {
        "subresource": one.name,
        "responseKind": {"group": one.group, "version": one.version, "kind": one.kind},
        "verbs": list(one.verbs),
    }
