"""How objects, lists and events look to a client: plain, as a table, or metadata only.

Upstream: staging/src/k8s.io/apiserver/pkg/endpoints/handlers/response.go (v1.36)
Differs:  nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Final

from kubesched.apiserver import tables
from kubesched.apiserver.listing import ObjectList
from kubesched.apiserver.media_types import MediaType
from kubesched.apiserver.plain import Plain, encode
from kubesched.apiserver.resources import Resource
from kubesched.apiserver.status import StatusError, bad_request
from kubesched.apiserver.stored_object import StoredObject

_INCLUDES: Final = ("", "Metadata", "None", "Object")
_META_GROUP: Final = "meta.k8s.io"


class Presentation:
    """The form that one client wants.

    Attributes:
        is_plain: Whether objects are sent as they are.
    """

    def __init__(
        self,
        resource: Resource,
        media_type: MediaType,
        include_object: str,
        now: Callable[[], datetime],
    ) -> None:
        """Remember the form.

        Args:
            resource: What is shown.
            media_type: The form.
            include_object: What rows of a table carry; "" for metadata.
            now: The present, for ages.

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
        """Check that the form is one of single objects.

        Raises:
            StatusError: It is one of lists.
        """
        if self._kind == "PartialObjectMetadataList":
            raise self._mismatch("not a list", "")

    def one(self, stored: StoredObject) -> bytes:
        """Return an object."""
        if self.is_plain:
            return stored.json(self._resource)
        return encode(self.transformed(stored.form(self._resource)))

    def transformed(self, plain: Plain, *, has_columns: bool = True) -> Plain:
        """Return one object as a table or as its metadata.

        Args:
            plain: The object.
            has_columns: Whether a table says what its columns are.
        """
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
        resource = self._resource
        return b"".join(
            (
                f'{{"kind":"{resource.kind}List","apiVersion":"{resource.api_version}",'.encode(),
                b'"metadata":',
                encode(found.metadata()),
                b',"items":[',
                b",".join([stored.item(resource) for stored in found.items]),
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
