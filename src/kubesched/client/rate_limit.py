"""TokenBucket limits the requests per second.

Upstream: staging/src/k8s.io/client-go/util/flowcontrol/throttle.go,
          golang.org/x/time/rate (v1.36)
Differs:  one bucket serves a whole connection even with the default rate, where upstream has one
          per API group; a cancelled wait does not return its token.
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

    async def wait(self) -> float:
        """Take a token, waiting if there is none; return the seconds waited.

        Callers are served in order. A cancelled wait has used its token.
        """
        asked = self._now()
        elapsed = max(0.0, asked - self._counted_at)
        self._tokens = min(self._tokens + elapsed * self._qps, self._burst) - 1
        self._counted_at = asked
        if self._tokens >= 0:
            return 0.0
        await asyncio.sleep(-self._tokens / self._qps)
        return self._now() - asked


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
