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


class Clock:
    """A clock that a test moves."""

    def __init__(self) -> None:
        self.seconds = 0.0

    def __call__(self) -> float:
        """Return how many have passed."""
        return self.seconds

    async def sleep(self, seconds: float) -> None:
        """Let that much time pass."""
        self.seconds += seconds


def token_reviews(rest: FakeRest, clock: Clock) -> Reviews[TokenStatus]:
    """Return reviews on a clock by hand; answers without an error are kept for 10 seconds."""
    return Reviews(
        rest,
        TokenStatus,
        lambda status: 0.0 if status.error else 10.0,
        now=clock,
        random=Random(1),
        sleep=clock.sleep,
    )


def access_reviews(
    rest: FakeRest, clock: Clock, allowed: float = 10.0, denied: float = 10.0
) -> Reviews[AccessStatus]:
    """Return reviews on a clock by hand; answers are kept for so many seconds."""
    return Reviews(
        rest,
        AccessStatus,
        lambda status: allowed if status.allowed else denied,
        now=clock,
        random=Random(1),
        sleep=clock.sleep,
    )
