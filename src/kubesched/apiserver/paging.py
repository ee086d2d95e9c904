"""Continue tokens: where the next page of a list begins, and at which version.

Upstream: staging/src/k8s.io/apiserver/pkg/storage/continue.go (v1.36)
Differs:  nothing.
"""

from __future__ import annotations

import base64
import binascii
from typing import Final

import msgspec

from kubesched.api.json_syntax import text_fault
from kubesched.apiserver.plain import encode
from kubesched.apiserver.status import StatusError, bad_request, expired

_ENCODING: Final = "meta.k8s.io/v1"
# The version of a token that goes on with whatever is there now.
ANY_VERSION: Final = -1
_TOO_OLD: Final = (
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
        start: The first key that it may hold, less what all keys of the list begin with.
    """

    version: int
    start: str


def token_of(page: Page) -> str:
    """Return the token of a page."""
    fields: dict[str, str | int] = {"v": _ENCODING, "rv": page.version, "start": page.start}
    return base64.urlsafe_b64encode(encode(fields)).decode().rstrip("=")


def page_of(token: str) -> Page:
    """Return the page of a token.

    Raises:
        StatusError: It is none of ours.
    """
    padding = "=" * (-len(token) % 4)
    try:
        text = base64.b64decode(token + padding, altchars=b"-_", validate=True)
    except (binascii.Error, ValueError):
        raise _malformed("illegal base64 data at input byte 0") from None
    try:
        fields = msgspec.json.decode(text)
    except msgspec.DecodeError:
        raise _malformed(text_fault(text) or "json: no object") from None
    if not isinstance(fields, dict) or fields.get("v") != _ENCODING:
        raise bad_request(
            "invalid continue token: continue key is not valid: server does not "
            "recognize this encoded version"
        )
    version, start = fields.get("rv"), fields.get("start")
    if not isinstance(version, int) or version == 0:
        raise bad_request(
            "invalid continue token: continue key is not valid: incorrect encoded start "
            "resourceVersion (version meta.k8s.io/v1)"
        )
    if not isinstance(start, str) or not start:
        raise bad_request(
            "invalid continue token: continue key is not valid: encoded start key empty "
            "(version meta.k8s.io/v1)"
        )
    return Page(version, start)


def _malformed(why: str) -> StatusError:
    return bad_request(f"invalid continue token: continue key is not valid: {why}")


def too_old(page: Page) -> StatusError:
    """Return the error for a page whose version is gone, with a token that leads on."""
    token = token_of(Page(ANY_VERSION, page.start))
    return expired(_TOO_OLD, {"continue": token})
