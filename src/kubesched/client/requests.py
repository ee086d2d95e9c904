"""Requests to an API server: what is sent, which objects are meant, and who sends and observes it.

Upstream: staging/src/k8s.io/client-go/rest/request.go, tools/metrics/metrics.go,
          staging/src/k8s.io/apimachinery/pkg/apis/meta/v1/types.go, ListOptions (v1.36)
Differs:  nothing.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager
from typing import Final, Protocol

import msgspec

from kubesched.api.scheme import Kind

Query = tuple[tuple[str, str], ...]


class ObjectSelector(msgspec.Struct, frozen=True, kw_only=True):
    """Which objects of a kind; empty texts select all.

    Attributes:
        namespace: Their namespace.
        field_selector: Such as `status.phase!=Failed`.
        label_selector: Such as `app=web`.
    """

    namespace: str = ""
    field_selector: str = ""
    label_selector: str = ""

    @property
    def query(self) -> Query:
        """The selectors that are there, as a request names them."""
        both = (("fieldSelector", self.field_selector), ("labelSelector", self.label_selector))
        return tuple((name, selector) for name, selector in both if selector)


EVERYTHING: Final = ObjectSelector()
UNFINISHED_PODS: Final = ObjectSelector(
    field_selector="status.phase!=Succeeded,status.phase!=Failed"
)


JSON: Final = "application/json"
JSON_PATCH: Final = "application/json-patch+json"
MERGE_PATCH: Final = "application/merge-patch+json"
STRATEGIC_MERGE_PATCH: Final = "application/strategic-merge-patch+json"


class Request(msgspec.Struct, frozen=True, kw_only=True):
    """One request.

    Attributes:
        method: Such as `GET`.
        path: Begins with a slash; not encoded.
        query: Names and values, not encoded.
        body: What is sent, b"" for nothing.
        content_type: Of the body.
        accept: What the answer may be.
        timeout_seconds: For the whole exchange, or for the head of a stream; None for the
            connection's own.
    """

    method: str = "GET"
    path: str
    query: tuple[tuple[str, str], ...] = ()
    body: bytes = b""
    content_type: str = JSON
    accept: str = JSON
    timeout_seconds: float | None = None


class Rest(Protocol):
    """Sends requests to one API server, as one user."""

    async def send(self, request: Request) -> bytes:
        """Return the body of the answer.

        Raises:
            ApiError: The server refused (its own class where `api.errors` has one), or there was
                no answer: then the code is 0 and the reason `ConnectionRefused`, `Timeout` or
                `Unanswered`.
        """
        ...

    def stream(self, request: Request) -> AbstractAsyncContextManager[AsyncIterator[bytes]]:
        """Open a stream; yields its lines as they come, without their ends, of any length.

        Entering raises `ApiError` as `send` does; so does reading when the connection breaks.
        """
        ...


def path_of(kind: Kind, namespace: str = "", name: str = "", subresource: str = "") -> str:
    """Return the path of a collection, an object or a subresource.

    Args:
        kind: What is asked for.
        namespace: "" for all namespaces, or for kinds that live in none.
        name: "" for the collection.
        subresource: Such as `status`; "" for the object itself.
    """
    root = f"/apis/{kind.api_version}" if kind.group else f"/api/{kind.api_version}"
    place = f"/namespaces/{namespace}" if namespace and kind.is_namespaced else ""
    parts = (root + place, kind.plural, name, subresource)
    return "/".join(part for part in parts if part)


class RequestObserver(Protocol):
    """Is told plain values while requests are sent; must be quick and must not raise."""

    def rate_limited(self, verb: str, host: str, seconds: float) -> None:
        """A request has waited for its turn: rest_client_rate_limiter_duration_seconds."""
        ...

    def attempted(self, code: str, method: str, host: str, *, is_retry: bool) -> None:
        """An attempt has ended: rest_client_requests_total, and ..._request_retries_total.

        Args:
            code: HTTP status, `<error>` without an answer.
            method: Of the request.
            host: The server's host, with its port if the URL has one.
            is_retry: Whether the request had been sent before.
        """
        ...

    def finished(
        self, verb: str, host: str, seconds: float, request_bytes: int, response_bytes: int
    ) -> None:
        """A request is over: rest_client_request_duration_seconds and ..._size_bytes.

        Streams are not told of, as their length says nothing.
        """
        ...


class IgnoringObserver:
    """Nobody wants to know."""

    def rate_limited(self, verb: str, host: str, seconds: float) -> None:
        """Do nothing."""

    def attempted(self, code: str, method: str, host: str, *, is_retry: bool) -> None:
        """Do nothing."""

    def finished(
        self, verb: str, host: str, seconds: float, request_bytes: int, response_bytes: int
    ) -> None:
        """Do nothing."""
