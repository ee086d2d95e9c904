"""RequestHeaders identifies users by the headers of an authenticating proxy.

Upstream: staging/src/k8s.io/apiserver/pkg/authentication/request/headerrequest (v1.36)
Differs:  nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from urllib.parse import unquote

import msgspec
from cryptography import x509

from kubesched.app.client_certificates import common_name
from kubesched.app.http_exchange import HttpRequest
from kubesched.app.token_reviews import AuthenticationError
from kubesched.app.users import UserInfo


class RequestHeaders(msgspec.Struct, frozen=True):
    """The trusted proxies, and their headers.

    Attributes:
        authorities: Of the proxies' certificates.
        username_headers, uid_headers: The first header that is present counts.
        group_headers: All values count.
        extra_prefixes: The rest of a header's name is the key.
        allowed_names: Common names of proxies; empty for any verified one.
    """

    authorities: tuple[x509.Certificate, ...] = ()
    username_headers: tuple[str, ...] = ()
    uid_headers: tuple[str, ...] = ()
    group_headers: tuple[str, ...] = ()
    extra_prefixes: tuple[str, ...] = ()
    allowed_names: tuple[str, ...] = ()

    def check_proxy(self, certificate: x509.Certificate) -> None:
        """Check that a verified certificate belongs to an allowed proxy.

        Raises:
            AuthenticationError: Its name is not allowed.
        """
        name = common_name(certificate)
        if self.allowed_names and name not in self.allowed_names:
            raise AuthenticationError(f"x509: subject with cn={name} is not in the allowed list")

    def user_of(self, request: HttpRequest) -> UserInfo | None:
        """Return the user of the headers, None without a user name."""
        name = _first(request, self.username_headers)
        if not name:
            return None
        groups = tuple(
            value
            for header in self.group_headers
            for value in request.header_values(header)
            if value
        )
        return UserInfo(name, _first(request, self.uid_headers), groups, self._extra(request))

    def _extra(self, request: HttpRequest) -> tuple[tuple[str, tuple[str, ...]], ...]:
        extra: dict[str, tuple[str, ...]] = {}
        for prefix in self.extra_prefixes:
            for name, value in request.headers:
                if name.lower().startswith(prefix.lower()):
                    key = unquote(name[len(prefix) :].lower())
                    extra[key] = (*extra.get(key, ()), value)
        return tuple(extra.items())


def _first(request: HttpRequest, headers: Sequence[str]) -> str:
    values = (request.header(header) for header in headers)
    return next((value for value in values if value), "")
