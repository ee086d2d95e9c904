"""Authenticator identifies users: by proxy headers, client certificate or bearer token.

Upstream: staging/src/k8s.io/apiserver/pkg/authentication/authenticatorfactory/delegating.go,
          staging/src/k8s.io/apiserver/pkg/authentication/request (v1.36)
Rejects:  invalid credentials, unless others in the same request are valid.
Differs:  tokens in the protocol header of websockets are ignored; no endpoint is a websocket.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from datetime import datetime
from typing import Final

from cryptography import x509

from kubesched.app.client_certificates import user_of, verify
from kubesched.app.cluster_authentication import Authorities
from kubesched.app.http_exchange import HttpRequest
from kubesched.app.token_reviews import AuthenticationError, TokenReviews
from kubesched.app.users import ANONYMOUS, UserInfo, as_authenticated

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
