"""SecurePort serves health, configuration, metrics and debugging to authorized clients.

Upstream: cmd/kube-scheduler/app/server.go, buildHandlerChain, newEndpointsHandler;
          staging/src/k8s.io/apiserver/pkg/endpoints/filters (v1.36)
"""

from __future__ import annotations

import asyncio
import logging
from contextlib import AsyncExitStack
from pathlib import Path
from random import Random
from typing import Final

from kubesched.api.errors import SetupError
from kubesched.app.access import (
    AccessCheck,
    Authenticator,
    Authorities,
    Authorizer,
    ClusterAuthentication,
    LookupFailedError,
    check_bundle,
)
from kubesched.app.endpoints import Endpoints
from kubesched.app.options import AccessOptions, ServingOptions
from kubesched.app.reviews import AccessStatus, Reviews, TokenStatus
from kubesched.app.secure_serving import SecureServing
from kubesched.app.serving_certificates import (
    ask_for_certificates,
    file_problem,
    serving_context,
    serving_pair,
)
from kubesched.client.connect import connect, find_settings
from kubesched.client.connection_settings import ConnectionSettings
from kubesched.client.rest import HttpRestClient

log: Final = logging.getLogger(__name__)


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

        `settings` is the API server for reviews, unless a flag names another one.

        Raises:
            SetupError: A certificate, a kubeconfig for reviews or a file with authorities cannot be
                used, or a TLS version or cipher suite is unknown.
        """
        self._serving = serving
        self._options = access
        self._endpoints = endpoints
        self._context = serving_context(serving_pair(serving), serving)
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
        flags = self._options
        known = ClusterAuthentication(
            authentication,
            self._own,
            lambda authorities: ask_for_certificates(self._context, authorities.pem),
        )
        if not flags.authentication_skip_lookup:
            await self._follow(known, opened)
        random = Random()  # noqa: S311 - spreads retries

        def keep_token(status: TokenStatus) -> float:
            # After an error the API server is asked again at once.
            return 0.0 if status.error else flags.token_cache_seconds

        def keep_access(status: AccessStatus) -> float:
            return flags.allowed_cache_seconds if status.allowed else flags.denied_cache_seconds

        tokens = Reviews(authentication, TokenStatus, keep_token, random)
        reviews = Reviews(authorization, AccessStatus, keep_access, random)
        access = AccessCheck(
            Authenticator(lambda: known.authorities, tokens),
            Authorizer(flags.always_allow_paths, reviews),
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

    async def _follow(self, known: ClusterAuthentication, opened: AsyncExitStack) -> None:
        """Read the cluster's authorities, and again until the stack is closed."""
        try:
            await known.refresh()
        except LookupFailedError as error:
            if not self._options.tolerate_lookup_failure:
                raise
            log.warning(
                "Error looking up in-cluster authentication configuration: %s; continuing without "
                "it, so requests may be treated as anonymous",
                error,
            )
        following = asyncio.ensure_future(known.run())
        opened.callback(following.cancel)


def _authorities_in(access: AccessOptions) -> Authorities:
    """Return the authorities of files, empty without files."""
    flags = access.proxies
    return Authorities(
        _bundle("--client-ca-file", access.client_ca_file),
        _bundle("--requestheader-client-ca-file", flags.client_ca_file),
        flags,
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
