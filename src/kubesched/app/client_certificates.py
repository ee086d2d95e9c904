"""Users by client certificate: their own, or that of an authenticating proxy that names them.

Upstream: staging/src/k8s.io/apiserver/pkg/authentication/request/x509/x509.go,
          staging/src/k8s.io/apiserver/pkg/authentication/request/headerrequest (v1.36)
Differs:  the handshake fails for a certificate of an unknown authority, where upstream tries the
          token next; intermediate certificates need Python 3.13.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
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

from kubesched.app.http_exchange import HttpRequest
from kubesched.app.reviews import AuthenticationError, UserInfo

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
