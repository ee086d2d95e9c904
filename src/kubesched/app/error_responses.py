"""Error responses of the secure port: Status objects in a media type that the client accepts.

Upstream: staging/src/k8s.io/apiserver/pkg/endpoints/handlers/responsewriters/errors.go,
          staging/src/k8s.io/apiserver/pkg/endpoints/handlers/negotiation (v1.36)
Differs:  a client that accepts nothing but protobuf gets JSON.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from kubesched.api.go_text import go_quote
from kubesched.api.yaml_syntax import dump
from kubesched.app.http_exchange import (
    JSON,
    YAML,
    Headers,
    HttpRequest,
    HttpResponse,
    error_response,
)

_NOSNIFF: Final[Headers] = (("X-Content-Type-Options", "nosniff"),)
_PRETTY_AGENTS: Final = ("curl", "Wget", "Mozilla/5.0")
_TRUE: Final = frozenset(("1", "t", "T", "true", "TRUE", "True"))
_TYPES: Final = (JSON, YAML)


def unauthorized(request: HttpRequest) -> HttpResponse:
    """Return the response to invalid credentials."""
    return _negotiated(request, _status(401, "Unauthorized", "Unauthorized"))


def forbidden(request: HttpRequest, user_name: str, reason: str) -> HttpResponse:
    """Return the response to a user that may not request a path.

    Args:
        request: The request.
        user_name: Of the user.
        reason: Of the API server; "" for none.
    """
    attempt = (
        f"User {go_quote(user_name)} cannot {request.method.lower()} path {go_quote(request.path)}"
    )
    message = f"forbidden: {_sanitized(attempt)}" + (f": {reason}" if reason else "")
    return _negotiated(request, _status(403, "Forbidden", message, details={}), _NOSNIFF)


def not_acceptable(request: HttpRequest, accepted: Sequence[str]) -> HttpResponse:
    """Return the response to a client that accepts none of the media types."""
    message = f"only the following media types are accepted: {', '.join(accepted)}"
    return _negotiated(request, _status(406, "NotAcceptable", message))


def internal_error(request: HttpRequest, problem: str) -> HttpResponse:
    """Return the response to a request whose authorization failed."""
    text = f"Internal Server Error: {go_quote(request.target or request.path)}: {problem}"
    return error_response(_sanitized(text), 500)


def encode(value: Mapping[str, object], media_type: str, *, pretty: bool) -> bytes:
    """Return an object as JSON or YAML, as upstream's serializers write it."""
    if media_type == YAML:
        return dump(value).encode()
    if pretty:
        return _html_safe(json.dumps(value, indent=2, ensure_ascii=False)).encode()
    compact = json.dumps(value, separators=(",", ":"), ensure_ascii=False)
    return _html_safe(compact).encode() + b"\n"


def is_pretty(request: HttpRequest) -> bool:
    """Whether to indent the answer: by parameter, or for browsers and curl."""
    values = [value for value in request.query_values("pretty")[:1] if value]
    if values:
        return values[0] in _TRUE
    return request.header("User-Agent").startswith(_PRETTY_AGENTS)


def accepted_types(header: str) -> Iterable[tuple[str, dict[str, str]]]:
    """Return media types and their parameters, the most preferred first."""
    clauses = [_clause(text) for text in header.split(",") if text.strip()]
    clauses.sort(key=lambda clause: -_quality(clause[1]))
    return clauses


def _clause(text: str) -> tuple[str, dict[str, str]]:
    media_type, *parameters = (part.strip() for part in text.split(";"))
    named = (parameter.partition("=") for parameter in parameters)
    return media_type.lower(), {name.strip(): value.strip() for name, _, value in named}


def _quality(parameters: Mapping[str, str]) -> float:
    try:
        return float(parameters.get("q", "1"))
    except ValueError:
        return 1.0


def _status(
    code: int, reason: str, message: str, *, details: dict[str, object] | None = None
) -> dict[str, object]:
    return {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Failure",
        "message": message,
        "reason": reason,
        **({} if details is None else {"details": details}),
        "code": code,
    }


def _negotiated(
    request: HttpRequest, status: Mapping[str, object], headers: Headers = ()
) -> HttpResponse:
    wanted = (type_ for type_, _ in accepted_types(request.header("Accept")))
    media_type = next((type_ for type_ in wanted if type_ in _TYPES), JSON)
    body = encode(status, media_type, pretty=is_pretty(request))
    code = status["code"]
    assert isinstance(code, int)
    return HttpResponse(status=code, content_type=media_type, body=body, headers=headers)


def _sanitized(text: str) -> str:
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def _html_safe(text: str) -> str:
    """Escape the characters that Go's JSON encoder escapes."""
    for character in "&<>\u2028\u2029":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return text
