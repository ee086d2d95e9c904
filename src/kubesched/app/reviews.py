"""Reviews by the API server, of tokens and of access: retries and a cache of answers.

Upstream: staging/src/k8s.io/apiserver/pkg/util/webhook/webhook.go,
          staging/src/k8s.io/apimachinery/pkg/util/cache/lruexpirecache.go (v1.36)
Differs:  reviews are sent as JSON.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Hashable
from random import Random
from typing import Final, Generic, TypeVar

from kubesched.api.errors import ApiError

Value = TypeVar("Value")
Sleep = Callable[[float], Awaitable[None]]

_ATTEMPTS: Final = 5
_FIRST_PAUSE_SECONDS: Final = 0.5
_PAUSE_FACTOR: Final = 1.5
_PAUSE_JITTER: Final = 0.2
_TRANSIENT: Final = frozenset(("InternalError", "Timeout", "TooManyRequests", "Unanswered"))


class ReviewRetries:
    """Retries reviews that failed for a transient reason.

    Attributes:
        random: Draws the jitter of pauses.
        sleep: Waits for a number of seconds.
    """

    def __init__(self, random: Random, sleep: Sleep = asyncio.sleep) -> None:
        self.random = random
        self.sleep = sleep

    async def run(self, ask: Callable[[], Awaitable[bytes]]) -> bytes:
        """Return the result of `ask`, after at most five attempts.

        Raises:
            ApiError: Of the last attempt.
        """
        pause = _FIRST_PAUSE_SECONDS
        for _ in range(_ATTEMPTS - 1):
            try:
                return await ask()
            except ApiError as error:
                if not _may_pass(error):
                    raise
            await self.sleep(pause * (1 + self.random.random() * _PAUSE_JITTER))
            pause *= _PAUSE_FACTOR
        return await ask()


def _may_pass(error: ApiError) -> bool:
    return error.reason in _TRANSIENT or error.retry_after_seconds is not None


class ExpiringCache(Generic[Value]):
    """A least-recently-used cache of answers that expire.

    Attributes:
        now: A monotonic clock in seconds.
    """

    def __init__(self, now: Callable[[], float], size_max: int) -> None:
        self.now = now
        self._size_max = size_max
        self._answers: OrderedDict[Hashable, tuple[float, Value]] = OrderedDict()

    def get(self, question: Hashable) -> Value | None:
        """Return the answer if it has not expired."""
        known = self._answers.get(question)
        if known is None:
            return None
        until, value = known
        if self.now() > until:
            del self._answers[question]
            return None
        self._answers.move_to_end(question)
        return value

    def put(self, question: Hashable, answer: Value, seconds: float) -> None:
        """Cache an answer for a time; 0 seconds does not cache it."""
        if seconds <= 0:
            return
        self._answers[question] = (self.now() + seconds, answer)
        self._answers.move_to_end(question)
        if len(self._answers) > self._size_max:
            self._answers.popitem(last=False)
