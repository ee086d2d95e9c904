"""Errors of requests: what the server answered, or why it did not, as an `ApiError`.

Upstream: staging/src/k8s.io/apimachinery/pkg/api/errors/errors.go,
          staging/src/k8s.io/client-go/rest/request.go, tools/cache/reflector.go (v1.36)
Differs:  an answer that is no Status, of a proxy or a broken server, is quoted, where upstream has
          a sentence for each status code.
"""

from __future__ import annotations

import errno
from collections.abc import Callable
from http.client import responses
from typing import Final

import msgspec

from kubesched.api.errors import (
    AlreadyExistsError,
    ApiError,
    ConflictError,
    GoneError,
    NotFoundError,
    TooManyRequestsError,
)

CONNECTION_REFUSED: Final = "ConnectionRefused"
TIMEOUT: Final = "Timeout"
UNANSWERED: Final = "Unanswered"

_TEXT_LENGTH_MAX: Final = 2048
_BROKEN: Final = frozenset((errno.ECONNRESET, errno.EPIPE, errno.ECONNABORTED, errno.EBADF))


def without_request(message: str) -> str:
    """Return the message of an `ApiError` without the request that had no answer."""
    return message.rpartition('": ')[2]


class _Details(msgspec.Struct, rename="camel"):
    retry_after_seconds: int | None = None


class _Status(msgspec.Struct):
    kind: str = ""
    status: str = ""
    message: str | None = None
    reason: str | None = None
    code: int | None = None
    details: _Details | None = None


_decoder: Final = msgspec.json.Decoder(_Status)

_CLASSES: Final[dict[str, Callable[[str], ApiError]]] = {
    "NotFound": NotFoundError,
    "Conflict": ConflictError,
    "AlreadyExists": AlreadyExistsError,
    "Expired": GoneError,
    "Gone": GoneError,
    "TooManyRequests": TooManyRequestsError,
}
# The reason of a status code without one.
_REASONS: Final = {
    400: "BadRequest",
    401: "Unauthorized",
    403: "Forbidden",
    404: "NotFound",
    405: "MethodNotAllowed",
    406: "NotAcceptable",
    409: "Conflict",
    410: "Gone",
    415: "UnsupportedMediaType",
    422: "Invalid",
    429: "TooManyRequests",
    503: "ServiceUnavailable",
    504: "Timeout",
}


def error_of_answer(
    code: int, body: bytes, *, method: str = "GET", content_type: str = "", retry_after: str = ""
) -> ApiError:
    """Return the error for a response with a status outside 200 to 206.

    The body is a Status or any text; headers are "" if they are missing.
    """
    seconds = retry_after_seconds(retry_after)
    status = error_of_status(body)
    if status is not None:
        if status.retry_after_seconds is None:
            status.retry_after_seconds = seconds
        return status
    reason = _REASONS.get(code, "InternalError" if code >= 500 else "")
    if code == 409 and method == "POST":
        reason = "AlreadyExists"
    answer = f"the server answered {code} {responses.get(code, '')}".rstrip()
    text = _text_of(body, content_type)
    return _error(code, reason, f"{answer}: {text}" if text else answer, seconds)


def error_of_status(body: bytes | msgspec.Raw) -> ApiError | None:
    """Return the error of a Status, None if the JSON is not a Status of a failure."""
    try:
        status = _decoder.decode(body)
    except (msgspec.MsgspecError, UnicodeDecodeError):
        return None
    if status.kind != "Status" or status.status == "Success":
        return None
    seconds = status.details.retry_after_seconds if status.details else None
    return _error(status.code or 0, status.reason or "", status.message or "", seconds or None)


def _error(code: int, reason: str, message: str, retry_after_seconds: int | None) -> ApiError:
    class_ = _CLASSES.get(reason) or _CLASSES.get(_REASONS.get(code, ""))
    error = ApiError(code, "Unknown", message) if class_ is None else class_(message)
    error.code = code or error.code
    error.reason = reason or error.reason
    error.retry_after_seconds = retry_after_seconds
    return error


def _text_of(body: bytes, content_type: str) -> str:
    """Return the beginning of a text as one line, "" for other content types."""
    if content_type and not content_type.strip().lower().startswith("text/"):
        return ""
    return " ".join(body[:_TEXT_LENGTH_MAX].decode(errors="replace").split())


def retry_after_seconds(header: str) -> int | None:
    """Return the seconds of a `Retry-After` header, None if it has none."""
    return int(header) if header.isdecimal() else None


def error_of_failure(failure: OSError, method: str, url: str) -> ApiError:
    """Return the error for a request without a response."""
    is_refused = failure.errno == errno.ECONNREFUSED
    reason, words = CONNECTION_REFUSED if is_refused else UNANSWERED, type(failure).__name__
    if isinstance(failure, TimeoutError):
        reason, words = TIMEOUT, "context deadline exceeded"
    return ApiError(0, reason, f'{method} "{url}": {str(failure) or words}')


def is_broken_connection(failure: OSError) -> bool:
    """Whether an established connection broke."""
    return isinstance(failure, ConnectionResetError) or failure.errno in _BROKEN


def is_server_overwhelmed(error: ApiError) -> bool:
    """Whether to wait and retry: what was read before is still valid."""
    return error.reason == CONNECTION_REFUSED or isinstance(error, TooManyRequestsError)


def is_unanswered(error: ApiError) -> bool:
    """Whether the connection broke or timed out, which is a normal end of a watch."""
    return error.code == 0 and error.reason in {TIMEOUT, UNANSWERED}


def is_version_unavailable(error: ApiError) -> bool:
    """Whether the server no longer has the requested resource version, or does not have it yet."""
    is_too_large = error.reason == TIMEOUT and "Too large resource version" in error.message
    return is_too_large or isinstance(error, GoneError)


def very_short_watch(plural: str) -> ApiError:
    """Return the error for a watch that ended within a second without an event."""
    message = (
        f"very short watch: {plural}: Unexpected watch close - "
        "watch lasted less than a second and no items received"
    )
    return ApiError(0, "VeryShortWatch", message)
