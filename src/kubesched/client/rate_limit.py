"""TokenBucket limits the requests per second.

Upstream: staging/src/k8s.io/client-go/util/flowcontrol/throttle.go,
          golang.org/x/time/rate (v1.36)
Differs:  one bucket serves a whole connection even with the default rate, where upstream has one
          per API group.
Invariants: in any t seconds at most burst + t * qps requests pass.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Final

from kubesched.api.errors import SetupError

QPS_DEFAULT: Final = 5.0
BURST_DEFAULT: Final = 10


class TokenBucket:
    """`qps` tokens per second, and at most `burst`; each request takes one.

    The bucket starts full; `now` is a monotonic clock in seconds.

    Raises:
        SetupError: No request could ever be sent.
    """

    def __init__(self, qps: float, burst: int, now: Callable[[], float]) -> None:
        if qps <= 0:
            raise SetupError(f"qps is {qps}, must be greater than 0")
        if burst < 1:
            raise SetupError(
                "burst is required to be greater than 0 when RateLimiter is not set and QPS is set "
                "to greater than 0"
            )
        self._qps = qps
        self._burst = burst
        self._now = now
        self._tokens = float(burst)
        self._counted_at = now()
        self._last_turn = self._counted_at

    async def wait(self) -> float:
        """Take a token, waiting if there is none; return the seconds waited.

        Callers are served in order. A cancelled wait returns its token.
        """
        asked = self._now()
        tokens = self._tokens_at(asked) - 1
        self._set(tokens, asked)
        delay = max(0.0, -tokens / self._qps)
        turn = self._last_turn = asked + delay
        if delay <= 0:
            return 0.0
        try:
            await asyncio.sleep(delay)
        except asyncio.CancelledError:
            self._give_back(turn)
            raise
        return self._now() - asked

    def _give_back(self, turn: float) -> None:
        """Undo a reservation, as far as later ones do not depend on it."""
        now = self._now()
        if turn < now:
            return
        restored = 1 - (self._last_turn - turn) * self._qps
        if restored <= 0:
            return
        self._set(min(self._tokens_at(now) + restored, self._burst), now)
        if turn == self._last_turn:
            self._last_turn = max(now, turn - 1 / self._qps)

    def _tokens_at(self, now: float) -> float:
        elapsed = max(0.0, now - self._counted_at)
        return min(self._tokens + elapsed * self._qps, self._burst)

    def _set(self, tokens: float, now: float) -> None:
        self._tokens = tokens
        self._counted_at = now


def limiter_of(qps: float, burst: int, now: Callable[[], float]) -> TokenBucket | None:
    """Return the limiter for configured values, None for no limit.

    `qps` is in requests per second: 0 for the default, below 0 for no limit. `burst` is in
    requests: 0 for the default, if the rate is the default too. `now` is a monotonic clock in
    seconds.

    Raises:
        SetupError: Requests are limited, but none could ever be sent.
    """
    if qps < 0:
        return None
    if qps == 0:
        return TokenBucket(QPS_DEFAULT, burst or BURST_DEFAULT, now)
    return TokenBucket(qps, burst, now)
