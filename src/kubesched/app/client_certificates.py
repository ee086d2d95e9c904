"""Client certificates: verified against authorities, and the users that they name.

Upstream: staging/src/k8s.io/apiserver/pkg/authentication/request/x509/x509.go (v1.36)
Rejects:  certificates of other authorities, expired ones, and those not for clients.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Final

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

from kubesched.app.reviews import AccessError, UserInfo

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


class ClientCertificate:
    """A verified certificate of a client."""

    def __init__(self, certificate: x509.Certificate) -> None:
        self._certificate = certificate

    @property
    def common_name(self) -> str:
        """The common name, "" without one."""
        names = self._values(NameOID.COMMON_NAME)
        return names[-1] if names else ""

    def user(self) -> UserInfo | None:
        """Return the user that the certificate names, None without a common name.

        Raises AccessError if it has several UIDs, or an empty one.
        """
        name = self.common_name
        if not name:
            return None
        digest = hashlib.sha256(self._certificate.public_bytes(Encoding.DER)).hexdigest()
        return UserInfo(
            name,
            self._uid(),
            self._values(NameOID.ORGANIZATION_NAME),
            {_CREDENTIAL_ID: (f"X509SHA256={digest}",)},
        )

    def _values(self, oid: ObjectIdentifier) -> tuple[str, ...]:
        attributes = self._certificate.subject.get_attributes_for_oid(oid)
        return tuple(str(attribute.value) for attribute in attributes)

    def _uid(self) -> str:
        uids = self._values(_UID)
        if not uids:
            return ""
        if len(uids) > 1:
            raise AccessError(f"expected 1 UID, but found multiple: {list(uids)}")
        if not uids[0]:
            raise AccessError("UID cannot be an empty string")
        return uids[0]


def verify(chain: Sequence[bytes], authorities: str) -> ClientCertificate:
    """Return the client's certificate; raises AccessError if it is not a valid one for clients.

    The chain is in DER, the client's certificate first; the trusted authorities are in PEM.
    """
    try:
        own, *between = (x509.load_der_x509_certificate(der) for der in chain)
        verifier = (
            PolicyBuilder()
            .store(Store(x509.load_pem_x509_certificates(authorities.encode())))
            .extension_policies(ca_policy=_AUTHORITY, ee_policy=_CLIENT)
            .build_client_verifier()
        )
        verifier.verify(own, between)
    except (VerificationError, ValueError, UnsupportedAlgorithm) as error:
        raise AccessError(f"verifying certificate failed: {error}") from None
    return ClientCertificate(own)
