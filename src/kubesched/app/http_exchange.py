"""HttpRequest and HttpResponse: requests to the secure port and their answers.

Upstream: Go's net/http, for texts and headers that clients see
Differs:  the module has no counterpart.
"""

from __future__ import annotations

from typing import Final
from urllib.parse import parse_qs

import msgspec

PLAIN_TEXT: Final = "text/plain; charset=utf-8"
JSON: Final = "application/json"
YAML: Final = "application/yaml"
HTML: Final = "text/html; charset=utf-8"

_NOSNIFF: Final = ("X-Content-Type-Options", "nosniff")

Headers = tuple[tuple[str, str], ...]


class HttpRequest(msgspec.Struct, frozen=True, kw_only=True):
    """One request to the secure port.

    Attributes:
        method: Such as `GET`.
        path: Decoded; begins with a slash.
        target: Path and query as sent.
        headers: Names and values in the order sent.
        body: The body.
        certificates: The client's chain in DER, its own first; empty without one.
    """

    method: str = "GET"
    path: str
    target: str = ""
    headers: Headers = ()
    body: bytes = b""
    certificates: tuple[bytes, ...] = ()

    def header(self, name: str) -> str:
        """Return the first value of a header, "" without one."""
        return next(iter(self.header_values(name)), "")

    def header_values(self, name: str) -> tuple[str, ...]:
        """Return all values of a header; case-insensitive."""
        wanted = name.lower()
        return tuple(value for key, value in self.headers if key.lower() == wanted)

    def query_values(self, name: str) -> tuple[str, ...]:
        """Return all values of a query parameter, () without it."""
        _, _, query = self.target.partition("?")
        return tuple(parse_qs(query, keep_blank_values=True).get(name, ()))


class HttpResponse(msgspec.Struct, frozen=True, kw_only=True):
    """The answer to a request.

    Attributes:
        status: HTTP status.
        content_type: Of the body.
        body: The body.
        headers: Further headers.
    """

    status: int = 200
    content_type: str = PLAIN_TEXT
    body: bytes = b""
    headers: Headers = ()


def text_response(text: str, *, status: int = 200, content_type: str = PLAIN_TEXT) -> HttpResponse:
    """Return an answer with a text and the header `nosniff`."""
    return HttpResponse(
        status=status, content_type=content_type, body=text.encode(), headers=(_NOSNIFF,)
    )


def plain_response(text: str, content_type: str = PLAIN_TEXT) -> HttpResponse:
    """Return an answer with a text, without `nosniff`, where upstream omits it."""
    return HttpResponse(content_type=content_type, body=text.encode())


def error_response(text: str, status: int) -> HttpResponse:
    """Return an error as Go's `http.Error` writes it: the text and a line feed."""
    return text_response(text + "\n", status=status)


def not_found() -> HttpResponse:
    """Return the answer for an unknown path."""
    return error_response("404 page not found", 404)
