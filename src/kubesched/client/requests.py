"""Requests to an API server, and the protocols around sending them.

Upstream: staging/src/k8s.io/client-go/rest/request.go, tools/metrics/metrics.go (v1.36)
Differs:  nothing.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import AbstractAsyncContextManager
from typing import Final, Protocol

import msgspec

from kubesched.api.media_types import JSON
from kubesched.api.scheme import Kind

UNFINISHED_PODS: Final = "status.phase!=Succeeded,status.phase!=Failed"
"""A field selector."""


class Request(msgspec.Struct, frozen=True, kw_only=True):
    """One request; path and query are not encoded.

    The timeout is for the whole request, or for the head of a stream; None is the connection's.
    """

    method: str = "GET"
    path: str
    query: Mapping[str, str] = {}
    body: bytes = b""
    content_type: str = JSON
    accept: str = JSON
    timeout_seconds: float | None = None


class Rest(Protocol):
    """Sends requests to one API server, as one user."""

    async def send(self, request: Request) -> bytes:
        """Return the body of the response.

        Raises ApiError if the server refuses (a subclass where `api.errors` has one), or does not
        respond: then the code is 0 and the reason `ConnectionRefused`, `Timeout` or `Unanswered`.
        """

    def stream(self, request: Request) -> AbstractAsyncContextManager[AsyncIterator[bytes]]:
        """Open a stream; yields its lines as they arrive, without line breaks, of any length.

        Entering raises `ApiError` as `send` does, and so does reading if the connection breaks.
        """


def path_of(kind: Kind, namespace: str = "", name: str = "", subresource: str = "") -> str:
    """Return the path of a collection, an object or a subresource such as `status`.

    The namespace is "" for all namespaces, or for cluster-scoped kinds; the name is "" for the
    collection.
    """
    path = f"/apis/{kind.api_version}" if kind.group else f"/api/{kind.api_version}"
    if namespace and kind.is_namespaced:
        path += f"/namespaces/{namespace}"
    path += f"/{kind.plural}"
    if name:
        path += f"/{name}"
    return f"{path}/{subresource}" if subresource else path


class RequestObserver:
    """Observes requests; does nothing unless a method is overridden, which must be quick."""

    def rate_limited(self, verb: str, host: str, seconds: float) -> None:
        """A request passed the rate limiter: rest_client_rate_limiter_duration_seconds."""

    def attempted(self, code: str, method: str, host: str, *, is_retry: bool) -> None:
        """An attempt ended: rest_client_requests_total, rest_client_request_retries_total.

        `code` is the HTTP status, or `<error>` without a response; `host` has the port if the URL
        has one.
        """

    def finished(
        self, verb: str, host: str, seconds: float, request_bytes: int, response_bytes: int
    ) -> None:
        """A request ended: rest_client_request_duration_seconds and ..._size_bytes.

        Not called for streams.
        """
