"""What an API server says when it refuses: a code, a reason and a message.

Own classes exist only for what somebody catches. `SetupError` is what is wrong before anything
is asked.

Upstream: staging/src/k8s.io/apimachinery/pkg/api/errors (v1.36)
Differs:  nothing.
"""

from __future__ import annotations

from typing import Final


class SetupError(ValueError):
    """What somebody has set up cannot be used: files, flags, addresses.

    Its text is one line that names the file or the flag, the field, and the remedy.
    """


_TRANSIENT: Final = ("InternalError", "ServiceUnavailable", "Conflict", "ConnectionRefused")


class ApiError(Exception):
    """A request was refused, or got no answer.

    Attributes:
        code: HTTP status; 0 if there was no answer.
        reason: Kubernetes' word for it, such as `Conflict`.
        retry_after_seconds: When the server asks to come back; None if it does not say.
    """

    def __init__(
        self,
        code: int,
        reason: str,
        message: str,
        retry_after_seconds: float | None = None,
    ) -> None:
        super().__init__(message)
        self.code = code
        self.reason = reason
        self.retry_after_seconds = retry_after_seconds

    @property
    def message(self) -> str:
        """The server's words."""
        return str(self)

    @property
    def is_transient(self) -> bool:
        """Whether the same request may succeed when tried again at once."""
        return self.reason in _TRANSIENT


class NotFoundError(ApiError):
    """There is no such object."""

    def __init__(self, message: str) -> None:
        super().__init__(404, "NotFound", message)


class ConflictError(ApiError):
    """The object has changed, or a precondition does not hold."""

    def __init__(self, message: str) -> None:
        super().__init__(409, "Conflict", message)


class AlreadyExistsError(ApiError):
    """An object of that name exists."""

    def __init__(self, message: str) -> None:
        super().__init__(409, "AlreadyExists", message)


class GoneError(ApiError):
    """The resource version asked for is no longer kept: list again."""

    def __init__(self, message: str) -> None:
        super().__init__(410, "Expired", message)


class TooManyRequestsError(ApiError):
    """The server has too much to do."""

    def __init__(self, message: str, retry_after_seconds: float | None = None) -> None:
        super().__init__(429, "TooManyRequests", message, retry_after_seconds)
