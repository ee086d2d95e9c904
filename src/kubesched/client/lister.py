"""Lister reads all objects of a kind, in pages where that is cheaper for the server.

Upstream: staging/src/k8s.io/client-go/tools/pager/pager.go, tools/cache/reflector.go, list (v1.36)
Reads:    lists of each kind, in pages, several kinds at a time
Differs:  a kind that the server does not have in its current version is read in an older one.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import Final, NamedTuple

import msgspec

from kubesched.api.errors import ApiError
from kubesched.api.meta import KubeObject
from kubesched.api.scheme import Kind
from kubesched.client.requests import Query, Request, Rest, path_of
from kubesched.client.watch_events import ListPage, WatchDecoder

_PAGE_SIZE: Final = 500
# Objects decoded before the event loop runs other tasks: a millisecond or two.
_OBJECTS_AT_ONCE: Final = 128

AnyPage = ListPage[KubeObject] | ListPage[msgspec.Raw]


class ListResult:
    """The part of a list that has been read.

    Attributes:
        items: The objects.
        version: The resource version of the list.
        pages: The number of pages.
    """

    def __init__(self) -> None:
        self.items: list[KubeObject] = []
        self.version = ""
        self.pages = 0


class Lister:
    """Lists one kind."""

    def __init__(self, rest: Rest, decoder: WatchDecoder, path: str, selectors: Query) -> None:
        """Set up for the collection at a path; the selectors are sent with every request."""
        self._rest = rest
        self._decoder = decoder
        self._path = path
        self._selectors = selectors
        # Whether the first list was paged although a cache could have served it.
        self._has_pages = False

    def limit_for(self, version: str) -> int:
        """Return the page size, 0 for no paging.

        A list at a minimum version can be served from a cache, but not in pages.
        """
        return _PAGE_SIZE if self._has_pages or version in ("", "0") else 0

    async def list(self, version: str, limit: int) -> ListResult:
        """Read all pages; without paging if the list expires on the server meanwhile.

        `version` is the minimum resource version: "" for the newest, "0" for any. `limit` is the
        page size.

        Raises:
            ApiError: The server refused.
        """
        listing = await self._all_pages(version, limit)
        if version == "0" and listing.pages > 1:
            self._has_pages = True
        return listing

    async def _all_pages(self, version: str, limit: int) -> ListResult:
        listing = ListResult()
        token: str | None = await self._read(listing, version, limit, "")
        while token:
            try:
                token = await self._read(listing, "", limit, token)
            except ApiError as error:
                if error.reason != "Expired":
                    raise
                pages, listing = listing.pages, ListResult()
                await self._read(listing, version, 0, "")
                listing.pages = pages
                break
        return listing

    async def _read(self, listing: ListResult, version: str, limit: int, token: str) -> str | None:
        """Read a page; return the continue token of the next one."""
        query: Query = (
            *((("continue", token),) if token else ()),
            *self._selectors,
            *((("limit", str(limit)),) if limit else ()),
            *((("resourceVersion", version),) if version else ()),
        )
        request = Request(path=self._path, query=query)
        page = self._decoder.page(await self._rest.send(request))
        await self._add(listing, page)
        listing.version = listing.version or page.metadata.resource_version
        listing.pages += 1
        return page.metadata.continue_

    async def _add(self, listing: ListResult, page: AnyPage) -> None:
        for item in page.items or ():
            whole = self._decoder.item(item) if isinstance(item, msgspec.Raw) else item
            listing.items.append(whole)
            if len(listing.items) % _OBJECTS_AT_ONCE == 0:
                await asyncio.sleep(0)


# Lists of many kinds.

_LISTS_AT_ONCE: Final = 8
_FORBIDDEN: Final = 403
_NOT_FOUND: Final = 404


class KindList(NamedTuple):
    """All objects of a kind.

    Attributes:
        kind: The kind.
        items: Its objects; none if the server does not have the kind.
        is_forbidden: Whether the user may not list them.
    """

    kind: Kind
    items: list[KubeObject]
    is_forbidden: bool = False


async def list_kinds(rest: Rest, kinds: Iterable[Kind]) -> list[KindList]:
    """Return the objects of each kind, in the order of the kinds.

    Raises:
        ApiError: The server did not answer, or refused for another reason than permissions.
    """
    turns = asyncio.Semaphore(_LISTS_AT_ONCE)
    try:
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(_list(rest, kind, turns)) for kind in kinds]
    except ExceptionGroup as errors:
        raise errors.exceptions[0] from None
    return [task.result() for task in tasks]


async def _list(rest: Rest, kind: Kind, turns: asyncio.Semaphore) -> KindList:
    async with turns:
        for version in kind.versions:
            path = path_of(kind._replace(versions=(version,)))
            lister = Lister(rest, WatchDecoder(kind), path, ())
            try:
                # The newest version, as kubectl: a cache may lag behind.
                listing = await lister.list("", lister.limit_for(""))
            except ApiError as error:
                if error.code == _FORBIDDEN:
                    return KindList(kind, [], is_forbidden=True)
                if error.code != _NOT_FOUND:
                    raise
            else:
                return KindList(kind, listing.items)
        return KindList(kind, [])
