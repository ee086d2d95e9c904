"""TokenBucket limits the requests per second.

Upstream: staging/src/k8s.io/client-go/util/flowcontrol/throttle.go,
          golang.org/x/time/rate (v1.36)
Differs:  one bucket serves a whole connection even with the default rate, where upstream has one
          per API group; a cancelled wait does not return its token.
Invariants: in any t seconds at most burst + t * qps requests pass.
"""

from __future__ import annotations

import asyncio
import math
from typing import Final

from kubesched.api.errors import SetupError

QPS_DEFAULT: Final = 5.0
BURST_DEFAULT: Final = 10


class TokenBucket:
    """A bucket, full at first, that gets `qps` tokens per second; each request takes one.

    Raises:
        SetupError: No request could ever be sent.
    """

    def __init__(self, qps: float, burst: int) -> None:
        if burst < 1:
            raise SetupError(
                "burst is required to be greater than 0 when RateLimiter is not set and QPS is set "
                "to greater than 0"
            )
        self._qps = qps
        self._burst = burst
        self._tokens = float(burst)
        self._counted_at = -math.inf

    async def wait(self) -> float:
        """Take a token, waiting if there is none; return the seconds waited.

        Callers are served in order. A cancelled wait has used its token.
        """
        now = asyncio.get_running_loop().time
        asked = now()
        added = (asked - self._counted_at) * self._qps
        self._tokens = min(self._tokens + added, self._burst) - 1
        self._counted_at = asked
        if self._tokens >= 0:
            return 0.0
        await asyncio.sleep(-self._tokens / self._qps)
        return now() - asked


def limiter_of(qps: float, burst: int) -> TokenBucket | None:
    """Return the limiter for configured values, None for no limit.

    `qps` is in requests per second: 0 for the default, below 0 for no limit. `burst` is in
    requests: 0 for the default, if the rate is the default too.

    Raises:
        SetupError: Requests are limited, but none could ever be sent.
    """
    if qps < 0:
        return None
    if qps == 0:
        return TokenBucket(QPS_DEFAULT, burst or BURST_DEFAULT)
    return TokenBucket(qps, burst)
