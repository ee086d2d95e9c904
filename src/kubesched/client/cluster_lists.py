"""Reads all objects of several kinds once, without watching them.

Upstream: staging/src/k8s.io/client-go/tools/pager/pager.go (v1.36)
Reads:    lists of each kind, in pages, several kinds at a time
Differs:  a kind that the server does not have in its current version is read in an older one.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import Final, NamedTuple

from kubesched.api.errors import ApiError
from kubesched.api.meta import KubeObject
from kubesched.api.scheme import Kind
from kubesched.client.lister import Lister
from kubesched.client.requests import Rest, path_of
from kubesched.client.watch_events import WatchDecoder

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
