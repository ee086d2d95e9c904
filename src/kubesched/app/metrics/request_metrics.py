"""RequestMetrics counts requests to the API server, of all connections and threads.

Upstream: component-base/metrics/prometheus/restclient/metrics.go (v1.36)
Differs:  nothing.
"""

from __future__ import annotations

from collections.abc import Iterator
from threading import Lock

from prometheus_client.metrics_core import Metric

from kubesched.app.metrics import process_families as families
from kubesched.app.metrics.accumulators import Counter, Histogram
from kubesched.app.metrics.family import Family


class RequestMetrics:
    """A `RequestObserver`.

    The election's thread sends requests too, so there is a lock.
    """

    def __init__(self) -> None:
        self._lock = Lock()
        self._limited = Histogram(families.RATE_LIMITER_DURATION.bounds)
        self._seconds = Histogram(families.REQUEST_DURATION.bounds)
        self._sent = Histogram(families.REQUEST_SIZE.bounds)
        self._received = Histogram(families.RESPONSE_SIZE.bounds)
        self._requests = Counter()
        self._retries = Counter()
        self._held: dict[Family, Counter | Histogram] = {
            families.RATE_LIMITER_DURATION: self._limited,
            families.REQUEST_DURATION: self._seconds,
            families.REQUEST_SIZE: self._sent,
            families.RESPONSE_SIZE: self._received,
            families.REQUESTS: self._requests,
            families.REQUEST_RETRIES: self._retries,
        }

    def rate_limited(self, verb: str, host: str, seconds: float) -> None:
        """Time what a request waited for its turn."""
        with self._lock:
            self._limited.observe(seconds, (verb, host))

    def attempted(self, code: str, method: str, host: str, *, is_retry: bool) -> None:
        """Count an attempt."""
        with self._lock:
            self._requests.add((code, method, host))
            if is_retry:
                self._retries.add((code, method, host))

    def finished(
        self, verb: str, host: str, seconds: float, request_bytes: int, response_bytes: int
    ) -> None:
        """Time and measure a request."""
        labels = (verb, host)
        with self._lock:
            self._seconds.observe(seconds, labels)
            self._sent.observe(request_bytes, labels)
            self._received.observe(response_bytes, labels)

    @property
    def folded(self) -> int:
        """How many observations were counted under "unexpected" for want of room."""
        return sum(held.folded for held in self._held.values())

    def reset(self) -> None:
        """Forget what was counted."""
        with self._lock:
            for held in self._held.values():
                held.reset()

    def collect(self) -> Iterator[Metric]:
        """Yield every family."""
        with self._lock:
            metrics = [family.of(held) for family, held in self._held.items()]
        yield from metrics
