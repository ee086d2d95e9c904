"""HttpRestClient sends requests over HTTP/1.1: rate limit, retries, timeouts, credentials, streams.

Upstream: staging/src/k8s.io/client-go/rest/request.go, with_retry.go, util/flowcontrol/throttle.go,
          golang.org/x/time/rate (v1.36)
Differs:  only JSON and HTTP/1.1 are spoken; a request refused with 401 is sent once more when newer
          credentials are found; a GET whose connection breaks is repeated at once, as Go's
          transport does for kept connections, then, as upstream, after a second each; redirects
          are not followed; a stream that cannot be opened because the connection broke is an
          error, not an empty stream. One rate limit is for a whole connection even with the default
          rate, where upstream has one per API group; a cancelled wait does not return its token. A
          request is given up after 90 seconds; upstream does so after 45 seconds in which the
          server answers no ping of HTTP/2.
Invariants: a request that changes something is sent again only if the server has refused it; in any
            t seconds at most burst + t * qps requests pass.
"""

from __future__ import annotations

import asyncio
import math
import re
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable
from contextlib import aclosing, asynccontextmanager
from functools import partial
from http import HTTPStatus
from time import monotonic
from typing import Final
from urllib.parse import quote, urlencode, urlsplit

import msgspec

from kubesched.api.errors import ApiError, SetupError
from kubesched.api.go_text import go_duration
from kubesched.client.connection_settings import ConnectionSettings
from kubesched.client.credentials import Credential, Credentials, CredentialsError
from kubesched.client.dial import Dialer
from kubesched.client.errors import (
    UNANSWERED,
    error_of_answer,
    error_of_failure,
    is_broken_connection,
    retry_after_seconds,
)
from kubesched.client.http_connection import ConnectionPool, HttpConnection
from kubesched.client.requests import Request, RequestObserver
from kubesched.client.tls import CertificateFiles, load_key_pair, tls_context

QPS_DEFAULT: Final = 5.0
BURST_DEFAULT: Final = 10


class TokenBucket:
    """A bucket, full at first, that gets `qps` tokens per second; each request takes one.

    Raises SetupError if no request could ever be sent.
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
    """Return the limiter for the rates of `connect.connect`, None for no limit."""
    if qps < 0:
        return None
    if qps == 0:
        return TokenBucket(QPS_DEFAULT, burst or BURST_DEFAULT)
    return TokenBucket(qps, burst)


# Requests.

_RETRIES_MAX: Final = 10
_BROKEN_WAIT_SECONDS: Final = 1.0
# An API server ends requests after a minute; one that is silent for longer hangs or is gone.
_ANSWER_SECONDS_MAX: Final = 90.0
_GOOD: Final = range(200, 207)
PATH_SAFE: Final = "/:@!$&'()*+,;=~"
"""Characters of a path that are sent as they are."""

# Most paths need no quoting.
_is_plain: Final = re.compile(r"[\w/.:-]*", re.ASCII).fullmatch
_LINE_BREAKS: Final = re.compile(r"[\r\n\0]")
# Methods whose requests have a body, even an empty one.
_WITH_BODY: Final = frozenset(("POST", "PUT", "PATCH"))


Permit = Callable[[], None]


class HttpRestClient:
    """Sends requests to one API server, as one user, from one event loop.

    `connect.connect` makes it. The environment's proxy is not used; the headers are sent with every
    request. As upstream, streams wait for the limiter only when they are retried. The timeout is
    for requests without one of their own, and is also sent to the server.
    """

    def __init__(
        self,
        settings: ConnectionSettings,
        *,
        headers: tuple[tuple[str, str], ...] = (),
        credentials: Credentials | None = None,
        limiter: TokenBucket | None = None,
        timeout_seconds: float | None = None,
        observer: RequestObserver | None = None,
        permit: Permit | None = None,
    ) -> None:
        self._server = server = settings.server
        parts = urlsplit(server)
        # A label of metrics.
        self._host = parts.netloc
        self._headers = headers
        tls = settings.tls
        self._tls = tls_context(tls) if parts.scheme == "https" else None
        self._certificate_files = CertificateFiles(tls, monotonic)
        self._dialer = Dialer(server, self._tls, tls.server_name, settings.proxy_url)
        # The prefix of every path: a forwarding proxy needs the whole URL.
        self._base = server if self._dialer.is_forwarded else parts.path
        self._credentials = credentials or Credentials()
        self._limiter = limiter
        self._timeout_seconds = timeout_seconds
        self._observer = observer or RequestObserver()
        self._permit = permit
        self._pool = ConnectionPool(self._dialer.dial)
        self._certificate = b""
        self._authorization = ""
        self._fields = ""

    async def send(self, request: Request) -> bytes:
        """Return the body of the response; raises ApiError as `Rest.send` does."""
        start = monotonic()
        body = b""
        sent, limit = self._with_timeout(request), self._limit(request)
        try:
            # Time spent in the rate limiter does not count towards the timeout.
            await self._take_turn(sent)
            if limit is None:
                # Bindings and events come this way; a timeout without an end costs time, too.
                body = await self._exchange(sent)
            else:
                async with asyncio.timeout(limit):
                    body = await self._exchange(sent)
        except (OSError, CredentialsError) as failure:
            raise self._error(failure, sent) from failure
        finally:
            seconds = monotonic() - start
            self._observer.finished(
                request.method, self._host, seconds, len(request.body), len(body)
            )
        return body

    @asynccontextmanager
    async def stream(self, request: Request) -> AsyncIterator[AsyncIterator[bytes]]:
        """Open a stream of lines, as `Rest.stream` does."""
        try:
            async with asyncio.timeout(self._limit(request)):
                connection = await self._answer(request)
        except (OSError, CredentialsError) as failure:
            raise self._error(failure, request) from failure
        connection.deadline = math.inf
        try:
            async with aclosing(lines_of(partial(self._chunk, connection, request))) as lines:
                yield lines
        finally:
            self._pool.give_back(connection)

    async def _chunk(self, connection: HttpConnection, request: Request) -> bytes:
        try:
            return await connection.read()
        except OSError as failure:
            raise self._error(failure, request) from failure

    def _limit(self, request: Request) -> float | None:
        return request.timeout_seconds or self._timeout_seconds

    def _with_timeout(self, request: Request) -> Request:
        """Return the request with the connection's timeout as a query parameter, as upstream."""
        if self._timeout_seconds is None:
            return request
        limit = request.timeout_seconds or self._timeout_seconds
        query = {**request.query, "timeout": go_duration(limit)}
        return msgspec.structs.replace(request, query=query)

    async def aclose(self) -> None:
        """Close all connections; requests under way fail."""
        await self._pool.aclose()

    async def _exchange(self, request: Request) -> bytes:
        """Return the body of a successful response. Raises as `_answer` does."""
        connection = await self._answer(request)
        try:
            return await connection.read_all()
        finally:
            self._pool.give_back(connection)

    async def _answer(self, request: Request) -> HttpConnection:
        """Return a connection with the head of a successful response, after retries if needed.

        Raises ApiError if the server refuses, OSError if it does not respond, CredentialsError if
        credentials are not available.
        """
        credential = await self._credentials.get()
        retries, may_renew = 0, True
        while True:
            failure: Exception
            wait_seconds: float | None = None
            try:
                connection = await self._attempt(request, credential, is_retry=retries > 0)
            except OSError as error:
                failure = error
                # The server may have executed a write before the connection broke.
                if request.method == "GET" and is_broken_connection(error):
                    wait_seconds = _BROKEN_WAIT_SECONDS if retries else 0.0
            else:
                status = connection.status
                if status in _GOOD:
                    return connection
                if status == HTTPStatus.TOO_MANY_REQUESTS or status >= 500:
                    wait_seconds = retry_after_seconds(_header(connection, b"retry-after"))
                failure = await self._refusal(connection, request)
                if status == HTTPStatus.UNAUTHORIZED and may_renew:
                    credential = await self._renewed(credential, failure)
                    may_renew, wait_seconds = False, 0.0
            if wait_seconds is None or retries == _RETRIES_MAX:
                raise failure
            retries += 1
            await asyncio.sleep(wait_seconds)
            await self._take_turn(request)

    async def _attempt(
        self, request: Request, credential: Credential, *, is_retry: bool
    ) -> HttpConnection:
        code = "<error>"
        try:
            message = self._message(request, credential)
            if self._renew_certificates(credential):
                self._pool.retire()
            connection = await self._pool.take()
            try:
                # No await between this check and the write.
                if self._permit is not None and request.method != "GET":
                    self._permit()
                code = str(await connection.ask(message, _ANSWER_SECONDS_MAX))
            except BaseException:
                self._pool.give_back(connection)
                raise
            return connection
        finally:
            self._observer.attempted(code, request.method, self._host, is_retry=is_retry)

    async def _refusal(self, connection: HttpConnection, request: Request) -> ApiError:
        parts = []
        try:
            while part := await connection.read():
                parts.append(part)
        except OSError:
            # What arrived is quoted: a server may close at once what it does not want to read.
            pass
        finally:
            self._pool.give_back(connection)
        return error_of_answer(
            connection.status,
            b"".join(parts),
            method=request.method,
            content_type=_header(connection, b"content-type"),
            retry_after=_header(connection, b"retry-after"),
        )

    async def _renewed(self, refused: Credential, failure: Exception) -> Credential:
        """Return newer credentials, or raise the refusal if there are none."""
        try:
            newer = await self._credentials.renew(refused)
        except CredentialsError:
            raise failure from None
        if newer == refused:
            raise failure
        return newer

    def _renew_certificates(self, credential: Credential) -> bool:
        """Load new certificates and authorities; return whether there are any."""
        if self._tls is None:
            return False
        renewed = self._certificate_files.renew()
        if renewed is not None:
            self._tls, self._certificate = renewed, b""
            self._dialer.use(renewed)
        if credential.certificate and credential.certificate != self._certificate:
            load_key_pair(self._tls, credential.certificate, credential.key)
            self._certificate = credential.certificate
            return True
        return renewed is not None

    def _message(self, request: Request, credential: Credential) -> bytes:
        """Return the bytes of a request."""
        if not self._fields or credential.header != self._authorization:
            self._fields = self._common_fields(credential)
            self._authorization = credential.header
        body = request.body
        head = (
            f"{request.method} {self._base}{_target(request)} HTTP/1.1\r\n{self._fields}"
            f"Accept: {request.accept}\r\n"
        )
        if body:
            head += f"Content-Type: {request.content_type}\r\nContent-Length: {len(body)}\r\n"
        elif request.method in _WITH_BODY:
            head += "Content-Length: 0\r\n"
        return f"{head}\r\n".encode() + body

    def _common_fields(self, credential: Credential) -> str:
        """Return the header fields of all requests; raises CredentialsError for a line break."""
        fields = [("Host", self._dialer.authority), *self._headers]
        if credential.header:
            fields.append(("Authorization", credential.header))
        if self._dialer.is_forwarded and self._dialer.proxy_authorization:
            fields.append(("Proxy-Authorization", self._dialer.proxy_authorization))
        for name, value in fields:
            if _LINE_BREAKS.search(value):
                raise CredentialsError(f"{name} must not contain line breaks")
        return "".join(f"{name}: {value}\r\n" for name, value in fields)

    async def _take_turn(self, request: Request) -> None:
        if self._limiter is not None:
            seconds = await self._limiter.wait()
            self._observer.rate_limited(request.method, self._host, seconds)

    def _error(self, failure: OSError | CredentialsError, request: Request) -> ApiError:
        if isinstance(failure, CredentialsError):
            return ApiError(0, UNANSWERED, f"getting credentials: {failure}")
        return error_of_failure(failure, request.method, f"{self._server}{_target(request)}")


def _target(request: Request) -> str:
    path = request.path
    if not _is_plain(path):
        path = quote(path, safe=PATH_SAFE)
    if not request.query:
        return path
    return f"{path}?{urlencode(sorted(request.query.items()))}"


def _header(connection: HttpConnection, name: bytes) -> str:
    return connection.headers.get(name, b"").decode("latin-1")


async def lines_of(read: Callable[[], Awaitable[bytes]]) -> AsyncGenerator[bytes, None]:
    """Yield the lines without line breaks; empty ones are skipped.

    Bytes after the last line feed are yielded as a line, although it may be incomplete. `read`
    returns the next chunk, b"" at the end.
    """
    # A long line arrives in many chunks; joining them once keeps the cost linear.
    pieces: list[bytes] = []
    while chunk := await read():
        lines = chunk.split(b"\n")
        if len(lines) == 1:
            pieces.append(chunk)
            continue
        if pieces:
            pieces.append(lines[0])
            lines[0] = b"".join(pieces)
            pieces.clear()
        rest = lines.pop()
        for line in lines:
            if line:
                yield line
        if rest:
            pieces.append(rest)
    if pieces:
        yield b"".join(pieces)
