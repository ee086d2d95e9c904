"""Authenticator identifies users: by proxy headers, client certificate or bearer token.

The authorities that the cluster's API server trusts are in the ConfigMap
kube-system/extension-apiserver-authentication.

Upstream: staging/src/k8s.io/apiserver/pkg/authentication/authenticatorfactory/delegating.go,
          staging/src/k8s.io/apiserver/pkg/authentication/request,
          staging/src/k8s.io/apiserver/pkg/server/options/authentication.go,
          staging/src/k8s.io/apiserver/pkg/server/dynamiccertificates (v1.36)
Rejects:  invalid credentials, unless others in the same request are valid.
Differs:  tokens in the protocol header of websockets are ignored; no endpoint is a websocket. The
          ConfigMap is read every minute; upstream watches it.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping
from datetime import datetime
from typing import Final

import msgspec
from cryptography import x509

from kubesched.api.errors import ApiError, NotFoundError, SetupError
from kubesched.app.client_certificates import RequestHeaders, parse_bundle, user_of, verify
from kubesched.app.http_exchange import HttpRequest
from kubesched.app.reviews import (
    ANONYMOUS,
    AuthenticationError,
    TokenReviews,
    UserInfo,
    as_authenticated,
)
from kubesched.client.requests import Request, Rest

log: Final = logging.getLogger(__name__)


class Authenticator:
    """Identifies the user of a request."""

    def __init__(
        self,
        authorities: Callable[[], Authorities],
        tokens: TokenReviews | None,
        moment: Callable[[], datetime],
    ) -> None:
        """Set up.

        Args:
            authorities: Returns the current certificate authorities.
            tokens: Reviews tokens; None to ignore tokens.
            moment: The current time, with a time zone.
        """
        self._authorities = authorities
        self._tokens = tokens
        self._moment = moment

    async def authenticate(self, request: HttpRequest) -> UserInfo:
        """Return the user, `ANONYMOUS` without credentials.

        Raises:
            AuthenticationError: All credentials are invalid.
        """
        problems: list[str] = []
        ways: tuple[Callable[[HttpRequest], Awaitable[UserInfo | None]], ...] = (
            self._by_proxy,
            self._by_certificate,
            self._by_token,
        )
        for way in ways:
            try:
                user = await way(request)
            except AuthenticationError as error:
                problems.append(str(error))
                continue
            if user is not None:
                return as_authenticated(user)
        if problems:
            raise AuthenticationError(", ".join(problems))
        return ANONYMOUS

    async def _by_proxy(self, request: HttpRequest) -> UserInfo | None:
        proxies = self._authorities().proxies
        if not request.certificates or not proxies.authorities:
            return None
        proxies.check_proxy(self._verify(request, proxies.authorities))
        return proxies.user_of(request)

    async def _by_certificate(self, request: HttpRequest) -> UserInfo | None:
        client = self._authorities().client
        if not request.certificates or not client:
            return None
        return user_of(self._verify(request, client))

    async def _by_token(self, request: HttpRequest) -> UserInfo | None:
        token = bearer_token(request.header("Authorization"))
        if self._tokens is None or not token:
            return None
        return await self._tokens.authenticate(token)

    def _verify(
        self, request: HttpRequest, authorities: tuple[x509.Certificate, ...]
    ) -> x509.Certificate:
        return verify(request.certificates, authorities, self._moment())


def bearer_token(header: str) -> str:
    """Return the bearer token of an Authorization header, "" without one."""
    scheme, *rest = header.strip().split(" ", 2)
    return rest[0] if rest and scheme.lower() == "bearer" else ""


# What the cluster's API servers accept.

_NAME: Final = "extension-apiserver-authentication"
_PATH: Final = f"/api/v1/namespaces/kube-system/configmaps/{_NAME}"
_PERIOD_SECONDS: Final = 60.0


class LookupFailedError(SetupError):
    """The cluster's authorities could not be read."""


class _ConfigMap(msgspec.Struct):
    data: dict[str, str] | None = None


class Authorities(msgspec.Struct, frozen=True):
    """Certificate authorities.

    Attributes:
        client: Of clients.
        client_pem: The same as PEM, for handshakes.
        proxies: Of authenticating proxies, and their headers.
        proxies_pem: Their authorities as PEM.
    """

    client: tuple[x509.Certificate, ...] = ()
    client_pem: str = ""
    proxies: RequestHeaders = RequestHeaders()
    proxies_pem: str = ""

    @property
    def pem(self) -> str:
        """All authorities as PEM, "" without any."""
        return "\n".join(text for text in (self.client_pem, self.proxies_pem) if text)


NOBODY: Final = Authorities()

_config_maps: Final = msgspec.json.Decoder(_ConfigMap)
_texts: Final = msgspec.json.Decoder(tuple[str, ...])


def authorities_of(data: Mapping[str, str]) -> Authorities:
    """Return the authorities of a ConfigMap's data.

    Raises:
        ValueError: A certificate or a list cannot be parsed.
    """
    client_pem = data.get("client-ca-file", "")
    proxies_pem = data.get("requestheader-client-ca-file", "")

    def texts(name: str) -> tuple[str, ...]:
        value = data.get(f"requestheader-{name}", "")
        return _texts.decode(value) if value else ()

    proxies = RequestHeaders(
        parse_bundle(proxies_pem) if proxies_pem else (),
        texts("username-headers"),
        texts("uid-headers"),
        texts("group-headers"),
        texts("extra-headers-prefix"),
        texts("allowed-names"),
    )
    client = parse_bundle(client_pem) if client_pem else ()
    return Authorities(client, client_pem, proxies, proxies_pem)


class ClusterAuthentication:
    """The cluster's authorities, as last read.

    Attributes:
        authorities: Empty until the first read.
    """

    def __init__(
        self,
        rest: Rest,
        on_change: Callable[[Authorities], None] = lambda _authorities: None,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        """Set up.

        Args:
            rest: Reads the configmap.
            on_change: Called with new authorities.
            sleep: Waits for a number of seconds.
        """
        self.authorities = NOBODY
        self._rest = rest
        self._on_change = on_change
        self._sleep = sleep
        self._data: Mapping[str, str] | None = None

    async def refresh(self) -> None:
        """Read the ConfigMap once; if it does not exist, nothing changes.

        Raises:
            LookupFailedError: The request failed, or the data is invalid.
        """
        try:
            body = await self._rest.send(Request(path=_PATH))
            data = _config_maps.decode(body).data or {}
            if data == self._data:
                return
            self.authorities = authorities_of(data)
        except NotFoundError:
            return
        except (ApiError, ValueError, msgspec.MsgspecError) as error:
            raise LookupFailedError(str(error)) from None
        self._data = data
        self._on_change(self.authorities)

    async def run(self) -> None:
        """Read the ConfigMap every minute, until cancelled."""
        while True:
            await self._sleep(_PERIOD_SECONDS)
            try:
                await self.refresh()
            except LookupFailedError as error:
                log.warning("Unable to get configmap/%s in kube-system: %s", _NAME, error)
