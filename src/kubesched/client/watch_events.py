"""WatchDecoder decodes the lines of a watch and the pages of a list into typed objects.

Event and object are decoded in one pass. Only what that pass rejects (nulls, Statuses, bookmarks
without a spec) is decoded again by a slower way.

Upstream: staging/src/k8s.io/client-go/rest/watch/decoder.go,
          staging/src/k8s.io/apimachinery/pkg/watch/streamwatcher.go (v1.36)
Invariants: objects of lists have kind and apiVersion, as those of watches do.
Differs:  nothing.
"""

from __future__ import annotations

from typing import Any, Final, Generic, TypeVar

import msgspec
from msgspec.structs import force_setattr

from kubesched.api.decode import DecodeError, decode_object
from kubesched.api.errors import ApiError
from kubesched.api.meta import KubeObject, ObjectMeta
from kubesched.api.scheme import Kind
from kubesched.client.errors import error_of_status
from kubesched.client.shared_parts import SharedParts

T = TypeVar("T")

ADDED: Final = "ADDED"
MODIFIED: Final = "MODIFIED"
DELETED: Final = "DELETED"
_BOOKMARK: Final = "BOOKMARK"
_ERROR: Final = "ERROR"
_INITIAL_EVENTS_END: Final = "k8s.io/initial-events-end"
# Larger pages are split into raw objects first, so that decoding can be interrupted.
_PAGE_BYTES_AT_ONCE: Final = 8 << 20


class WatchEvent(msgspec.Struct, Generic[T]):
    """A watch event; the type is `ADDED`, `MODIFIED` or `DELETED`."""

    type: str
    object: T


class Bookmark(msgspec.Struct, frozen=True):
    """The version up to which the watch is complete."""

    resource_version: str
    is_initial_events_end: bool


class ListMeta(msgspec.Struct, frozen=True, rename="camel"):
    """The version of a list, and the token of its next page if there is one."""

    resource_version: str = ""
    continue_: str | None = msgspec.field(default=None, name="continue")


class ListPage(msgspec.Struct, Generic[T]):
    """A list or a page of one; without kind, version and items it is not a list."""

    kind: str = ""
    metadata: ListMeta = ListMeta()
    items: list[T] | None = None


class _OnlyMeta(msgspec.Struct):
    metadata: ObjectMeta = ObjectMeta()


_anything: Final = msgspec.json.Decoder(WatchEvent[msgspec.Raw])
_only_meta: Final = msgspec.json.Decoder(_OnlyMeta)
_raw_page: Final = msgspec.json.Decoder(ListPage[msgspec.Raw])


class WatchDecoder:
    """Decodes objects of one kind; equal parts are stored once."""

    def __init__(self, kind: Kind) -> None:
        self._kind_name = kind.kind
        self._api_version = kind.api_version
        self._parts = SharedParts(kind.type)
        # The class is known only at run time, so type checkers cannot follow.
        event_of: Any = WatchEvent
        page_of: Any = ListPage
        self._event: msgspec.json.Decoder[WatchEvent[KubeObject]]
        self._event = msgspec.json.Decoder(event_of[kind.type])
        self._page: msgspec.json.Decoder[ListPage[KubeObject]]
        self._page = msgspec.json.Decoder(page_of[kind.type])
        self._object: msgspec.json.Decoder[Any] = msgspec.json.Decoder(kind.type)

    def event(self, line: bytes) -> WatchEvent[KubeObject] | Bookmark:
        """Return the event of a line.

        Raises:
            ApiError: The watch failed, or the line cannot be decoded; then the code is 500.
        """
        try:
            event = self._event.decode(line)
        except (msgspec.DecodeError, RecursionError):
            return self._slow_event(line)
        word = event.type
        if word == _BOOKMARK:
            return _bookmark(event.object.metadata)
        if word == _ERROR:
            return self._slow_event(line)
        event.object = self._finished(event.object)
        return event

    def _slow_event(self, line: bytes) -> WatchEvent[KubeObject] | Bookmark:
        try:
            event = _anything.decode(line)
            if event.type == _ERROR:
                raise _refusal(event.object)
            if event.type == _BOOKMARK:
                return _bookmark(_only_meta.decode(event.object).metadata)
            return WatchEvent(event.type, self._finished(self._slow_object(event.object)))
        except (msgspec.DecodeError, DecodeError, RecursionError) as error:
            message = f"unable to decode an event from the watch stream: {error}"
            raise ApiError(500, "InternalError", message) from None

    def _slow_object(self, raw: msgspec.Raw) -> KubeObject:
        plain = msgspec.json.decode(raw)
        if not isinstance(plain, dict):
            raise msgspec.ValidationError("expected an object")
        # The items of a list have no kind.
        return decode_object(plain | {"apiVersion": self._api_version, "kind": self._kind_name})

    def page(self, body: bytes) -> ListPage[KubeObject] | ListPage[msgspec.Raw]:
        """Return a page of a list; the objects of large ones are not decoded yet.

        Raises:
            ApiError: It is not a list of this kind; the code is 500.
        """
        try:
            return self._page_of(body)
        except (msgspec.DecodeError, RecursionError) as error:
            raise ApiError(500, "InternalError", f"unable to decode the list: {error}") from None

    def _page_of(self, body: bytes) -> ListPage[KubeObject] | ListPage[msgspec.Raw]:
        if len(body) > _PAGE_BYTES_AT_ONCE:
            return _raw_page.decode(body)
        try:
            page = self._page.decode(body)
        except msgspec.ValidationError:
            return _raw_page.decode(body)
        if page.items is None and not (page.kind or page.metadata.resource_version):
            raise msgspec.ValidationError("Object 'Kind' is missing")
        page.items = [self._finished(item) for item in page.items or ()]
        return page

    def item(self, raw: msgspec.Raw) -> KubeObject:
        """Return an object of a page.

        Raises:
            ApiError: It cannot be decoded; the code is 500.
        """
        try:
            try:
                item: KubeObject = self._object.decode(raw)
            except msgspec.ValidationError:
                item = self._slow_object(raw)
        except (msgspec.DecodeError, DecodeError, RecursionError) as error:
            message = f"unable to decode an object of the list: {error}"
            raise ApiError(500, "InternalError", message) from None
        finished: KubeObject = self._finished(item)
        return finished

    def _finished(self, item: Any) -> Any:
        # The object is not in use yet, so it may be changed in place.
        force_setattr(item, "kind", self._kind_name)
        force_setattr(item, "api_version", self._api_version)
        self._parts.share(item)
        return item


def _bookmark(metadata: ObjectMeta) -> Bookmark:
    is_end = metadata.annotations.get(_INITIAL_EVENTS_END) == "true"
    return Bookmark(metadata.resource_version, is_end)


def _refusal(raw: msgspec.Raw) -> ApiError:
    error = error_of_status(raw)
    if error is None:
        message = (
            f"unexpected object in an error event: {bytes(raw)[:200].decode(errors='replace')}"
        )
        return ApiError(500, "InternalError", message)
    # A code of 0 would mean that there was no response.
    error.code = error.code or 500
    return error
