"""Users, and the reviews by which the API server authenticates their tokens.

Reviews of tokens and of access share retries and a cache of answers.

Upstream: staging/src/k8s.io/apiserver/pkg/authentication/user, .../group,
          staging/src/k8s.io/apiserver/pkg/util/webhook/webhook.go,
          staging/src/k8s.io/apimachinery/pkg/util/cache/lruexpirecache.go,
          staging/src/k8s.io/apiserver/plugin/pkg/authenticator/token/webhook/webhook.go,
          staging/src/k8s.io/apiserver/pkg/authentication/token/cache (v1.36)
Differs:  reviews are sent as JSON.
"""

from __future__ import annotations

import asyncio
import hashlib
import logging
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Hashable
from random import Random
from typing import Final, Generic, TypeVar

import msgspec
from msgspec.structs import replace

from kubesched.api.errors import ApiError
from kubesched.client.requests import Request, Rest

AUTHENTICATED: Final = "system:authenticated"
UNAUTHENTICATED: Final = "system:unauthenticated"


class UserInfo(msgspec.Struct, frozen=True):
    """A user.

    Attributes:
        name: Such as `system:serviceaccount:monitoring:prometheus`.
        uid: "" if unknown.
        groups: In the authenticator's order.
        extra: Extra fields; each with its values.
    """

    name: str
    uid: str = ""
    groups: tuple[str, ...] = ()
    extra: tuple[tuple[str, tuple[str, ...]], ...] = ()


ANONYMOUS: Final = UserInfo("system:anonymous", groups=(UNAUTHENTICATED,))


def as_authenticated(user: UserInfo) -> UserInfo:
    """Return the user in the group system:authenticated, unless anonymous."""
    if user.name == ANONYMOUS.name or {AUTHENTICATED, UNAUTHENTICATED} & set(user.groups):
        return user
    return replace(user, groups=(*user.groups, AUTHENTICATED))


# Reviews.

Value = TypeVar("Value")
Sleep = Callable[[float], Awaitable[None]]

_ATTEMPTS: Final = 5
_FIRST_PAUSE_SECONDS: Final = 0.5
_PAUSE_FACTOR: Final = 1.5
_PAUSE_JITTER: Final = 0.2
_TRANSIENT: Final = frozenset(("InternalError", "Timeout", "TooManyRequests", "Unanswered"))


class ReviewRetries:
    """Sends reviews, and retries those that failed for a transient reason.

    Attributes:
        random: Draws the jitter of pauses.
        sleep: Waits for a number of seconds.
    """

    def __init__(self, rest: Rest, random: Random, sleep: Sleep = asyncio.sleep) -> None:
        self._rest = rest
        self.random = random
        self.sleep = sleep

    async def send(self, request: Request) -> bytes:
        """Return the answer to a request, after at most five attempts.

        Raises:
            ApiError: Of the last attempt.
        """
        pause = _FIRST_PAUSE_SECONDS
        for _ in range(_ATTEMPTS - 1):
            try:
                return await self._rest.send(request)
            except ApiError as error:
                if not _may_pass(error):
                    raise
            await self.sleep(pause * (1 + self.random.random() * _PAUSE_JITTER))
            pause *= _PAUSE_FACTOR
        return await self._rest.send(request)


def _may_pass(error: ApiError) -> bool:
    return error.reason in _TRANSIENT or error.retry_after_seconds is not None


class ExpiringCache(Generic[Value]):
    """A least-recently-used cache of answers that expire by a monotonic clock in seconds."""

    def __init__(self, now: Callable[[], float], size_max: int) -> None:
        self.now = now
        self._size_max = size_max
        self._answers: OrderedDict[Hashable, tuple[float, Value]] = OrderedDict()

    def get(self, question: Hashable) -> Value | None:
        """Return the answer if it has not expired."""
        known = self._answers.get(question)
        if known is None:
            return None
        until, value = known
        if self.now() > until:
            del self._answers[question]
            return None
        self._answers.move_to_end(question)
        return value

    def put(self, question: Hashable, answer: Value, seconds: float) -> None:
        """Cache an answer for a time; 0 seconds does not cache it."""
        if seconds <= 0:
            return
        self._answers[question] = (self.now() + seconds, answer)
        self._answers.move_to_end(question)
        if len(self._answers) > self._size_max:
            self._answers.popitem(last=False)


# Tokens.

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
        reviews: ReviewRetries,
        now: Callable[[], float],
        keep_seconds: float,
        key: bytes = b"",
    ) -> None:
        """Set up; answers are kept for so many seconds of a monotonic clock, 0 for no cache.

        `key` is for the hashes of cached tokens: up to 64 random bytes.
        """
        self._reviews = reviews
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
                body = await self._reviews.send(request)
            status = _decoder.decode(body).status
        except (ApiError, TimeoutError, msgspec.MsgspecError) as error:
            log.error("Failed to make webhook authenticator request: %s", error)
            raise AuthenticationError(str(error)) from None
        if not status.authenticated:
            if status.error:
                # The server could not decide; that is not cached.
                raise AuthenticationError(status.error)
            return _Known(None)
        user = status.user
        extra = tuple((user.extra or {}).items())
        return _Known(UserInfo(user.username, user.uid, user.groups or (), extra))
