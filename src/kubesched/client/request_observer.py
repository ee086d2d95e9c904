"""Who is told of requests, for metrics.

Upstream: staging/src/k8s.io/client-go/tools/metrics/metrics.go (v1.36)
Differs:  nothing.
"""

from __future__ import annotations

from typing import Protocol


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
