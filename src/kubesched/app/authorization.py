"""Authorizer decides who may request which path: fixed rules first, then the API server.

Upstream: staging/src/k8s.io/apiserver/pkg/server/options/authorization.go,
          staging/src/k8s.io/apiserver/plugin/pkg/authorizer/webhook/webhook.go,
          staging/src/k8s.io/apiserver/pkg/authorization/path/path.go (v1.36)
Rejects:  everything that neither a fixed rule nor a SubjectAccessReview allows.
Differs:  nothing.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from typing import Final

import msgspec

from kubesched.api.errors import ApiError, SetupError
from kubesched.app.reviews import ExpiringCache, ReviewRetries, UserInfo
from kubesched.client.requests import Request

log: Final = logging.getLogger(__name__)

_ALWAYS_ALLOWED_GROUP: Final = "system:masters"
_PATH: Final = "/apis/authorization.k8s.io/v1/subjectaccessreviews"
_TIMEOUT_SECONDS: Final = 10
_ANSWERS_MAX: Final = 8192
_CACHED_LENGTH_MAX: Final = 10_000


class AuthorizationError(Exception):
    """The authorization of a request could not be determined; the message is for the client."""


class Verdict(msgspec.Struct, frozen=True):
    """Whether a request is allowed, and why."""

    is_allowed: bool
    reason: str = ""


class _Access(msgspec.Struct):
    allowed: bool = False
    denied: bool = False
    reason: str = ""


class _Review(msgspec.Struct):
    status: _Access = msgspec.field(default_factory=_Access)


_decoder: Final = msgspec.json.Decoder(_Review)


class AllowedPaths:
    """Paths that need no authorization; a trailing `*` matches any rest."""

    def __init__(self, paths: Sequence[str]) -> None:
        """Take paths, with or without a leading slash.

        Raises:
            SetupError: A path has a `*` that is not at its end.
        """
        self._paths: set[str] = set()
        self._prefixes: list[str] = []
        for path in (path.removeprefix("/") for path in paths):
            if "*" in path[:-1]:
                raise SetupError(
                    f'--authorization-always-allow-paths: only trailing * allowed in "{path}"'
                )
            if path.endswith("*"):
                self._prefixes.append(path[:-1])
            else:
                self._paths.add(path)

    def __contains__(self, path: str) -> bool:
        path = path.removeprefix("/")
        return path in self._paths or path.startswith(tuple(self._prefixes))


class Authorizer:
    """Decides which user may request which path; answers of the API server are cached."""

    def __init__(
        self,
        always_allowed: AllowedPaths,
        reviews: ReviewRetries,
        now: Callable[[], float],
        keep_allowed_seconds: float,
        keep_denied_seconds: float,
    ) -> None:
        """Set up; answers that allow or deny are kept for so many seconds of a monotonic clock."""
        self._always_allowed = always_allowed
        self._reviews = reviews
        self._keep_allowed_seconds = keep_allowed_seconds
        self._keep_denied_seconds = keep_denied_seconds
        self._answers = ExpiringCache[_Access](now, _ANSWERS_MAX)

    async def authorize(self, user: UserInfo, verb: str, path: str) -> Verdict:
        """Return whether the user may request the path with a verb, such as `get`.

        Raises:
            AuthorizationError: The review failed, or both allows and denies.
        """
        if _ALWAYS_ALLOWED_GROUP in user.groups or path in self._always_allowed:
            return Verdict(is_allowed=True)
        spec = msgspec.json.encode(_spec(user, verb, path))
        access = self._answers.get(spec)
        if access is None:
            access = await self._ask(spec)
            if len(verb) + len(path) < _CACHED_LENGTH_MAX:
                allowed, denied = self._keep_allowed_seconds, self._keep_denied_seconds
                self._answers.put(spec, access, allowed if access.allowed else denied)
        if access.denied and access.allowed:
            raise AuthorizationError(
                "webhook subject access review returned both allow and deny response"
            )
        return Verdict(access.allowed, access.reason)

    async def _ask(self, spec: bytes) -> _Access:
        review = {
            "kind": "SubjectAccessReview",
            "apiVersion": "authorization.k8s.io/v1",
            "metadata": {},
            "spec": msgspec.Raw(spec),
            "status": {"allowed": False},
        }
        request = Request(
            method="POST",
            path=_PATH,
            query=(("timeout", f"{_TIMEOUT_SECONDS}s"),),
            body=msgspec.json.encode(review),
            timeout_seconds=_TIMEOUT_SECONDS,
        )
        try:
            body = await self._reviews.send(request)
            return _decoder.decode(body).status
        except (ApiError, msgspec.MsgspecError) as error:
            log.error("Failed to make webhook authorizer request: %s", error)
            raise AuthorizationError(str(error)) from None


def _spec(user: UserInfo, verb: str, path: str) -> dict[str, object]:
    spec: dict[str, object] = {
        "nonResourceAttributes": {"path": path, "verb": verb},
        "user": user.name,
    }
    if user.groups:
        spec["groups"] = user.groups
    if user.extra:
        spec["extra"] = dict(user.extra)
    if user.uid:
        spec["uid"] = user.uid
    return spec
