"""Requests over HTTP/1.1: kept connections, retries, time limits, credentials, streams of lines.

Upstream: staging/src/k8s.io/client-go/rest/request.go, with_retry.go (v1.36)
Differs:  only JSON is spoken, and no HTTP/2; a request that the server does not know the user of
          is sent once more when newer credentials are found; a GET whose connection breaks is
          first repeated at once, as Go's transport does for connections it kept, then as
          upstream after a second each; redirects are not followed; a stream that cannot be opened
          for a broken connection is an error, not an empty stream.
Invariants: a request that changes something is sent again only if the server has refused it.
"""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import aclosing, asynccontextmanager
from operator import itemgetter
from typing import Any, Final
from urllib.parse import quote, urlencode, urlsplit

import aiohttp
import msgspec
from yarl import URL

from kubesched.api.errors import ApiError
from kubesched.api.go_duration import go_duration
from kubesched.client.credentials import (
    Credential,
    Credentials,
    CredentialsError,
    FixedCredentials,
)
from kubesched.client.errors import (
    UNANSWERED,
    error_of_answer,
    error_of_failure,
)
from kubesched.client.line_stream import lines_of
from kubesched.client.rate_limit import TokenBucket
from kubesched.client.request_observer import IgnoringObserver, RequestObserver
from kubesched.client.requests import JSON, Request
from kubesched.client.retries import Retries
from kubesched.client.tls import CertificateFiles, load_key_pair

_CONNECTIONS_MAX: Final = 64
_IDLE_SECONDS_MAX: Final = 60.0
_CONNECT_SECONDS_MAX: Final = 30.0
_KEEP_ALIVE_SECONDS: Final = 30
_READ_BUFFER_BYTES: Final = 2**20
_UNAUTHORIZED: Final = 401
_GOOD: Final = range(200, 207)
_PATH_SAFE: Final = "/:@!$&'()*+,;=~"
_NO_LIMIT: Final = aiohttp.ClientTimeout(total=None, sock_connect=_CONNECT_SECONDS_MAX)


Permit = Callable[[], None]


class Transport(msgspec.Struct, frozen=True, kw_only=True):
    """What lies below the requests.

    Attributes:
        tls: Context for https; None for http.
        server_name: The name to look for in the server's certificate; "" for the host's.
        proxy_url: Of an HTTP proxy, "" without one.
        headers: Sent with every request.
        certificate_files: Keeps the context's client certificate new; None without files.
    """

    tls: ssl.SSLContext | None = None
    server_name: str = ""
    proxy_url: str = ""
    headers: tuple[tuple[str, str], ...] = ()
    certificate_files: CertificateFiles | None = None


class AiohttpRest:
    """Sends requests to one API server, as one user, from one event loop.

    Args:
        server: The server's URL, without a slash at the end.
        transport: TLS, proxy and headers.
        credentials: Who speaks.
        limiter: Spaces requests out; streams wait only when they are retried, as upstream.
        timeout_seconds: For a request without a limit of its own; the server is told as well. None
            for no limit.
        observer: Is told of every request.
        now: The present moment in seconds.
        permit: Asked right before a request that changes something is written; raises an ApiError
            to keep it back. None permits everything.
    """

    def __init__(
        self,
        server: str,
        *,
        transport: Transport = Transport(),  # noqa: B008 - frozen
        credentials: Credentials | None = None,
        limiter: TokenBucket | None = None,
        timeout_seconds: float | None = None,
        observer: RequestObserver | None = None,
        now: Callable[[], float],
        permit: Permit | None = None,
    ) -> None:
        self._server = server
        self._host = urlsplit(server).netloc
        self._base = URL(server, encoded=True)
        self._base_path = self._base.raw_path.rstrip("/")
        self._transport = transport
        self._credentials = credentials or FixedCredentials()
        self._limiter = limiter
        self._timeout_seconds = timeout_seconds
        self._observer: RequestObserver = observer or IgnoringObserver()
        self._now = now
        self._permit = permit
        self._session: aiohttp.ClientSession | None = None
        self._certificate = b""
        self._closing: list[asyncio.Task[None]] = []
        self._is_closed = False

    @property
    def host(self) -> str:
        """The server's host, with its port if the URL has one: a label of metrics."""
        return self._host

    async def send(self, request: Request) -> bytes:
        """Return the body of the answer.

        Raises:
            ApiError: The server refused, or did not answer.
        """
        start = self._now()
        body = b""
        told = self._with_timeout(request)
        try:
            # Waiting for one's turn is no fault of the server's, so its time does not count.
            await self._take_turn(told)
            async with asyncio.timeout(self._limit(request)):
                response = await self._answer(told)
                async with response:
                    body = await response.read()
        except (aiohttp.ClientError, OSError, CredentialsError) as failure:
            raise self._error(failure, told) from failure
        finally:
            seconds = self._now() - start
            self._observer.finished(
                request.method, self._host, seconds, len(request.body), len(body)
            )
        return body

    @asynccontextmanager
    async def stream(self, request: Request) -> AsyncIterator[AsyncIterator[bytes]]:
        """Open a stream; yields its lines as they come, without their ends, of any length.

        Raises:
            ApiError: The server refused, did not answer, or the connection broke while reading.
        """
        try:
            async with asyncio.timeout(self._limit(request)):
                response = await self._answer(request)
        except (aiohttp.ClientError, OSError, CredentialsError) as failure:
            raise self._error(failure, request) from failure
        try:
            async with aclosing(self._lines(response, request)) as lines:
                yield lines
        finally:
            # The rest of a stream is of no use, and neither is its connection.
            response.close()

    async def _lines(
        self, response: aiohttp.ClientResponse, request: Request
    ) -> AsyncGenerator[bytes, None]:
        try:
            async for line in lines_of(response.content.readany):
                yield line
        except (aiohttp.ClientError, OSError) as failure:
            raise self._error(failure, request) from failure

    def _limit(self, request: Request) -> float | None:
        return request.timeout_seconds or self._timeout_seconds

    def _with_timeout(self, request: Request) -> Request:
        """A connection with a limit tells the server, as upstream does."""
        limit = self._limit(request)
        if self._timeout_seconds is None or limit is None:
            return request
        query = [entry for entry in request.query if entry[0] != "timeout"]
        told = (*query, ("timeout", go_duration(limit)))
        return msgspec.structs.replace(request, query=told)

    async def aclose(self) -> None:
        """Close all connections; what is under way fails."""
        self._is_closed = True
        if self._session is not None:
            await self._session.close()
        if self._closing:
            await asyncio.gather(*self._closing)

    async def _answer(self, request: Request) -> aiohttp.ClientResponse:
        """Return the head of a good answer, after as many attempts as are due.

        Raises:
            ApiError: The server refused.
            ClientError: There was no answer.
        """
        retries = Retries(request.method)
        credential = await self._credentials.get()
        while True:
            failure: Exception
            try:
                response = await self._attempt(request, credential, retries)
                if response.status in _GOOD:
                    return response
                failure = await self._refusal(response, request)
            except (aiohttp.ClientError, OSError) as error:
                failure = error
                wait_seconds = retries.after_failure(error)
            else:
                if response.status == _UNAUTHORIZED and retries.may_renew:
                    credential = await self._renewed(credential, retries, failure)
                    continue
                header = response.headers.get("Retry-After", "")
                wait_seconds = retries.after_answer(response.status, header)
            if wait_seconds is None:
                raise failure
            await asyncio.sleep(wait_seconds)
            await self._take_turn(request)

    async def _attempt(
        self, request: Request, credential: Credential, retries: Retries
    ) -> aiohttp.ClientResponse:
        code = "<error>"
        try:
            response = await self._open(credential).request(
                request.method,
                self._url(request),
                data=request.body or None,
                headers=_headers_of(request, credential),
                allow_redirects=False,
                proxy=self._transport.proxy_url or None,
                server_hostname=self._transport.server_name or None,
            )
            code = str(response.status)
            return response
        finally:
            is_retry = retries.count > 0
            self._observer.attempted(code, request.method, self._host, is_retry=is_retry)

    async def _refusal(self, response: aiohttp.ClientResponse, request: Request) -> ApiError:
        try:
            body = await response.read()
        except aiohttp.ClientError:
            body = b""
        response.release()
        return error_of_answer(
            response.status,
            body,
            method=request.method,
            content_type=response.headers.get("Content-Type", ""),
            retry_after=response.headers.get("Retry-After", ""),
        )

    async def _renewed(
        self, refused: Credential, retries: Retries, failure: Exception
    ) -> Credential:
        """Return newer credentials, or raise what the server said to the old ones."""
        try:
            newer = await self._credentials.renew(refused)
        except CredentialsError:
            raise failure from None
        if newer == refused:
            raise failure
        retries.after_renewal()
        return newer

    def _open(self, credential: Credential) -> aiohttp.ClientSession:
        """Return the session, a new one if another certificate is to be shown."""
        if self._is_closed:
            raise aiohttp.ClientConnectionError("the connection has been closed")
        if self._shows_another_certificate(credential) and self._session is not None:
            # Connections that showed the old one must not be used again.
            self._closing.append(asyncio.ensure_future(self._session.close()))
            self._session = None
        if self._session is None:
            self._session = self._new_session()
        return self._session

    def _shows_another_certificate(self, credential: Credential) -> bool:
        context, files = self._transport.tls, self._transport.certificate_files
        if context is None:
            return False
        if credential.certificate and credential.certificate != self._certificate:
            load_key_pair(context, credential.certificate, credential.key)
            self._certificate = credential.certificate
            return True
        return files is not None and files.renew()

    def _new_session(self) -> aiohttp.ClientSession:
        connector = _PermittedConnector(
            self._permit,
            limit=_CONNECTIONS_MAX,
            keepalive_timeout=_IDLE_SECONDS_MAX,
            ssl=self._transport.tls or True,
            socket_factory=_keep_alive_socket,
        )
        session = aiohttp.ClientSession(
            connector=connector,
            cookie_jar=aiohttp.DummyCookieJar(),
            headers=(("Accept", JSON), *self._transport.headers),
            skip_auto_headers=("Accept-Encoding", "Content-Type"),
            timeout=_NO_LIMIT,
            read_bufsize=_READ_BUFFER_BYTES,
        )
        # aiohttp would repeat PUT and DELETE too, after the server may have done them.
        session._retry_connection = False  # noqa: SLF001 - there is no public way
        return session

    def _url(self, request: Request) -> URL:
        path = quote(request.path, safe=_PATH_SAFE)
        if not request.query:
            # Most requests: what comes before the path has been taken apart already.
            return self._base.with_path(self._base_path + path, encoded=True)
        query = urlencode(sorted(request.query, key=itemgetter(0)))
        return URL(f"{self._server}{path}?{query}", encoded=True)

    async def _take_turn(self, request: Request) -> None:
        if self._limiter is None:
            return
        seconds = await self._limiter.wait()
        self._observer.rate_limited(request.method, self._host, seconds)

    def _error(self, failure: Exception, request: Request) -> ApiError:
        if isinstance(failure, CredentialsError):
            return ApiError(0, UNANSWERED, f"getting credentials: {failure}")
        return error_of_failure(failure, request.method, str(self._url(request)))


class _PermittedConnector(aiohttp.TCPConnector):
    """Asks for permission once there is a connection: nothing is waited for after that."""

    def __init__(self, permit: Permit | None, **options: Any) -> None:
        super().__init__(**options)
        self._permit = permit

    async def connect(
        self,
        req: aiohttp.ClientRequest,
        traces: list[Any],
        timeout: aiohttp.ClientTimeout,  # noqa: ASYNC109 - aiohttp's own
    ) -> Any:
        """Return a connection for a request that is still permitted."""
        connection = await super().connect(req, traces, timeout)
        if self._permit is not None and req.method != "GET":
            try:
                self._permit()
            except ApiError:
                connection.release()
                raise
        return connection


def _headers_of(request: Request, credential: Credential) -> dict[str, str]:
    headers = {"Content-Type": request.content_type} if request.body else {}
    if credential.header:
        headers["Authorization"] = credential.header
    return headers


def _keep_alive_socket(address: aiohttp.AddrInfoType) -> socket.socket:
    """Have the kernel find out about peers that are gone: a quiet stream would wait for ever."""
    family, type_, protocol, _, _ = address
    opened = socket.socket(family=family, type=type_, proto=protocol)
    opened.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for name in ("TCP_KEEPIDLE", "TCP_KEEPINTVL"):
        # Not every system has both.
        if hasattr(socket, name):
            opened.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), _KEEP_ALIVE_SECONDS)
    return opened
