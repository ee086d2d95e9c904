"""Reviews: the API server authenticates tokens, and says who may request what.

Upstream: staging/src/k8s.io/apiserver/pkg/authentication/user, .../group,
          staging/src/k8s.io/apiserver/pkg/util/webhook/webhook.go,
          staging/src/k8s.io/apiserver/plugin/pkg/authenticator/token/webhook/webhook.go,
          staging/src/k8s.io/apiserver/plugin/pkg/authorizer/webhook/webhook.go,
          staging/src/k8s.io/apiserver/pkg/authentication/token/cache (v1.36)
Differs:  reviews are sent as JSON; a review takes at most 10 seconds, with its retries.
"""

from __future__ import annotations

import asyncio
import hashlib
import logging
from collections.abc import Callable, Mapping
from random import Random
from secrets import token_bytes
from typing import Any, Final, Generic, TypeVar

import msgspec
from msgspec.structs import replace

from kubesched.api.errors import ApiError
from kubesched.client.requests import Request, Rest

log: Final = logging.getLogger(__name__)

_AUTHENTICATED: Final = "system:authenticated"
_UNAUTHENTICATED: Final = "system:unauthenticated"


class UserInfo(msgspec.Struct, frozen=True):
    """A user, as in the answer to a TokenReview."""

    username: str = ""
    uid: str = ""
    groups: tuple[str, ...] = ()
    extra: Mapping[str, tuple[str, ...]] = {}


ANONYMOUS: Final = UserInfo("system:anonymous", groups=(_UNAUTHENTICATED,))


def as_authenticated(user: UserInfo) -> UserInfo:
    """Return the user in the group system:authenticated, unless anonymous."""
    if user.username == ANONYMOUS.username or {_AUTHENTICATED, _UNAUTHENTICATED} & set(user.groups):
        return user
    return replace(user, groups=(*user.groups, _AUTHENTICATED))


class AccessError(Exception):
    """Credentials are invalid, or a review failed."""


class TokenStatus(msgspec.Struct, frozen=True):
    """The answer to a TokenReview."""

    authenticated: bool = False
    user: UserInfo = UserInfo()
    error: str = ""


class AccessStatus(msgspec.Struct, frozen=True):
    """The answer to a SubjectAccessReview."""

    allowed: bool = False
    denied: bool = False
    reason: str = ""


Status = TypeVar("Status", bound=TokenStatus | AccessStatus)

_ATTEMPTS: Final = 5
_FIRST_PAUSE_SECONDS: Final = 0.5
_PAUSE_FACTOR: Final = 1.5
_PAUSE_JITTER: Final = 0.2
_TRANSIENT: Final = frozenset(("InternalError", "Timeout", "TooManyRequests", "Unanswered"))
_TIMEOUT_SECONDS: Final = 10
_ANSWERS_MAX: Final = 8192


class _Review(msgspec.Struct):
    status: msgspec.Raw = msgspec.Raw(b"{}")


_review: Final = msgspec.json.Decoder(_Review)


class Reviews(Generic[Status]):
    """Reviews of one kind, with retries and a cache; equal concurrent ones share one request."""

    def __init__(
        self,
        rest: Rest,
        answer: type[Status],
        keep_seconds: Callable[[Status], float],
        random: Random,
    ) -> None:
        """Set up; `answer` is the class of the answers.

        An answer is cached for `keep_seconds`. `random` draws the jitter of the pauses before
        retries.
        """
        self._rest = rest
        self._keep_seconds = keep_seconds
        self._random = random
        self._status: msgspec.json.Decoder[Status] = msgspec.json.Decoder(answer)
        self._about = _ABOUT[answer]
        # Tokens are secret, so answers are cached by keyed hashes.
        self._key = token_bytes(32)
        self._answers: dict[bytes, tuple[float, Status]] = {}
        self._asked: dict[bytes, asyncio.Future[Status]] = {}

    async def ask(self, spec: dict[str, Any]) -> Status:
        """Return the status of a review with this spec; raises AccessError if it failed."""
        encoded = msgspec.json.encode(spec)
        digest = hashlib.blake2b(encoded, key=self._key).digest()
        known = self._answers.get(digest)
        if known is not None and asyncio.get_running_loop().time() <= known[0]:
            return known[1]
        asked = self._asked.get(digest)
        if asked is None:
            asked = self._asked[digest] = asyncio.ensure_future(self._review(encoded))
            asked.add_done_callback(lambda done: self._take_in(digest, done))
        return await asyncio.shield(asked)

    def _take_in(self, digest: bytes, done: asyncio.Future[Status]) -> None:
        del self._asked[digest]
        self._answers.pop(digest, None)
        if done.cancelled() or done.exception() is not None:
            return
        seconds = self._keep_seconds(done.result())
        if seconds > 0:
            self._answers[digest] = done.get_loop().time() + seconds, done.result()
            if len(self._answers) > _ANSWERS_MAX:
                del self._answers[next(iter(self._answers))]

    async def _review(self, spec: bytes) -> Status:
        about = self._about
        review = {
            "kind": about.kind,
            "apiVersion": f"{about.group}/v1",
            "metadata": {},
            "spec": msgspec.Raw(spec),
            "status": about.empty,
        }
        request = Request(
            method="POST",
            path=f"/apis/{about.group}/v1/{about.kind.lower()}s",
            query=about.query,
            body=msgspec.json.encode(review),
            timeout_seconds=_TIMEOUT_SECONDS,
        )
        try:
            async with asyncio.timeout(_TIMEOUT_SECONDS):
                body = await self._send(request)
            return self._status.decode(_review.decode(body).status)
        except (ApiError, TimeoutError, msgspec.MsgspecError) as error:
            problem = str(error) or "context deadline exceeded"
            log.error("Failed to make webhook %s request: %s", about.purpose, problem)
            raise AccessError(problem) from None

    async def _send(self, request: Request) -> bytes:
        """Return the answer to a request, after at most five attempts."""
        pause = _FIRST_PAUSE_SECONDS
        for _ in range(_ATTEMPTS - 1):
            try:
                return await self._rest.send(request)
            except ApiError as error:
                if error.reason not in _TRANSIENT and error.retry_after_seconds is None:
                    raise
            await asyncio.sleep(pause * (1 + self._random.random() * _PAUSE_JITTER))
            pause *= _PAUSE_FACTOR
        return await self._rest.send(request)


class _Kind(msgspec.Struct, frozen=True):
    """A kind of reviews: names, the status that is sent, and the purpose in messages."""

    group: str
    kind: str
    purpose: str
    empty: dict[str, Any]
    query: Mapping[str, str] = {}


_ABOUT: Final[dict[type, _Kind]] = {
    TokenStatus: _Kind("authentication.k8s.io", "TokenReview", "authenticator", {"user": {}}),
    AccessStatus: _Kind(
        "authorization.k8s.io",
        "SubjectAccessReview",
        "authorizer",
        {"allowed": False},
        {"timeout": f"{_TIMEOUT_SECONDS}s"},
    ),
}
