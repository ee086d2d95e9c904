"""Authenticator identifies users: by proxy headers, client certificate or bearer token.

The authorities that the cluster's API server trusts are in the ConfigMap
kube-system/extension-apiserver-authentication.

Upstream: staging/src/k8s.io/apiserver/pkg/authentication/request/x509/x509.go,
          staging/src/k8s.io/apiserver/pkg/authentication/request/headerrequest,
          staging/src/k8s.io/apiserver/pkg/authentication/authenticatorfactory/delegating.go,
          staging/src/k8s.io/apiserver/pkg/authentication/request,
          staging/src/k8s.io/apiserver/pkg/server/options/authentication.go,
          staging/src/k8s.io/apiserver/pkg/server/dynamiccertificates (v1.36)
Rejects:  invalid credentials, unless others in the same request are valid.
Differs:  the handshake fails for a certificate of an unknown authority, where upstream tries the
          token next; intermediate certificates need Python 3.13. Tokens in the protocol header of
          websockets are ignored; no endpoint is a websocket. The ConfigMap is read every minute;
          upstream watches it.
"""

from __future__ import annotations

import asyncio
import hashlib
import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from datetime import datetime
from typing import Final
from urllib.parse import unquote

import msgspec
from cryptography import x509
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.serialization import Encoding
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID, ObjectIdentifier
from cryptography.x509.verification import (
    Criticality,
    ExtensionPolicy,
    Policy,
    PolicyBuilder,
    Store,
    VerificationError,
)

from kubesched.api.errors import ApiError, NotFoundError, SetupError
from kubesched.app.http_exchange import HttpRequest
from kubesched.app.options import ProxyOptions
from kubesched.app.reviews import (
    ANONYMOUS,
    AuthenticationError,
    TokenReviews,
    UserInfo,
    as_authenticated,
)
from kubesched.client.requests import Request, Rest

_UID: Final = ObjectIdentifier("1.3.6.1.4.1.57683.2")
_CLIENT_USAGES: Final = frozenset(
    (ExtendedKeyUsageOID.CLIENT_AUTH, ExtendedKeyUsageOID.ANY_EXTENDED_KEY_USAGE)
)
_CREDENTIAL_ID: Final = "authentication.kubernetes.io/credential-id"


def _require_authority(
    _policy: Policy, _certificate: x509.Certificate, constraints: x509.BasicConstraints
) -> None:
    if not constraints.ca:
        raise ValueError("not an authority")


def _require_client_usage(
    _policy: Policy, _certificate: x509.Certificate, usage: x509.ExtendedKeyUsage | None
) -> None:
    if usage is not None and not _CLIENT_USAGES & set(usage):
        raise ValueError("certificate specifies an incompatible key usage")


# Certificates of clusters come from many tools, and few follow the rules of the web PKI.
_AUTHORITY: Final = ExtensionPolicy.permit_all().require_present(
    x509.BasicConstraints, Criticality.AGNOSTIC, _require_authority
)
_CLIENT: Final = ExtensionPolicy.permit_all().may_be_present(
    x509.ExtendedKeyUsage, Criticality.AGNOSTIC, _require_client_usage
)


def parse_bundle(pem: str) -> tuple[x509.Certificate, ...]:
    """Return the certificates of a PEM text.

    Raises:
        ValueError: It has no certificate, or one cannot be parsed.
    """
    if "-----BEGIN CERTIFICATE" not in pem:
        raise ValueError("data does not contain any valid RSA or ECDSA certificates")
    try:
        return tuple(x509.load_pem_x509_certificates(pem.encode()))
    except ValueError:
        raise ValueError("a certificate in it cannot be parsed") from None


def verify(
    chain: Sequence[bytes], authorities: Sequence[x509.Certificate], moment: datetime
) -> x509.Certificate:
    """Return the client's certificate after verifying it.

    Args:
        chain: In DER, the client's certificate first.
        authorities: The trusted authorities.
        moment: The current time, with a time zone.

    Raises:
        AuthenticationError: It is untrusted, expired, or not for clients.
    """
    try:
        own, *between = (x509.load_der_x509_certificate(der) for der in chain)
        verifier = (
            PolicyBuilder()
            .store(Store(list(authorities)))
            .time(moment)
            .extension_policies(ca_policy=_AUTHORITY, ee_policy=_CLIENT)
            .build_client_verifier()
        )
        verifier.verify(own, between)
    except (VerificationError, ValueError, UnsupportedAlgorithm) as error:
        raise AuthenticationError(f"verifying certificate failed: {error}") from None
    return own


def common_name(certificate: x509.Certificate) -> str:
    """Return the common name, "" without one."""
    names = _values(certificate, NameOID.COMMON_NAME)
    return names[-1] if names else ""


def user_of(certificate: x509.Certificate) -> UserInfo | None:
    """Return the user that a verified certificate names, None without a common name.

    Raises:
        AuthenticationError: It has several UIDs, or an empty one.
    """
    name = common_name(certificate)
    if not name:
        return None
    digest = hashlib.sha256(certificate.public_bytes(Encoding.DER)).hexdigest()
    return UserInfo(
        name,
        _uid(certificate),
        _values(certificate, NameOID.ORGANIZATION_NAME),
        ((_CREDENTIAL_ID, (f"X509SHA256={digest}",)),),
    )


def _values(certificate: x509.Certificate, oid: ObjectIdentifier) -> tuple[str, ...]:
    return tuple(
        str(attribute.value) for attribute in certificate.subject.get_attributes_for_oid(oid)
    )


def _uid(certificate: x509.Certificate) -> str:
    uids = _values(certificate, _UID)
    if not uids:
        return ""
    if len(uids) > 1:
        raise AuthenticationError(f"expected 1 UID, but found multiple: {list(uids)}")
    if not uids[0]:
        raise AuthenticationError("UID cannot be an empty string")
    return uids[0]


# Users that a proxy names.


class RequestHeaders(msgspec.Struct, frozen=True):
    """The trusted proxies, and their headers.

    Attributes:
        authorities: Of the proxies' certificates.
        flags: Their names, and the headers that identify users.
    """

    authorities: tuple[x509.Certificate, ...] = ()
    flags: ProxyOptions = ProxyOptions()

    def check_proxy(self, certificate: x509.Certificate) -> None:
        """Check that a verified certificate belongs to an allowed proxy.

        Raises:
            AuthenticationError: Its name is not allowed.
        """
        name = common_name(certificate)
        allowed = self.flags.allowed_names
        if allowed and name not in allowed:
            raise AuthenticationError(f"x509: subject with cn={name} is not in the allowed list")

    def user_of(self, request: HttpRequest) -> UserInfo | None:
        """Return the user of the headers, None without a user name."""
        name = _first(request, self.flags.username_headers)
        if not name:
            return None
        groups = tuple(
            value
            for header in self.flags.group_headers
            for value in request.header_values(header)
            if value
        )
        uid = _first(request, self.flags.uid_headers)
        return UserInfo(name, uid, groups, self._extra(request))

    def _extra(self, request: HttpRequest) -> tuple[tuple[str, tuple[str, ...]], ...]:
        extra: dict[str, tuple[str, ...]] = {}
        for prefix in self.flags.extra_headers_prefix:
            for name, value in request.headers:
                if name.lower().startswith(prefix.lower()):
                    key = unquote(name[len(prefix) :].lower())
                    extra[key] = (*extra.get(key, ()), value)
        return tuple(extra.items())


def _first(request: HttpRequest, headers: Sequence[str]) -> str:
    values = (request.header(header) for header in headers)
    return next((value for value in values if value), "")


# The user of a request.

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

    flags = ProxyOptions(
        allowed_names=texts("allowed-names"),
        username_headers=texts("username-headers"),
        uid_headers=texts("uid-headers"),
        group_headers=texts("group-headers"),
        extra_headers_prefix=texts("extra-headers-prefix"),
    )
    authorities = parse_bundle(proxies_pem) if proxies_pem else ()
    proxies = RequestHeaders(authorities, flags)
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
