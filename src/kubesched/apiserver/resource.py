"""Resource says how a kind of object is served: its names, its verbs, its subresources.

Upstream: staging/src/k8s.io/apimachinery/pkg/apis/meta/v1 (APIResource, v1.36)
Differs:  nothing.
"""

from __future__ import annotations

import base64
import hashlib
from typing import Final

import msgspec

ALL_VERBS: Final = (
    "create",
    "delete",
    "deletecollection",
    "get",
    "list",
    "patch",
    "update",
    "watch",
)
_STORED_IN: Final = {"horizontalpodautoscalers.autoscaling": "v2"}


class Subresource(msgspec.Struct, frozen=True):
    """What can be asked of one object besides itself.

    Attributes:
        name: As in the path, such as `status`.
        kind: Of the body.
        verbs: What may be done, sorted.
        group: Of the body; "" if it is that of the resource.
        version: Of the body; "" if it is that of the resource.
    """

    name: str
    kind: str
    verbs: tuple[str, ...]
    group: str = ""
    version: str = ""


class Resource(msgspec.Struct, frozen=True):
    """A kind of object as it is served in one version.

    Attributes:
        plural: Its name in paths.
        kind: Its name in bodies.
        group: The API group, "" for the core one.
        version: The version of the group.
        is_namespaced: Whether its objects live in namespaces.
        verbs: What may be done, sorted.
        short_names: What users may type instead.
        categories: Sets of resources it belongs to, such as `all`.
        subresources: What can be asked of one object, sorted by name.
    """

    plural: str
    kind: str
    group: str = ""
    version: str = ""
    is_namespaced: bool = True
    verbs: tuple[str, ...] = ALL_VERBS
    short_names: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()
    subresources: tuple[Subresource, ...] = ()

    @property
    def singular(self) -> str:
        """Its name for one object, such as `pod`."""
        return self.kind.lower()

    @property
    def api_version(self) -> str:
        """Group and version as objects carry them, such as `v1` or `apps/v1`."""
        return f"{self.group}/{self.version}" if self.group else self.version

    @property
    def group_resource(self) -> str:
        """The name in messages, such as `pods` or `replicasets.apps`."""
        return f"{self.plural}.{self.group}" if self.group else self.plural

    @property
    def storage_kind(self) -> str:
        """What its objects are kept under; both groups of events keep theirs in one place."""
        return "events" if self.plural == "events" else self.group_resource

    @property
    def storage_version_hash(self) -> str:
        """A word that changes when objects are kept in another version."""
        group = "" if self.plural == "events" else self.group
        text = f"{group}/{_STORED_IN.get(self.group_resource, self.version)}/{self.kind}"
        return base64.b64encode(hashlib.sha256(text.encode()).digest()[:8]).decode()

    @property
    def is_stored(self) -> bool:
        """Whether objects are kept; reviews and bindings are answered and forgotten."""
        return "list" in self.verbs and self.plural != "componentstatuses"

    def subresource(self, name: str) -> Subresource | None:
        """Return the subresource of a name, None if there is none."""
        return next((found for found in self.subresources if found.name == name), None)


class GroupVersion(msgspec.Struct, frozen=True):
    """The resources of one version of a group, sorted by name.

    Attributes:
        group: "" for the core group.
        version: Such as `v1`.
        resources: What is served.
    """

    group: str
    version: str
    resources: tuple[Resource, ...]

    @property
    def name(self) -> str:
        """Group and version, such as `v1` or `apps/v1`."""
        return f"{self.group}/{self.version}" if self.group else self.version
