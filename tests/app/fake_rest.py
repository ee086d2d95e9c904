"""A connection to an API server that is a function."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager
from random import Random
from typing import Any

from kubesched.app.reviews import AccessStatus, Reviews, TokenStatus
from kubesched.client.requests import Request


class FakeRest:
    """Answers requests with a function and keeps them.

    Attributes:
        requests: In the order sent.
    """

    def __init__(self, answer: Callable[[Request], Any]) -> None:
        self._answer = answer
        self.requests: list[Request] = []

    async def send(self, request: Request) -> bytes:
        """Return the function's result as JSON, or raise its exception."""
        self.requests.append(request)
        return json.dumps(self._answer(request)).encode()

    def stream(self, request: Request) -> AbstractAsyncContextManager[AsyncIterator[bytes]]:
        """Not used."""
        raise AssertionError(request)


def token_reviews(rest: FakeRest) -> Reviews[TokenStatus]:
    """Return reviews whose answers without an error are kept for 10 seconds."""
    return Reviews(rest, TokenStatus, lambda status: 0.0 if status.error else 10.0, Random(1))


def access_reviews(
    rest: FakeRest, allowed: float = 10.0, denied: float = 10.0
) -> Reviews[AccessStatus]:
    """Return reviews whose answers are kept for so many seconds."""
    return Reviews(
        rest, AccessStatus, lambda status: allowed if status.allowed else denied, Random(1)
    )
