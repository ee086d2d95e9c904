"""SecurePort serves health, configuration, metrics and debugging to authorized clients.

Upstream: cmd/kube-scheduler/app/server.go, buildHandlerChain, newEndpointsHandler;
          staging/src/k8s.io/apiserver/pkg/server/secure_serving.go;
          staging/src/k8s.io/apiserver/pkg/endpoints/filters (v1.36)
Differs:  only HTTP/1.1; responses have a Server header, which the library requires.
"""

from __future__ import annotations

import asyncio
import logging
import ssl
import time
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from datetime import UTC, datetime
from pathlib import Path
from random import Random
from secrets import token_bytes
from types import TracebackType
from typing import Final, Protocol, Self
from urllib.parse import unquote

from aiohttp import web
from msgspec.structs import replace

from kubesched.api.errors import SetupError
from kubesched.app.authentication import (
    Authenticator,
    Authorities,
    ClusterAuthentication,
    LookupFailedError,
    RequestHeaders,
    check_bundle,
)
from kubesched.app.authorization import (
    AllowedPaths,
    AuthorizationError,
    Authorizer,
    SubjectAccessReviews,
)
from kubesched.app.endpoints import Endpoints
from kubesched.app.http_exchange import (
    HttpRequest,
    HttpResponse,
    error_response,
    forbidden,
    internal_error,
    unauthorized,
)
from kubesched.app.options import AccessOptions, ServingOptions
from kubesched.app.reviews import AuthenticationError, ReviewRetries, TokenReviews
from kubesched.app.serving_certificates import (
    ask_for_certificates,
    file_problem,
    serving_context,
    serving_pair,
)
from kubesched.client.connect import connect, find_settings
from kubesched.client.connection_settings import ConnectionSettings
from kubesched.client.rest import HttpRestClient
from kubesched.framework.structured_log import V3, V4, write

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


# The port.


class AccessCheck:
    """Authenticates and authorizes requests before the endpoints answer them."""

    def __init__(
        self,
        authenticator: Authenticator,
        authorizer: Authorizer,
        answer: Callable[[HttpRequest], HttpResponse],
    ) -> None:
        """Set up.

        Args:
            authenticator: Identifies the user.
            authorizer: Decides whether the user may request the path.
            answer: Answers authorized requests.
        """
        self._authenticator = authenticator
        self._authorizer = authorizer
        self._answer = answer

    async def handle(self, request: HttpRequest) -> HttpResponse:
        """Return the answer, or a refusal: 401, 403, or 500 if authorization fails."""
        try:
            user = await self._authenticator.authenticate(request)
        except AuthenticationError as error:
            write(log, logging.ERROR, "Unable to authenticate the request", err=str(error))
            return unauthorized(request)
        try:
            verdict = await self._authorizer.authorize(user, request)
        except AuthorizationError as error:
            return internal_error(request, str(error))
        if not verdict.is_allowed:
            write(log, V4, "Forbidden", URI=request.target, reason=verdict.reason)
            return forbidden(request, user.name, verdict.reason)
        return self._answer(request)


def _now() -> datetime:
    return datetime.now(UTC)


class SecurePort:
    """The secure port of one process."""

    def __init__(
        self,
        serving: ServingOptions,
        access: AccessOptions,
        settings: ConnectionSettings,
        endpoints: Endpoints,
    ) -> None:
        """Read certificates; nothing is served yet.

        Args:
            serving: Address, port and TLS.
            access: Authentication and authorization.
            settings: The API server for reviews, unless a flag names another one.
            endpoints: Answer the requests.

        Raises:
            ServingCertificateError: A certificate cannot be used.
            ServingTlsError: A version or cipher suite is unknown.
            KubeconfigError: A kubeconfig for reviews cannot be used.
            SetupError: A file with authorities cannot be used.
        """
        self._serving = serving
        self._options = access
        self._endpoints = endpoints
        self._context = serving_context(serving_pair(serving, _now), serving)
        self._own = _authorities_in(access)
        ask_for_certificates(self._context, self._own.pem)
        self._authentication_settings = _settings(
            "authentication", access.authentication_kubeconfig, settings
        )
        self._authorization_settings = _settings(
            "authorization", access.authorization_kubeconfig, settings
        )

    async def open(self, opened: AsyncExitStack) -> None:
        """Serve until the stack is closed.

        Raises:
            SetupError: The address is in use.
            LookupFailedError: The cluster's client authorities cannot be read, but are required.
        """
        authentication = _connection(self._authentication_settings, opened)
        authorization = _connection(self._authorization_settings, opened)
        cluster = await self._follow_cluster(authentication, opened)
        retries = ReviewRetries(Random())  # noqa: S311 - spreads retries
        access = AccessCheck(
            Authenticator(
                lambda: self._authorities(cluster),
                TokenReviews(
                    authentication,
                    retries,
                    time.monotonic,
                    self._options.token_cache_seconds,
                    token_bytes(32),
                ),
                _now,
            ),
            Authorizer(
                AllowedPaths(self._options.always_allow_paths),
                SubjectAccessReviews(
                    authorization,
                    retries,
                    time.monotonic,
                    self._options.allowed_cache_seconds,
                    self._options.denied_cache_seconds,
                ),
            ),
            self._endpoints.answer,
        )
        address, port = self._serving.bind_address, self._serving.secure_port
        serving = SecureServing(
            access.handle,
            self._context,
            address,
            port,
            shares_port=self._serving.permit_port_sharing,
        )
        try:
            await opened.enter_async_context(serving)
        except OSError as error:
            raise SetupError(
                f"--secure-port {port}: cannot listen on {address}: {error.strerror or error}; "
                "choose another port, or 0 to serve nothing"
            ) from error

    async def _follow_cluster(
        self, rest: HttpRestClient, opened: AsyncExitStack
    ) -> ClusterAuthentication | None:
        if self._options.authentication_skip_lookup:
            return None
        cluster = ClusterAuthentication(
            rest, lambda authorities: ask_for_certificates(self._context, authorities.pem)
        )
        try:
            await cluster.refresh()
        except LookupFailedError as error:
            if not self._options.tolerate_lookup_failure:
                raise
            log.warning(
                "Error looking up in-cluster authentication configuration: %s; continuing without "
                "it, so requests may be treated as anonymous",
                error,
            )
        following = asyncio.ensure_future(cluster.run())
        opened.callback(following.cancel)
        return cluster

    def _authorities(self, cluster: ClusterAuthentication | None) -> Authorities:
        found = Authorities() if cluster is None else cluster.authorities
        # Files replace the cluster's authorities, separately for clients and proxies.
        if self._own.client:
            found = replace(found, client=self._own.client)
        if self._own.proxies.authorities:
            found = replace(found, proxies=self._own.proxies)
        return found


def _authorities_in(access: AccessOptions) -> Authorities:
    """Return the authorities of files, empty without files."""
    flags = access.proxies
    return Authorities(
        _bundle("--client-ca-file", access.client_ca_file),
        RequestHeaders(_bundle("--requestheader-client-ca-file", flags.client_ca_file), flags),
    )


def _bundle(flag: str, file: str) -> str:
    if not file:
        return ""
    try:
        pem = Path(file).read_text(encoding="utf-8")
        check_bundle(pem)
    except OSError as error:
        raise SetupError(f"{flag} {file}: {file_problem(error)}") from error
    except ValueError as error:
        raise SetupError(f"{flag} {file}: {error}") from error
    return pem


def _settings(purpose: str, kubeconfig: str, default: ConnectionSettings) -> ConnectionSettings:
    if not kubeconfig:
        return default
    try:
        return find_settings(kubeconfig=kubeconfig)
    except SetupError as error:
        raise SetupError(
            f"--{purpose}-kubeconfig {kubeconfig}: failed to get delegated {purpose} kubeconfig: "
            f"{error}"
        ) from error


def _connection(settings: ConnectionSettings, opened: AsyncExitStack) -> HttpRestClient:
    rest = connect(settings, qps=-1)
    opened.push_async_callback(rest.aclose)
    return rest
