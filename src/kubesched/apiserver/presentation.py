"""Presentation of objects, lists and events: plain, as a table, or metadata only.

Upstream: staging/src/k8s.io/apiserver/pkg/endpoints/handlers/response.go (v1.36)
Differs:  a list of metadata without items is [], where upstream writes null.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Final

import msgspec

from kubesched.api.media_types import JSON, YAML, accepted_types
from kubesched.apiserver import tables
from kubesched.apiserver.listing import ObjectList
from kubesched.apiserver.plain import Plain, encode
from kubesched.apiserver.resources import Resource
from kubesched.apiserver.status import StatusError, bad_request, no_representation, not_acceptable
from kubesched.apiserver.stored_object import StoredObject

_INCLUDES: Final = ("", "Metadata", "None", "Object")
_META_GROUP: Final = "meta.k8s.io"


class Presentation:
    """The form of the answers to one client; `is_plain` if objects are sent as they are."""

    def __init__(
        self,
        resource: Resource,
        media_type: MediaType,
        include_object: str,
        now: Callable[[], datetime],
    ) -> None:
        """Set up; `include_object` is what rows of a table contain, "" for metadata.

        Raises:
            StatusError: There is no such form.
        """
        if media_type.kind == "Table" and include_object not in _INCLUDES:
            raise bad_request(
                "Unable to convert to Table as requested: includeObject: Invalid value: "
                f"\"{include_object}\": must be 'Metadata', 'Object', 'None', or empty"
            )
        self._resource = resource
        self._kind = media_type.kind
        self._version = media_type.version or "v1"
        self._api_version = f"{_META_GROUP}/{self._version}"
        self._include = include_object or "Metadata"
        self._now = now
        self.is_plain = not media_type.kind

    def check_single(self) -> None:
        """Raise StatusError if the form is one of lists."""
        if self._kind == "PartialObjectMetadataList":
            raise self._mismatch("not a list", "")

    def one(self, stored: StoredObject) -> bytes:
        """Return an object."""
        if self.is_plain:
            return stored.json(self._resource)
        return encode(self.transformed(stored.form(self._resource)))

    def transformed(self, plain: Plain, *, has_columns: bool = True) -> Plain:
        """Return one object as a table, with or without column definitions, or as its metadata."""
        if self._kind == "PartialObjectMetadata":
            return self._partial(plain)
        self.check_single()
        version = {"resourceVersion": plain["metadata"].get("resourceVersion", "")}
        table = self._table([plain], {name: value for name, value in version.items() if value})
        if not has_columns:
            table["columnDefinitions"] = None
        return table

    def many(self, found: ObjectList) -> bytes:
        """Return a list."""
        if self.is_plain:
            return self._plain_list(found)
        items = [stored.form(self._resource) for stored in found.items]
        if self._kind == "Table":
            return encode(self._table(items, found.metadata()))
        if self._kind != "PartialObjectMetadataList":
            raise self._mismatch("a list", "List")
        return encode(
            {
                "kind": "PartialObjectMetadataList",
                "apiVersion": self._api_version,
                "metadata": found.metadata(),
                "items": [self._partial(item) for item in items],
            }
        )

    def _mismatch(self, what: str, suffix: str) -> StatusError:
        package = self._resource.group.partition(".")[0] or "core"
        return StatusError(
            406,
            "NotAcceptable",
            f"you requested {self._kind}, but the requested object is {what} "
            f"(*{package}.{self._resource.kind}{suffix})",
        )

    def _plain_list(self, found: ObjectList) -> bytes:
        resource, metadata = self._resource, found.metadata()
        if resource.definition is None:
            items = [stored.item(resource) for stored in found.items]
        else:
            # Custom resources keep their kind, and their lists say that they are whole.
            items = [stored.json(resource) for stored in found.items]
            metadata.setdefault("continue", "")
        return b"".join(
            (
                f'{{"kind":"{resource.kind}List","apiVersion":"{resource.api_version}",'.encode(),
                b'"metadata":',
                encode(metadata),
                b',"items":[',
                b",".join(items),
                b"]}",
            )
        )

    def _table(self, items: Sequence[Plain], metadata: Plain) -> Plain:
        return tables.table_of(
            self._resource, items, metadata, self._now(), self._include, self._version
        )

    def _partial(self, plain: Plain) -> Plain:
        return {
            "kind": "PartialObjectMetadata",
            "apiVersion": self._api_version,
            "metadata": plain["metadata"],
        }


# Media types that clients accept.

_META_VERSIONS: Final = ("v1", "v1beta1")
_ACCEPTED: Final = (JSON, YAML, "*/*")
_TRANSFORMED: Final = ("Table", "PartialObjectMetadata", "PartialObjectMetadataList")


class MediaType(msgspec.Struct, frozen=True):
    """One form that a client takes, such as `application/json`.

    The answer is turned into an object of the kind, "" for none.
    """

    name: str
    kind: str = ""
    group: str = ""
    version: str = ""


PLAIN: Final = MediaType(JSON)


def parse_accept(header: str) -> list[MediaType]:
    """Return what an `Accept` header names, best first."""
    return [
        MediaType(
            name, kind=values.get("as", ""), group=values.get("g", ""), version=values.get("v", "")
        )
        for name, values in accepted_types(header)
    ]


def prefers_yaml(header: str) -> bool:
    """Return whether a client prefers YAML to JSON."""
    if YAML not in header:
        return False
    best = next((one for one in parse_accept(header) if one.name in _ACCEPTED), PLAIN)
    return best.name == YAML


def negotiate(header: str) -> MediaType:
    """Return the form of an answer.

    Raises:
        StatusError: The client accepts none of those offered.
    """
    if header in {"", "application/json", "*/*"}:
        return PLAIN
    accepted = parse_accept(header)
    if not any(one.name in _ACCEPTED for one in accepted):
        raise no_representation()
    for one in accepted:
        if one.name not in _ACCEPTED:
            continue
        if not one.kind:
            return one if one.name == YAML else PLAIN
        is_known = one.kind in _TRANSFORMED and one.group == _META_GROUP
        if is_known and one.version in _META_VERSIONS:
            return one
    raise not_acceptable()
