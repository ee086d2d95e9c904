"""TokenReviews authenticates bearer tokens with the API server.

Upstream: staging/src/k8s.io/apiserver/plugin/pkg/authenticator/token/webhook/webhook.go,
          staging/src/k8s.io/apiserver/pkg/authentication/token/cache (v1.36)
Differs:  nothing.
"""

from __future__ import annotations

import asyncio
import hashlib
import logging
from collections.abc import Callable
from typing import Final

import msgspec

from kubesched.api.errors import ApiError
from kubesched.app.reviews import ExpiringCache, ReviewRetries
from kubesched.app.users import UserInfo
from kubesched.client.requests import Request, Rest

log: Final = logging.getLogger(__name__)

_PATH: Final = "/apis/authentication.k8s.io/v1/tokenreviews"
_TIMEOUT_SECONDS: Final = 10.0
_TOKENS_MAX: Final = 32_768


class AuthenticationError(Exception):
    """Credentials are invalid; the message is for the log."""


class _UserInfo(msgspec.Struct):
    username: str = ""
    uid: str = ""
    groups: tuple[str, ...] | None = None
    extra: dict[str, tuple[str, ...]] | None = None


class _ReviewStatus(msgspec.Struct):
    authenticated: bool = False
    user: _UserInfo = msgspec.field(default_factory=_UserInfo)
    error: str = ""


class _Review(msgspec.Struct):
    status: _ReviewStatus = msgspec.field(default_factory=_ReviewStatus)


class _Known(msgspec.Struct, frozen=True):
    """The result of a review: the user, None for an invalid token."""

    user: UserInfo | None


_decoder: Final = msgspec.json.Decoder(_Review)


class TokenReviews:
    """TokenReviews with cached answers."""

    def __init__(
        self,
        rest: Rest,
        retries: ReviewRetries,
        now: Callable[[], float],
        keep_seconds: float,
        key: bytes = b"",
    ) -> None:
        """Set up.

        Args:
            rest: Sends the reviews.
            retries: Retries failed reviews.
            now: A monotonic clock in seconds.
            keep_seconds: Lifetime of a cached answer, 0 for no cache.
            key: For the hashes of cached tokens; up to 64 random bytes.
        """
        self._rest = rest
        self._retries = retries
        self._keep_seconds = keep_seconds
        self._key = key
        self._answers = ExpiringCache[_Known](now, _TOKENS_MAX)
        self._asked: dict[bytes, asyncio.Future[_Known]] = {}

    async def authenticate(self, token: str) -> UserInfo:
        """Return the user of a token.

        Raises:
            AuthenticationError: The token is invalid, or the review failed.
        """
        digest = hashlib.blake2b(token.encode(), key=self._key).digest()
        known = self._answers.get(digest)
        if known is None:
            known = await self._ask_once(digest, token)
        if known.user is None:
            raise AuthenticationError("invalid bearer token")
        return known.user

    async def _ask_once(self, digest: bytes, token: str) -> _Known:
        """Review the token; concurrent requests share one review."""
        asked = self._asked.get(digest)
        if asked is None:
            asked = asyncio.ensure_future(self._ask(token))
            self._asked[digest] = asked
            asked.add_done_callback(lambda done: self._take_in(digest, done))
        return await asyncio.shield(asked)

    def _take_in(self, digest: bytes, done: asyncio.Future[_Known]) -> None:
        del self._asked[digest]
        if not done.cancelled() and done.exception() is None:
            self._answers.put(digest, done.result(), self._keep_seconds)

    async def _ask(self, token: str) -> _Known:
        review = {
            "kind": "TokenReview",
            "apiVersion": "authentication.k8s.io/v1",
            "metadata": {},
            "spec": {"token": token},
            "status": {"user": {}},
        }
        request = Request(
            method="POST",
            path=_PATH,
            body=msgspec.json.encode(review),
            timeout_seconds=_TIMEOUT_SECONDS,
        )
        try:
            async with asyncio.timeout(_TIMEOUT_SECONDS):
                body = await self._retries.run(lambda: self._rest.send(request))
            status = _decoder.decode(body).status
        except (ApiError, TimeoutError, msgspec.MsgspecError) as error:
            log.error("Failed to make webhook authenticator request: %s", error)  # noqa: TRY400 - the message is enough
            raise AuthenticationError(str(error)) from None
        if not status.authenticated:
            if status.error:
                # The server could not decide; that is not cached.
                raise AuthenticationError(status.error)
            return _Known(None)
        user = status.user
        extra = tuple((user.extra or {}).items())
        return _Known(UserInfo(user.username, user.uid, user.groups or (), extra))
