"""HttpRequest and HttpResponse: requests to the secure port and their answers, errors included.

Errors are Status objects in a media type that the client accepts.

Upstream: Go's net/http, for texts and headers that clients see;
          staging/src/k8s.io/apiserver/pkg/endpoints/handlers/{responsewriters/errors.go,negotiation}
          (v1.36)
Differs:  a client that accepts nothing but protobuf gets JSON.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from html import escape
from typing import Final
from urllib.parse import parse_qs

import msgspec

from kubesched.api.go_text import GO_BOOLEANS, GO_JSON_ESCAPES, go_quote
from kubesched.api.media_types import JSON, PLAIN_TEXT, YAML, accepted_types
from kubesched.api.yaml_syntax import dump

HTML: Final = "text/html; charset=utf-8"

_NOSNIFF: Final = ("X-Content-Type-Options", "nosniff")

Headers = tuple[tuple[str, str], ...]


class HttpRequest(msgspec.Struct, frozen=True, kw_only=True):
    """One request to the secure port.

    Attributes:
        path: Decoded.
        target: Path and query as sent.
        headers: Names and values in the order sent.
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
    """The answer to a request; `headers` are those besides the content type."""

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


# Errors.

_PRETTY_AGENTS: Final = ("curl", "Wget", "Mozilla/5.0")
_TYPES: Final = (JSON, YAML)


def unauthorized(request: HttpRequest) -> HttpResponse:
    """Return the response to invalid credentials."""
    return _negotiated(request, 401, "Unauthorized", "Unauthorized")


def forbidden(request: HttpRequest, user_name: str, reason: str) -> HttpResponse:
    """Return the response to a user that may not request a path; the reason may be ""."""
    attempt = (
        f"User {go_quote(user_name)} cannot {request.method.lower()} path {go_quote(request.path)}"
    )
    message = f"forbidden: {escape(attempt, quote=False)}" + (f": {reason}" if reason else "")
    return _negotiated(request, 403, "Forbidden", message, details={}, headers=(_NOSNIFF,))


def not_acceptable(request: HttpRequest, accepted: Sequence[str]) -> HttpResponse:
    """Return the response to a client that accepts none of the media types."""
    message = f"only the following media types are accepted: {', '.join(accepted)}"
    return _negotiated(request, 406, "NotAcceptable", message)


def internal_error(request: HttpRequest, problem: str) -> HttpResponse:
    """Return the response to a request whose authorization failed."""
    text = f"Internal Server Error: {go_quote(request.target or request.path)}: {problem}"
    return error_response(escape(text, quote=False), 500)


def encode(value: Mapping[str, object], media_type: str, *, pretty: bool) -> bytes:
    """Return an object as JSON or YAML, as upstream's serializers write it."""
    if media_type == YAML:
        return dump(value).encode()
    if pretty:
        return json.dumps(value, indent=2, ensure_ascii=False).translate(GO_JSON_ESCAPES).encode()
    compact = json.dumps(value, separators=(",", ":"), ensure_ascii=False)
    return compact.translate(GO_JSON_ESCAPES).encode() + b"\n"


def is_pretty(request: HttpRequest) -> bool:
    """Whether to indent the answer: by parameter, or for browsers and curl."""
    values = [value for value in request.query_values("pretty")[:1] if value]
    if values:
        return GO_BOOLEANS.get(values[0], False)
    return request.header("User-Agent").startswith(_PRETTY_AGENTS)


def _negotiated(
    request: HttpRequest,
    code: int,
    reason: str,
    message: str,
    *,
    details: Mapping[str, object] | None = None,
    headers: Headers = (),
) -> HttpResponse:
    """Return an error as a Status, in a media type that the client accepts."""
    status = {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Failure",
        "message": message,
        "reason": reason,
        **({} if details is None else {"details": details}),
        "code": code,
    }
    wanted = (type_ for type_, _ in accepted_types(request.header("Accept")))
    media_type = next((type_ for type_ in wanted if type_ in _TYPES), JSON)
    body = encode(status, media_type, pretty=is_pretty(request))
    return HttpResponse(status=code, content_type=media_type, body=body, headers=headers)
