from __future__ import annotations

import errno
import json

import pytest

from kubesched.api.errors import (
    AlreadyExistsError,
    ApiError,
    ConflictError,
    GoneError,
    NotFoundError,
    TooManyRequestsError,
)
from kubesched.client.dial import DialError
from kubesched.client.errors import (
    error_of_answer,
    error_of_failure,
    error_of_status,
    is_broken_connection,
    retry_after_seconds,
)


def _status(code: int, reason: str, **more: object) -> bytes:
    status = {"kind": "Status", "status": "Failure", "code": code, "reason": reason, "message": "m"}
    return json.dumps({**status, **more}).encode()


@pytest.mark.parametrize(
    ("code", "reason", "class_"),
    [
        (404, "NotFound", NotFoundError),
        (409, "Conflict", ConflictError),
        (409, "AlreadyExists", AlreadyExistsError),
        (410, "Expired", GoneError),
        (410, "Gone", GoneError),
        (429, "TooManyRequests", TooManyRequestsError),
        (422, "Invalid", ApiError),
        (403, "Forbidden", ApiError),
        (504, "Timeout", ApiError),
    ],
)
def test_status_has_its_class(code: int, reason: str, class_: type[ApiError]) -> None:
    """Code, reason and message are the server's; the class depends on the reason."""
    error = error_of_answer(code, _status(code, reason))
    assert class_ is type(error)
    assert (code, reason, "m") == (error.code, error.reason, error.message)
    assert error.retry_after_seconds is None


def test_status_without_reason() -> None:
    """The class depends on the code if there is no reason."""
    assert NotFoundError is type(error_of_answer(404, _status(404, "")))
    assert GoneError is type(error_of_answer(410, _status(410, "")))


def test_retry_after() -> None:
    """The seconds are in the Status or, failing that, in the header."""
    status = _status(429, "TooManyRequests", details={"retryAfterSeconds": 7})
    assert 7.0 == error_of_answer(429, status, retry_after="1").retry_after_seconds
    plain = _status(500, "ServerTimeout")
    assert 3.0 == error_of_answer(500, plain, retry_after="3").retry_after_seconds
    assert 2.0 == error_of_answer(429, b"", retry_after="2").retry_after_seconds


@pytest.mark.parametrize(
    ("code", "method", "body", "content_type", "reason", "message"),
    [
        pytest.param(
            *(500, "GET", b"oh\n", "text/plain; charset=utf-8", "InternalError"),
            "500 Internal Server Error: oh",
            id="text",
        ),
        pytest.param(
            *(502, "GET", b"<html>", "application/json", "InternalError", "502 Bad Gateway"),
            id="not text",
        ),
        pytest.param(409, "POST", b"", "", "AlreadyExists", "409 Conflict", id="on create"),
        pytest.param(409, "PUT", b"", "", "Conflict", "409 Conflict", id="conflict"),
        pytest.param(
            *(403, "GET", b"no way", "text/plain", "Forbidden", "403 Forbidden: no way"),
            id="forbidden",
        ),
        pytest.param(
            *(401, "GET", b"", "text/plain", "Unauthorized", "401 Unauthorized"), id="unauthorized"
        ),
        pytest.param(
            *(503, "GET", b"x", "text/plain", "ServiceUnavailable", "503 Service Unavailable: x"),
            id="unavailable",
        ),
        pytest.param(
            *(404, "GET", b"<html>\n  <p>no\r\n", "text/html", "NotFound"),
            "404 Not Found: <html> <p>no",
            id="several lines",
        ),
        pytest.param(302, "GET", b"", "", "Unknown", "302 Found", id="redirect"),
        pytest.param(499, "GET", b"", "", "Unknown", "499", id="unknown code"),
    ],
)
def test_answers_without_a_status(
    code: int, method: str, body: bytes, content_type: str, reason: str, message: str
) -> None:
    """Answers of proxies and broken servers are quoted."""
    error = error_of_answer(code, body, method=method, content_type=content_type)
    assert (code, reason) == (error.code, error.reason)
    assert f"the server answered {message}" == error.message


@pytest.mark.parametrize(
    "body", [b"", b"{", b"[]", b"\xff", b'{"kind":"Pod"}', b'{"kind":"Status","status":"Success"}']
)
def test_bodies_without_a_failure(body: bytes) -> None:
    """Only a Status with `Failure` is an error."""
    assert error_of_status(body) is None


@pytest.mark.parametrize(
    ("header", "seconds"),
    [("5", 5), ("0", 0), ("-3", None), ("", None), ("1.5", None), ("soon", None)],
)
def test_retry_after_is_a_whole_number(header: str, seconds: int | None) -> None:
    """Dates are ignored."""
    assert seconds == retry_after_seconds(header)


@pytest.mark.parametrize(
    ("failure", "reason", "is_broken"),
    [
        (TimeoutError(), "Timeout", False),
        (ConnectionRefusedError(errno.ECONNREFUSED, "refused"), "ConnectionRefused", False),
        (ConnectionResetError(errno.ECONNRESET, "reset"), "Unanswered", True),
        (ConnectionResetError("EOF"), "Unanswered", True),
        (BrokenPipeError(errno.EPIPE, "pipe"), "Unanswered", True),
        (OSError("unexpected EOF"), "Unanswered", False),
        (ConnectionAbortedError("closed"), "Unanswered", False),
        (DialError("refused", errno.ECONNREFUSED), "ConnectionRefused", False),
        (DialError("reset", errno.ECONNRESET), "Unanswered", True),
    ],
)
def test_failures_have_reasons(failure: OSError, reason: str, is_broken: bool) -> None:
    """An error without an answer has code 0 and a reason."""
    error = error_of_failure(failure, "GET", "http://h/x")
    assert (0, reason) == (error.code, error.reason)
    assert error.message.startswith('GET "http://h/x": ')
    assert is_broken == is_broken_connection(failure)


def test_a_timeout_is_no_name_of_python() -> None:
    """A request that took too long has Go's words."""
    error = error_of_failure(TimeoutError(), "PUT", "http://h/x")
    assert 'PUT "http://h/x": context deadline exceeded' == error.message
