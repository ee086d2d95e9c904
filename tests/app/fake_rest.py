"""A connection to an API server whose answers are given."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager
from random import Random

from kubesched.app.reviews import AccessStatus, Reviews, TokenStatus
from kubesched.client.requests import Request


class FakeRest:
    """Answers all requests with one object or error, or with those of a function; keeps them.

    Attributes:
        requests: In the order sent.
    """

    def __init__(self, answer: object) -> None:
        self._answer = answer
        self.requests: list[Request] = []

    async def send(self, request: Request) -> bytes:
        """Return the answer as JSON, or raise it."""
        self.requests.append(request)
        answer = self._answer(request) if callable(self._answer) else self._answer
        if isinstance(answer, BaseException):
            raise answer
        return json.dumps(answer).encode()

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
