"""Lists of all objects of a kind, in pages where that is cheaper for the server.

Upstream: staging/src/k8s.io/client-go/tools/pager/pager.go, tools/cache/reflector.go, list (v1.36)
Reads:    lists of each kind, in pages, several kinds at a time
Differs:  a kind that the server does not have in its current version is read in an older one.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping
from http import HTTPStatus
from typing import Final, NamedTuple

import msgspec

from kubesched.api.errors import ApiError
from kubesched.api.meta import KubeObject
from kubesched.api.scheme import Kind
from kubesched.client.requests import Request, Rest, path_of
from kubesched.client.watch_events import WatchDecoder

PAGE_SIZE: Final = 500
# Objects decoded before the event loop runs other tasks: a millisecond or two.
_OBJECTS_AT_ONCE: Final = 128


class ListResult:
    """The objects of a list that have been read, and its resource version."""

    def __init__(self) -> None:
        self.items: list[KubeObject] = []
        self.version = ""


async def read_list(
    rest: Rest,
    decoder: WatchDecoder,
    path: str,
    selectors: Mapping[str, str] = {},
    version: str = "",
    limit: int = PAGE_SIZE,
) -> ListResult:
    """Read all objects of a collection, in pages of `limit` objects, 0 for no paging.

    `version` is the minimum resource version: "" for the newest, "0" for any. If the list expires
    on the server while pages are read, it is read again without paging. Raises ApiError if the
    server refuses.
    """
    listing, token = ListResult(), ""
    while True:
        since = "" if token else version
        given = {"continue": token, **selectors, "limit": limit, "resourceVersion": since}
        query = {name: str(value) for name, value in given.items() if value}
        try:
            page = decoder.page(await rest.send(Request(path=path, query=query)))
        except ApiError as error:
            if not token or error.reason != "Expired":
                raise
            listing, token, limit = ListResult(), "", 0
            continue
        for item in page.items or ():
            listing.items.append(decoder.item(item) if isinstance(item, msgspec.Raw) else item)
            if len(listing.items) % _OBJECTS_AT_ONCE == 0:
                await asyncio.sleep(0)
        listing.version = listing.version or page.metadata.resource_version
        token = page.metadata.continue_ or ""
        if not token:
            return listing


# Lists of many kinds.

_LISTS_AT_ONCE: Final = 8


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

    Raises ApiError if the server does not answer, refuses for another reason than permissions, or
    lacks a kind of the core group.
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
            try:
                # The newest version, as kubectl: a cache may lag behind.
                listing = await read_list(rest, WatchDecoder(kind), path)
            except ApiError as error:
                if error.code == HTTPStatus.FORBIDDEN:
                    return KindList(kind, [], is_forbidden=True)
                # Every API server has the kinds of the core group.
                if error.code != HTTPStatus.NOT_FOUND or not kind.group:
                    raise
            else:
                return KindList(kind, listing.items)
        return KindList(kind, [])
