"""SecureServing listens on the secure port and passes every request to one function.

Upstream: staging/src/k8s.io/apiserver/pkg/server/secure_serving.go,
          staging/src/k8s.io/apiserver/pkg/endpoints/filters/cachecontrol.go (v1.36)
Differs:  only HTTP/1.1; responses have a Server header, which the library requires.
"""

from __future__ import annotations

import asyncio
import logging
import ssl
from collections.abc import Awaitable, Callable
from types import TracebackType
from typing import Final, Protocol, Self
from urllib.parse import unquote

from aiohttp import web

from kubesched.app.http_exchange import HttpRequest, HttpResponse, error_response
from kubesched.framework.structured_log import V3, write

log: Final = logging.getLogger(__name__)

Handler = Callable[[HttpRequest], Awaitable[HttpResponse]]

SHUTDOWN_SECONDS: Final = 5.0
"""How long requests under way may continue when the port closes."""


class _Chained(Protocol):
    """A TLS connection of Python 3.13 or later."""

    def get_unverified_chain(self) -> list[bytes]: ...


class SecureServing:
    """A listener, open within `async with`.

    Attributes:
        address: The address.
        port: The port, also if the system chose it.
    """

    def __init__(
        self,
        handler: Handler,
        context: ssl.SSLContext,
        address: str,
        port: int,
        *,
        shares_port: bool = False,
        now: Callable[[], float] = lambda: asyncio.get_running_loop().time(),
        shutdown_seconds: float = SHUTDOWN_SECONDS,
    ) -> None:
        """Set up.

        Args:
            handler: Answers requests.
            context: Has the server's certificate.
            address: The address to listen on; unspecified for all.
            port: 0 for a free one.
            shares_port: Whether other processes may listen on the port too.
            now: A monotonic clock in seconds, for latencies in the log.
            shutdown_seconds: How long requests under way may continue when it closes.
        """
        self.address = address
        self.port = port
        self._handler = handler
        self._context = context
        self._shares_port = shares_port
        self._now = now
        self._shutdown_seconds = shutdown_seconds
        self._runner: web.ServerRunner | None = None

    async def __aenter__(self) -> Self:
        """Start to listen.

        Raises:
            OSError: The address is in use, or not one of this machine.
        """
        server = web.Server(self._serve, access_log=None)
        self._runner = web.ServerRunner(server, shutdown_timeout=self._shutdown_seconds)
        await self._runner.setup()
        host = None if self.address in {"", "0.0.0.0", "::"} else self.address  # noqa: S104 - the flag's words for everywhere
        try:
            await web.TCPSite(
                self._runner,
                host,
                self.port,
                ssl_context=self._context,
                reuse_port=self._shares_port or None,
            ).start()
        except OSError:
            await self._runner.cleanup()
            raise
        self.port = self._runner.addresses[0][1]
        log.info("Serving securely on %s:%d", self.address, self.port)
        return self

    async def __aexit__(
        self,
        _type: type[BaseException] | None,
        _error: BaseException | None,
        _traceback: TracebackType | None,
    ) -> None:
        """Stop listening, and wait for requests under way, up to `shutdown_seconds`."""
        if self._runner is not None:
            await self._runner.cleanup()
            self._runner = None
            log.info("Stopped listening on %s:%d", self.address, self.port)

    async def _serve(self, request: web.BaseRequest) -> web.StreamResponse:
        began = self._now()
        try:
            answer = await self._handler(await _request_of(request))
        except web.HTTPException as refusal:
            answer = error_response(refusal.reason, refusal.status)
        except Exception:
            log.exception("Failed to answer %s %s", request.method, request.path)
            answer = error_response(
                "This request caused apiserver to panic. Look in the logs.", 500
            )
        if log.isEnabledFor(V3):
            milliseconds = (self._now() - began) * 1000
            write(
                log,
                V3,
                "HTTP",
                verb=request.method,
                URI=request.raw_path,
                latency=f"{milliseconds:.3f}ms",
                userAgent=request.headers.get("User-Agent", ""),
                srcIP=request.remote or "",
                resp=answer.status,
            )
        return _response_of(answer)


async def _request_of(request: web.BaseRequest) -> HttpRequest:
    body = await request.read()
    path = request.raw_path.partition("?")[0]
    return HttpRequest(
        method=request.method,
        path=unquote(path),
        target=request.raw_path,
        headers=tuple(request.headers.items()),
        body=body,
        certificates=_certificates_of(request.get_extra_info("ssl_object")),
    )


def _certificates_of(connection: ssl.SSLObject | None) -> tuple[bytes, ...]:
    if connection is None:
        return ()
    if hasattr(connection, "get_unverified_chain"):
        chained: _Chained = connection
        return tuple(chained.get_unverified_chain())
    own = connection.getpeercert(binary_form=True)
    return () if own is None else (own,)


def _response_of(answer: HttpResponse) -> web.Response:
    response = web.Response(status=answer.status, body=answer.body)
    response.headers["Cache-Control"] = "no-cache, private"
    response.headers["Server"] = "kubesched"
    if answer.content_type:
        response.headers["Content-Type"] = answer.content_type
    for name, value in answer.headers:
        response.headers[name] = value
    return response
