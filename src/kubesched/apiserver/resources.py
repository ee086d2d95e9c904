"""Resources finds what is served, by path or by kind.

Upstream: staging/src/k8s.io/apimachinery/pkg/runtime (Scheme, v1.36)
Differs:  nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from kubesched.apiserver.resource import GroupVersion, Resource
from kubesched.apiserver.resource_table import GROUP_VERSIONS

__all__ = ["RESOURCES", "Resource", "Resources"]


class Resources:
    """The resources of a server, to be found by path or by kind.

    Attributes:
        group_versions: All that is served, in the order of discovery.
    """

    def __init__(self, group_versions: Sequence[GroupVersion] = GROUP_VERSIONS) -> None:
        self.group_versions = tuple(group_versions)
        every = [resource for served in group_versions for resource in served.resources]
        self._by_path = {(one.group, one.version, one.plural): one for one in every}
        self._by_kind = {(one.api_version, one.kind): one for one in every}

    def find(self, group: str, version: str, plural: str) -> Resource | None:
        """Return the resource of a path, None if it is not served."""
        return self._by_path.get((group, version, plural))

    def find_kind(self, api_version: str, kind: str) -> Resource | None:
        """Return the resource of an object with these fields, None if it is not served."""
        return self._by_kind.get((api_version, kind))

    def group_version(self, group: str, version: str) -> GroupVersion | None:
        """Return what is served of a version of a group, None if nothing is."""
        return next(
            (
                served
                for served in self.group_versions
                if (served.group, served.version) == (group, version)
            ),
            None,
        )


RESOURCES: Final = Resources()
