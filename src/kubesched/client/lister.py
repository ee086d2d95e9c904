"""Lister reads all objects of a kind, page by page where that is better for the server.

Upstream: staging/src/k8s.io/client-go/tools/pager/pager.go, tools/cache/reflector.go, list (v1.36)
Differs:  nothing.
"""

from __future__ import annotations

import asyncio
from typing import Final

import msgspec

from kubesched.api.errors import ApiError
from kubesched.api.meta import KubeObject
from kubesched.client.requests import Query, Request, Rest
from kubesched.client.watch_events import ListPage, WatchDecoder

_PAGE_SIZE: Final = 500
# So many objects are decoded before others have a turn; a millisecond or two.
_OBJECTS_AT_ONCE: Final = 128

AnyPage = ListPage[KubeObject] | ListPage[msgspec.Raw]


class ListResult:
    """A list as far as it has been read.

    Attributes:
        items: The objects.
        version: The resource version of the list.
        pages: How many pages it came in.
    """

    def __init__(self) -> None:
        self.items: list[KubeObject] = []
        self.version = ""
        self.pages = 0


class Lister:
    """Lists one kind."""

    def __init__(self, rest: Rest, decoder: WatchDecoder, path: str, selectors: Query) -> None:
        """Set up.

        Args:
            rest: Sends the requests.
            decoder: Of the kind.
            path: Of the collection.
            selectors: Go with every request.
        """
        self._rest = rest
        self._decoder = decoder
        self._path = path
        self._selectors = selectors
        # Whether the first list came in pages although it might have come from a cache.
        self._has_pages = False

    def limit_for(self, version: str) -> int:
        """Return how many objects a page may have, 0 for any number.

        What is at least as new as some version can come from a cache, but not in pages.
        """
        return _PAGE_SIZE if self._has_pages or version in ("", "0") else 0

    async def list(self, version: str, limit: int) -> ListResult:
        """Read page after page; everything at once if the server forgets the list meanwhile.

        Args:
            version: How new the objects are at least; "" for the newest, "0" for any.
            limit: How many objects a page may have.

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
        """Add a page; return what the next one is asked for with."""
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
