"""Errors of requests to an API server: HTTP status, reason and message.

Only errors that are caught somewhere have classes of their own. `SetupError` is raised before any
request.

Upstream: staging/src/k8s.io/apimachinery/pkg/api/errors (v1.36)
Differs:  nothing.
"""

from __future__ import annotations

from typing import Final


class SetupError(ValueError):
    """A file, flag or address that the user has set up cannot be used.

    Its text is one line that names the file or the flag, the field, and the remedy.
    """


_TRANSIENT: Final = ("InternalError", "ServiceUnavailable", "Conflict", "ConnectionRefused")


class ApiError(Exception):
    """A request was refused or not answered.

    Attributes:
        code: HTTP status; 0 if there was no answer.
        reason: Kubernetes' reason, such as `Conflict`.
        retry_after_seconds: The delay that the server asks for; None if it asks for none.
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
        """The server's message."""
        return str(self)

    @property
    def is_transient(self) -> bool:
        """Whether the same request may succeed if it is retried immediately."""
        return self.reason in _TRANSIENT


class NotFoundError(ApiError):
    """The object does not exist."""

    def __init__(self, message: str) -> None:
        super().__init__(404, "NotFound", message)


class ConflictError(ApiError):
    """The object was changed in the meantime, or a precondition failed."""

    def __init__(self, message: str) -> None:
        super().__init__(409, "Conflict", message)


class AlreadyExistsError(ApiError):
    """An object of that name exists already."""

    def __init__(self, message: str) -> None:
        super().__init__(409, "AlreadyExists", message)


class GoneError(ApiError):
    """The requested resource version is too old; the client must list again."""

    def __init__(self, message: str) -> None:
        super().__init__(410, "Expired", message)


class TooManyRequestsError(ApiError):
    """The server is overloaded, or refuses an eviction for now."""

    def __init__(self, message: str, retry_after_seconds: float | None = None) -> None:
        super().__init__(429, "TooManyRequests", message, retry_after_seconds)
