"""What the refusals of lists and watches mean for whoever follows objects.

Upstream: staging/src/k8s.io/client-go/tools/cache/reflector.go, rest/request.go (v1.36)
Differs:  nothing.
"""

from __future__ import annotations

from kubesched.api.errors import ApiError
from kubesched.client.errors import CONNECTION_REFUSED, TIMEOUT, UNANSWERED


def is_server_overwhelmed(error: ApiError) -> bool:
    """Whether there is nothing to do but to wait: what is known is as good as before."""
    return error.reason == CONNECTION_REFUSED or is_too_many_requests(error)


def is_too_many_requests(error: ApiError) -> bool:
    """Whether the server asks to come back later."""
    return error.reason == "TooManyRequests" or error.code == 429


def is_broken_connection(error: ApiError) -> bool:
    """Whether the connection broke: one of the ways in which streams end."""
    return error.code == 0 and error.reason in {TIMEOUT, UNANSWERED}


def is_expired(error: ApiError) -> bool:
    """Whether the server has forgotten the version asked for."""
    return error.reason in ("Expired", "Gone") or error.code == 410


def is_too_large_version(error: ApiError) -> bool:
    """Whether the server has not come as far as the version asked for."""
    return error.reason == TIMEOUT and "Too large resource version" in error.message


def very_short_watch(plural: str) -> ApiError:
    """Return the error of a watch that ended at once and said nothing."""
    message = (
        f"very short watch: {plural}: Unexpected watch close - "
        "watch lasted less than a second and no items received"
    )
    return ApiError(0, "VeryShortWatch", message)
