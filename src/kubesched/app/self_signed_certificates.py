"""A certificate for localhost and an address, valid for a year, signed by an authority of its own.

Run as a module, it prints the pair as JSON: a process that makes its certificate in another one
does not keep the library for it in memory.

Upstream: staging/src/k8s.io/client-go/util/cert/cert.go (v1.36)
Differs:  both keys are on the curve P-256, and so take no time to make; clients of TLS 1.2 need a
          cipher suite with ECDSA.
"""

from __future__ import annotations

import ipaddress
import json
import sys
from datetime import UTC, datetime, timedelta
from typing import Final

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.types import CertificatePublicKeyTypes
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

_HOST: Final = "localhost"
_LIFE: Final = timedelta(days=365)
_SKEW: Final = timedelta(hours=1)


def self_signed_pair(bind_address: str) -> tuple[bytes, bytes]:
    """Return a new certificate chain and its key, as PEM.

    The certificate includes an IP address, unless it is unspecified.
    """
    moment = datetime.now(UTC)
    number = int(moment.timestamp())
    authority_key = ec.generate_private_key(ec.SECP256R1())
    key = ec.generate_private_key(ec.SECP256R1())
    # Clients that check strictly, as Python 3.13 does, need both identifiers.
    own_identifier = x509.SubjectKeyIdentifier.from_public_key(authority_key.public_key())
    identifier = x509.AuthorityKeyIdentifier.from_issuer_subject_key_identifier(own_identifier)
    issuer = _name(f"{_HOST}-ca@{number}")
    authority = (
        _builder(issuer, issuer, authority_key.public_key(), moment)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .add_extension(_usage(signs=True), critical=True)
        .add_extension(own_identifier, critical=False)
        .sign(authority_key, hashes.SHA256())
    )
    certificate = (
        _builder(_name(f"{_HOST}@{number}"), issuer, key.public_key(), moment)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(_usage(signs=False), critical=True)
        .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
        .add_extension(_alternatives(bind_address), critical=False)
        .add_extension(identifier, critical=False)
        .sign(authority_key, hashes.SHA256())
    )
    encoding = serialization.Encoding.PEM
    return (
        certificate.public_bytes(encoding) + authority.public_bytes(encoding),
        key.private_bytes(
            encoding, serialization.PrivateFormat.TraditionalOpenSSL, serialization.NoEncryption()
        ),
    )


def _builder(
    subject: x509.Name, issuer: x509.Name, key: CertificatePublicKeyTypes, moment: datetime
) -> x509.CertificateBuilder:
    begin = moment - _SKEW
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(begin)
        .not_valid_after(begin + _LIFE)
    )


def _name(common_name: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, common_name)])


def _usage(*, signs: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=True,
        key_encipherment=True,
        key_cert_sign=signs,
        content_commitment=False,
        data_encipherment=False,
        key_agreement=False,
        crl_sign=False,
        encipher_only=False,
        decipher_only=False,
    )


def _alternatives(bind_address: str) -> x509.SubjectAlternativeName:
    names: list[x509.GeneralName] = [x509.DNSName(_HOST)]
    loopback = ipaddress.ip_address("127.0.0.1")
    names.append(x509.IPAddress(loopback))
    address = ipaddress.ip_address(bind_address or "0.0.0.0")
    if not address.is_unspecified and address != loopback:
        names.append(x509.IPAddress(address))
    return x509.SubjectAlternativeName(names)


if __name__ == "__main__":
    # With json: importing msgspec would take a fifth of the time.
    json.dump([part.decode() for part in self_signed_pair(sys.argv[1])], sys.stdout)
