"""Resources: what is served, as `resources.txt` and CustomResourceDefinitions list it.

A line of the table is a kind, indented lines below it are its subresources:

    apps/v1
      deployments Deployment short(deploy) in(all) generation(spec)
        scale
        status

    cluster         objects live in no namespace
    short, in       what users may type instead; sets such as `all`
    verbs           what can be done, unless it is everything
    generation      the fields whose changes a generation counts, from 1
    counted         the same, from none
    name            the form of names, unless it is that of a DNS subdomain
    versioned       an update must give the version that it changes
    upsert          an update of an object that does not exist creates it
    echoed          a deletion answers with the object, not with a Status
    plain           finalizers need no domain
    statusonly      a write of the status leaves the metadata as it is, or these fields of it
    orphans         dependents stay where a deletion does not choose
    select          fields that field selectors may name, besides those of the metadata
    alpha           the group version, alpha or beta, is served on demand only

Upstream: pkg/controlplane/instance.go, pkg/registry/*/*/strategy.go,
          staging/src/k8s.io/apimachinery/pkg/apis/meta/v1 (APIResource),
          staging/src/k8s.io/apiextensions-apiserver/pkg/apiserver (v1.36)
Differs:  objects of custom resources are stored as they are sent: their schemas fill in defaults
          when they are written, but do not validate or prune. Aggregated API servers are not
          served.
"""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Iterator, Sequence
from functools import cache, cached_property
from importlib.resources import files
from typing import Final

import msgspec

from kubesched.apiserver.plain import Plain
from kubesched.apiserver.schema import ObjectType, custom_type, type_of

ALL_VERBS: Final = (
    *("create", "delete", "deletecollection", "get"),
    *("list", "patch", "update", "watch"),
)
_READ_WRITE: Final = ("get", "patch", "update")
_FLAGS: Final = frozenset(("echoed", "orphans", "plain", "upsert", "versioned"))
OBJECT_METADATA: Final = (
    *("annotations", "deletionTimestamp", "finalizers", "generation", "labels"),
    *("ownerReferences", "selfLink"),
)
"""Fields of the metadata that belong to the object, and not to a subresource."""
_STORED_IN: Final = {"horizontalpodautoscalers.autoscaling": "v2"}
_WORD: Final = re.compile(r"(\w+)(?:\(([^)]*)\))?")


class Resource(msgspec.Struct, frozen=True, dict=True):
    """A kind of object as it is served in one version, as its line in the table has it.

    Attributes:
        subresources: Of one object, sorted by name: the plural is the name of each, the kind that
            of its bodies.
        singular_name: Its name for one object; "" for the kind in lower case.
        name_form: The form of names, as `formats` lists them.
        generation_fields: Fields whose changes the generation counts; None if nothing is counted.
        flags: The words of the line that stand alone: `versioned`, `upsert`, ...
        left_by_status: Fields of the metadata that a write of the status leaves as they are.
        definition: The CustomResourceDefinition that it comes from; None for built-in kinds.
    """

    plural: str
    kind: str
    group: str = ""
    version: str = ""
    is_namespaced: bool = True
    verbs: tuple[str, ...] = ALL_VERBS
    short_names: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()
    subresources: tuple[Resource, ...] = ()
    singular_name: str = ""
    name_form: str = "subdomain"
    generation_fields: tuple[str, ...] | None = None
    first_generation: int = 0
    flags: frozenset[str] = frozenset()
    selectable: tuple[str, ...] = ()
    left_by_status: tuple[str, ...] = ()
    definition: Plain | None = None

    def __hash__(self) -> int:
        return hash((self.group, self.version, self.plural))

    @property
    def built_in_kind(self) -> str:
        """Its kind, for rules of single kinds; "" if it is custom, whatever its kind is called."""
        return self.kind if self.definition is None else ""

    @property
    def singular(self) -> str:
        """Its name for one object, such as `pod`."""
        return self.singular_name or self.kind.lower()

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
        """The name under which its objects are stored; both groups of events share one."""
        return "events" if self.plural == "events" else self.group_resource

    @property
    def storage_version_hash(self) -> str:
        """A hash that changes when objects are stored in another version."""
        group = "" if self.plural == "events" else self.group
        text = f"{group}/{_STORED_IN.get(self.group_resource, self.version)}/{self.kind}"
        return base64.b64encode(hashlib.sha256(text.encode()).digest()[:8]).decode()

    @property
    def is_stored(self) -> bool:
        """Whether objects are stored; reviews and bindings are only answered."""
        return "list" in self.verbs and self.plural != "componentstatuses"

    def subresource(self, name: str) -> Resource | None:
        """Return the subresource of a name, None if there is none."""
        return next((found for found in self.subresources if found.plural == name), None)

    @property
    def defined_version(self) -> Plain:
        """Its version in the CustomResourceDefinition."""
        assert self.definition is not None, "asked before"
        versions = self.definition["spec"]["versions"]
        return next(one for one in versions if one["name"] == self.version)

    @property
    def defined_schema(self) -> Plain:
        """Its schema in the CustomResourceDefinition."""
        schema = (self.defined_version.get("schema") or {}).get("openAPIV3Schema")
        return schema or {"type": "object"}

    @cached_property
    def type(self) -> ObjectType:
        """The type of its objects; one of any fields where the tables have none."""
        if self.definition is not None:
            return custom_type(self.kind, self.defined_schema)
        return type_of(self.api_version, self.kind) or custom_type(self.kind, {})

    @property
    def has_status(self) -> bool:
        """Whether the status is a subresource."""
        return self.subresource("status") is not None


_SCALE: Final = Resource("scale", "Scale", "autoscaling", "v1", verbs=_READ_WRITE)


class GroupVersion(msgspec.Struct, frozen=True):
    """The resources of one version of a group, by name; alpha ones are served on demand only."""

    group: str
    version: str
    resources: tuple[Resource, ...]
    is_alpha: bool = False

    @property
    def name(self) -> str:
        """Group and version, such as `v1` or `apps/v1`."""
        return f"{self.group}/{self.version}" if self.group else self.version


class Resources:
    """The resources of a server, to be found by path or by kind.

    Attributes:
        group_versions: All that is served, in the order of discovery; custom resources come last.
    """

    def __init__(self, *, has_alpha: bool = False) -> None:
        """Serve the built-in kinds, alpha versions among them if wanted."""
        self._built_in = tuple(one for one in _table() if has_alpha or not one.is_alpha)
        self.define(())

    def define(self, definitions: Sequence[Plain]) -> None:
        """Serve these CustomResourceDefinitions besides the built-in kinds, and no others."""
        custom: dict[tuple[str, str], list[Resource]] = {}
        for definition in definitions:
            for resource in _defined(definition):
                custom.setdefault((resource.group, resource.version), []).append(resource)
        taken = {(one.group, one.version) for one in self._built_in}
        self.group_versions = (
            *self._built_in,
            *(
                GroupVersion(group, version, tuple(sorted(found, key=lambda one: one.plural)))
                for (group, version), found in sorted(custom.items())
                if (group, version) not in taken
            ),
        )
        self._by_version = {(one.group, one.version): one for one in self.group_versions}
        every = [one for served in self.group_versions for one in served.resources]
        self._by_path = {(one.group, one.version, one.plural): one for one in every}
        self._by_kind = {(one.api_version, one.kind): one for one in every}
        self.groups = {one.group for one in self.group_versions}

    def find(self, group: str, version: str, plural: str) -> Resource | None:
        """Return the resource of a path, None if it is not served."""
        return self._by_path.get((group, version, plural))

    def find_kind(self, api_version: str, kind: str) -> Resource | None:
        """Return the resource of an object with these fields, None if it is not served."""
        return self._by_kind.get((api_version, kind))

    def group_version(self, group: str, version: str) -> GroupVersion | None:
        """Return what is served of a version of a group, None if nothing is."""
        return self._by_version.get((group, version))


def _defined(definition: Plain) -> Iterator[Resource]:
    """Yield the resources of a CustomResourceDefinition, one for each version that is served."""
    spec = definition["spec"]
    names = spec["names"]
    for version in spec.get("versions") or ():
        if not version.get("served"):
            continue
        below = version.get("subresources") or {}
        own = names["kind"], spec["group"], version["name"]
        subresources = [_SCALE] if below.get("scale") is not None else []
        if below.get("status") is not None:
            subresources.append(Resource("status", *own, verbs=_READ_WRITE))
        yield Resource(
            names["plural"],
            *own,
            is_namespaced=spec.get("scope") == "Namespaced",
            short_names=tuple(names.get("shortNames") or ()),
            categories=tuple(names.get("categories") or ()),
            subresources=tuple(subresources),
            singular_name=names.get("singular") or "",
            generation_fields=("spec",),
            first_generation=1,
            flags=frozenset(("versioned",)),
            selectable=tuple(
                one["jsonPath"].removeprefix(".") for one in version.get("selectableFields") or ()
            ),
            left_by_status=OBJECT_METADATA,
            definition=definition,
        )


@cache
def _table() -> tuple[GroupVersion, ...]:
    text = files(__package__).joinpath("resources.txt").read_text(encoding="utf-8")
    return tuple(_group_version(block.splitlines()) for block in text.strip().split("\n\n"))


def _group_version(lines: Sequence[str]) -> GroupVersion:
    name, *flags = lines[0].split()
    group, _, version = name.rpartition("/")
    resources: list[Resource] = []
    for line in lines[1:]:
        words = line.split()
        if line.startswith("    "):
            added = _subresource(resources[-1], words)
            below = (*resources[-1].subresources, added)
            resources[-1] = msgspec.structs.replace(resources[-1], subresources=below)
        else:
            resources.append(_resource(group, version, words))
    return GroupVersion(group, version, tuple(resources), is_alpha="alpha" in flags)


def _resource(group: str, version: str, words: Sequence[str]) -> Resource:
    plural, kind, *rest = words
    notes: dict[str, str] = dict(_WORD.findall(" ".join(rest)))
    counted = notes.get("generation", notes.get("counted"))
    return Resource(
        plural,
        kind,
        group,
        version,
        is_namespaced="cluster" not in notes,
        verbs=_listed(notes, "verbs") or ALL_VERBS,
        short_names=_listed(notes, "short"),
        categories=_listed(notes, "in"),
        name_form=notes.get("name", "subdomain"),
        generation_fields=None if counted is None else tuple(filter(None, counted.split(","))),
        first_generation=int("generation" in notes),
        flags=_FLAGS & notes.keys(),
        selectable=_listed(notes, "select"),
        left_by_status=OBJECT_METADATA
        if notes.get("statusonly") == ""
        else _listed(notes, "statusonly"),
    )


def _listed(notes: dict[str, str], name: str) -> tuple[str, ...]:
    return tuple(notes[name].split(",")) if name in notes else ()


def _subresource(resource: Resource, words: Sequence[str]) -> Resource:
    name, *rest = words
    if name == "scale":
        return _SCALE
    if not rest:
        return Resource(name, resource.kind, resource.group, resource.version, verbs=_READ_WRITE)
    *others, kind = rest[0].split("/")
    group, version = others or (resource.group, resource.version)
    return Resource(name, kind, group, version, verbs=tuple(rest[1].split(",")))


RESOURCES: Final = Resources()
"""The built-in resources."""
