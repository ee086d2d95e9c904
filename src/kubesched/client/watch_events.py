"""Decode the lines of a watch, and the pages of a list, into typed objects.

A line is read in one pass, envelope and object together; only what that pass refuses (nulls,
Statuses, bookmarks without a spec) is read again the slow way.

Upstream: staging/src/k8s.io/client-go/rest/watch/decoder.go,
          staging/src/k8s.io/apimachinery/pkg/watch/streamwatcher.go (v1.36)
Invariants: objects of lists and of watches say their kind and apiVersion alike.
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
# Larger pages are cut into their objects first, so that reading them can be interrupted.
_PAGE_BYTES_AT_ONCE: Final = 8 << 20


class WatchEvent(msgspec.Struct, Generic[T]):
    """What happened to an object; the type is a word such as `ADDED`."""

    type: str
    object: T


class Bookmark(msgspec.Struct, frozen=True):
    """How far the watch has come, without any object having changed."""

    resource_version: str
    is_initial_events_end: bool


class ListMeta(msgspec.Struct, frozen=True, rename="camel"):
    """Where a list stands, and how to go on with it if `continue_` is not empty."""

    resource_version: str = ""
    continue_: str | None = msgspec.field(default=None, name="continue")


class ListPage(msgspec.Struct, Generic[T]):
    """A list, or a part of one; without kind, version and items it is something else."""

    kind: str = ""
    metadata: ListMeta = ListMeta()
    items: list[T] | None = None


class _OnlyMeta(msgspec.Struct):
    metadata: ObjectMeta = ObjectMeta()


_anything: Final = msgspec.json.Decoder(WatchEvent[msgspec.Raw])
_only_meta: Final = msgspec.json.Decoder(_OnlyMeta)
_raw_page: Final = msgspec.json.Decoder(ListPage[msgspec.Raw])


class WatchDecoder:
    """Decodes objects of one kind; equal parts of them are kept once."""

    def __init__(self, kind: Kind) -> None:
        self._kind_name = kind.kind
        self._api_version = kind.api_version
        self._parts = SharedParts(kind.type)
        # The class is known only when this runs, so type checkers cannot follow.
        event_of: Any = WatchEvent
        page_of: Any = ListPage
        self._event: msgspec.json.Decoder[WatchEvent[KubeObject]]
        self._event = msgspec.json.Decoder(event_of[kind.type])
        self._page: msgspec.json.Decoder[ListPage[KubeObject]]
        self._page = msgspec.json.Decoder(page_of[kind.type])
        self._object: msgspec.json.Decoder[Any] = msgspec.json.Decoder(kind.type)

    def event(self, line: bytes) -> WatchEvent[KubeObject] | Bookmark:
        """Return what a line of a watch says.

        Raises:
            ApiError: It says that the watch failed, or it says nothing that can be read; then the
                code is 500.
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
        # The items of a list do not say what they are.
        return decode_object(plain | {"apiVersion": self._api_version, "kind": self._kind_name})

    def page(self, body: bytes) -> ListPage[KubeObject] | ListPage[msgspec.Raw]:
        """Return a list as the server sent it; large ones with their objects still to be decoded.

        Raises:
            ApiError: It is no list of this kind; the code is 500.
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
            ApiError: It cannot be read; the code is 500.
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
        # Nobody else has seen the object yet, so it may still be changed in place.
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
    # A code of 0 would stand for no answer, and this is one.
    error.code = error.code or 500
    return error
