"""Lists: the objects that a list's options select, in pages.

Upstream: staging/src/k8s.io/apiserver/pkg/storage/cacher (GetList), etcd3/store.go (v1.36)
Rejects:  with 400: continue tokens that this server did not issue; with 410: versions that are no
          longer kept.
Differs:  a list with a limit of 1 that selects an object by its name may have a continue token.
"""

from __future__ import annotations

import asyncio
import base64
import binascii
from itertools import islice
from typing import Final

import msgspec

from kubesched.api.errors import GoneError
from kubesched.api.json_syntax import JsonSyntaxError
from kubesched.apiserver.list_options import EXACT, ListOptions, Selection, list_version
from kubesched.apiserver.plain import Plain, decode, encode
from kubesched.apiserver.resources import Resource
from kubesched.apiserver.status import StatusError, bad_request, expired
from kubesched.apiserver.stored_object import StoredObject, sort_key
from kubesched.cluster.store import Listing, Store

# How long a list waits for a version that has not come yet.
_WAIT_SECONDS: Final = 3.0
_POLL_SECONDS: Final = 0.05
_TOO_OLD: Final = "The resourceVersion for the provided list is too old."


class ObjectList(msgspec.Struct, frozen=True):
    """A page of a list.

    Attributes:
        items: In the order of their keys.
        version: The version of the store that the page shows.
        continue_token: Where the next page begins; "" for the last.
        remaining: How many objects come after this page; None if it is not known.
    """

    items: tuple[StoredObject, ...]
    version: int
    continue_token: str = ""
    remaining: int | None = None

    def metadata(self) -> Plain:
        """Return the list's metadata as it is sent."""
        metadata: Plain = {"resourceVersion": str(self.version)}
        if self.continue_token:
            metadata["continue"] = self.continue_token
        if self.remaining:
            metadata["remainingItemCount"] = self.remaining
        return metadata


async def list_objects(
    store: Store[StoredObject], resource: Resource, namespace: str, options: ListOptions
) -> ObjectList:
    """Return a page of the objects of a resource, in all namespaces for "".

    Raises:
        StatusError: The version is gone, or was not reached before the timeout.
    """
    version, limit, page = 0, options.limit, None
    if options.continue_token:
        page = page_of(options.continue_token)
        if options.resource_version not in {"", "0"}:
            raise bad_request("specifying resource version is not allowed when using continue")
        version = 0 if page.version == ANY_VERSION else page.version
    else:
        wanted = list_version(options)
        await _wait_for(store, wanted)
        if wanted and (options.match == EXACT or (limit and not options.match)):
            version = wanted
        elif options.resource_version:
            # As upstream: a list that need not be the newest comes from a cache without a limit.
            limit = 0
    kind, space = resource.storage_kind, namespace or None
    try:
        listing = store.list_at(kind, version, space) if version else store.list(kind, space)
    except GoneError:
        raise too_old(page) if page else expired(_TOO_OLD) from None
    return _cut(listing, namespace, options.selection, limit, page.start if page else "")


async def _wait_for(store: Store[StoredObject], version: int) -> None:
    waited = 0.0
    while store.version < version:
        if waited >= _WAIT_SECONDS:
            raise _too_large(version, store.version)
        await asyncio.sleep(_POLL_SECONDS)
        waited += _POLL_SECONDS


def _too_large(version: int, current: int) -> StatusError:
    cause = {"reason": "ResourceVersionTooLarge", "message": "Too large resource version"}
    message = f"Timeout: Too large resource version: {version}, current: {current}"
    return StatusError(504, "Timeout", message, {"causes": [cause], "retryAfterSeconds": 1})


def _cut(
    listing: Listing[StoredObject], namespace: str, selection: Selection, limit: int, start: str
) -> ObjectList:
    """Return the page that begins at a key; with a limit of 0 it is the last one."""
    prefix = f"{namespace}/" if namespace else ""
    # Without a namespace, the order is by namespace, then name.
    ordered = sorted(listing.items, key=sort_key)
    if start:
        ordered = [one for one in ordered if sort_key(one) >= prefix + start]
    matching = (at for at, one in enumerate(ordered) if selection.matches(one))
    positions = list(islice(matching, limit or None))
    page = tuple(ordered[at] for at in positions)
    remaining = len(ordered) - positions[-1] - 1 if limit and len(page) == limit else 0
    if not remaining:
        return ObjectList(page, listing.version)
    next_start = sort_key(page[-1]).removeprefix(prefix) + "\0"
    token = token_of(Page(listing.version, next_start))
    known = remaining if selection.is_everything else None
    return ObjectList(page, listing.version, token, known)


# Pages.

_ENCODING: Final = "meta.k8s.io/v1"
# The version of a token that continues with the current objects.
ANY_VERSION: Final = -1
_PAGE_TOO_OLD: Final = (
    "The provided continue parameter is too old to display a consistent list result. You can "
    "start a new list without the continue parameter, or use the continue token in this response "
    "to retrieve the remainder of the results. Continuing with the provided token results in an "
    "inconsistent list - objects that were created, modified, or deleted between the time the "
    "first chunk was returned and now may show up in the list."
)


class Page(msgspec.Struct, frozen=True):
    """Where a page begins.

    Attributes:
        version: Of the list that the page belongs to; -1 for the newest.
        start: The first key of the page, without the prefix that all keys of the list share.
    """

    version: int
    start: str


def token_of(page: Page) -> str:
    """Return the token of a page."""
    fields: dict[str, str | int] = {"v": _ENCODING, "rv": page.version, "start": page.start}
    return base64.urlsafe_b64encode(encode(fields)).decode().rstrip("=")


def page_of(token: str) -> Page:
    """Return the page of a token; raises StatusError if this server did not issue it."""
    padding = "=" * (-len(token) % 4)
    try:
        text = base64.b64decode(token + padding, altchars=b"-_", validate=True)
    except (binascii.Error, ValueError):
        raise _malformed("illegal base64 data at input byte 0") from None
    try:
        fields = decode(text)
    except JsonSyntaxError as error:
        raise _malformed(str(error)) from None
    if not isinstance(fields, dict) or fields.get("v") != _ENCODING:
        raise _malformed("server does not recognize this encoded version")
    version, start = fields.get("rv"), fields.get("start")
    if not isinstance(version, int) or version == 0:
        raise _malformed(f"incorrect encoded start resourceVersion (version {_ENCODING})")
    if not isinstance(start, str) or not start:
        raise _malformed(f"encoded start key empty (version {_ENCODING})")
    return Page(version, start)


def _malformed(why: str) -> StatusError:
    return bad_request(f"invalid continue token: continue key is not valid: {why}")


def too_old(page: Page) -> StatusError:
    """Return the error for a page whose version is gone, with a token to continue with."""
    token = token_of(Page(ANY_VERSION, page.start))
    return expired(_PAGE_TOO_OLD, {"continue": token})
