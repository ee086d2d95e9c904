"""What may be tried again after a request has failed, and when.

Upstream: staging/src/k8s.io/client-go/rest/with_retry.go (v1.36)
Differs:  the first repetition after a broken connection comes at once, as Go's transport does it
          for connections that it kept.
"""

from __future__ import annotations

from typing import Final

from kubesched.client.errors import is_broken_connection, retry_after_seconds

_RETRIES_MAX: Final = 10
_BROKEN_WAIT_SECONDS: Final = 1.0
_TOO_MANY_REQUESTS: Final = 429


class Retries:
    """The attempts at one request.

    Attributes:
        count: How often the request has been sent again.
        may_renew: Whether newer credentials are still worth a try.
    """

    def __init__(self, method: str) -> None:
        self._method = method
        self._asked = 0
        self._has_repeated = False
        self.count = 0
        self.may_renew = True

    def after_answer(self, code: int, retry_after: str) -> float | None:
        """Return how many seconds to wait before the next attempt, None if there is to be none.

        Args:
            code: HTTP status of a refusal.
            retry_after: The header's value, "" without one.
        """
        seconds = retry_after_seconds(retry_after)
        if seconds is None or not (code == _TOO_MANY_REQUESTS or code >= 500):
            return None
        return self._wait(max(0.0, float(seconds)))

    def after_failure(self, failure: Exception) -> float | None:
        """Return the same for a request that got no answer."""
        # What changes something may have been done before the connection broke.
        if self._method != "GET" or not is_broken_connection(failure):
            return None
        if not self._has_repeated:
            self._has_repeated = True
            self.count += 1
            return 0.0
        return self._wait(_BROKEN_WAIT_SECONDS)

    def after_renewal(self) -> None:
        """Take note that the request is sent again with newer credentials."""
        self.may_renew = False
        self.count += 1

    def _wait(self, seconds: float) -> float | None:
        if self._asked == _RETRIES_MAX:
            return None
        self._asked += 1
        self.count += 1
        return seconds
