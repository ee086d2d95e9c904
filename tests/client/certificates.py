"""Authorities and certificates for tests; keys on curves, which take no time to make."""

from __future__ import annotations

import ipaddress
import ssl
from datetime import UTC, datetime, timedelta

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID, ObjectIdentifier

from kubesched.client.tls import load_key_pair

NOW = datetime.now(UTC)
_UID = ObjectIdentifier("1.3.6.1.4.1.57683.2")


class Holder:
    """The holder of a certificate.

    Attributes:
        certificate: It.
        pem: Certificate as PEM.
        key_pem: Its key as PEM.
        der: Certificate as DER.
    """

    def __init__(self, certificate: x509.Certificate, key: ec.EllipticCurvePrivateKey) -> None:
        self.certificate = certificate
        self.key = key
        self.pem = certificate.public_bytes(serialization.Encoding.PEM)
        self.der = certificate.public_bytes(serialization.Encoding.DER)
        self.key_pem = key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )


def authority(name: str = "authority") -> Holder:
    """Return a certificate authority that others trust."""
    key = ec.generate_private_key(ec.SECP256R1())
    builder = _builder(_subject(name, ()), _subject(name, ()), key, timedelta(days=1))
    constraints = x509.BasicConstraints(ca=True, path_length=None)
    certificate = builder.add_extension(constraints, critical=True).sign(key, hashes.SHA256())
    return Holder(certificate, key)


def signed(
    by: Holder,
    name: str,
    organizations: tuple[str, ...] = (),
    *,
    uids: tuple[str, ...] = (),
    life: timedelta = timedelta(days=1),
    usage: ObjectIdentifier | None = ExtendedKeyUsageOID.CLIENT_AUTH,
    hosts: tuple[str, ...] = (),
) -> Holder:
    """Return a certificate, by default a client's as clusters make them, without hosts."""
    key = ec.generate_private_key(ec.SECP256R1())
    builder = _builder(_subject(name, organizations, uids), by.certificate.subject, key, life)
    if usage is not None:
        builder = builder.add_extension(x509.ExtendedKeyUsage([usage]), critical=False)
    if hosts:
        names = x509.SubjectAlternativeName([_host(host) for host in hosts])
        builder = builder.add_extension(names, critical=False)
    return Holder(builder.sign(by.key, hashes.SHA256()), key)


def server_context(holder: Holder) -> ssl.SSLContext:
    """Return the context of a server that shows a certificate."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    load_key_pair(context, holder.pem, holder.key_pem)
    return context


def _host(host: str) -> x509.GeneralName:
    if host[0].isdigit():
        return x509.IPAddress(ipaddress.ip_address(host))
    return x509.DNSName(host)


def _subject(name: str, organizations: tuple[str, ...], uids: tuple[str, ...] = ()) -> x509.Name:
    return x509.Name(
        [
            *(x509.NameAttribute(NameOID.ORGANIZATION_NAME, text) for text in organizations),
            *(x509.NameAttribute(_UID, text) for text in uids),
            *([x509.NameAttribute(NameOID.COMMON_NAME, name)] if name else []),
        ]
    )


def _builder(
    subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePrivateKey, life: timedelta
) -> x509.CertificateBuilder:
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(NOW - timedelta(days=30))
        .not_valid_after(NOW + life)
    )
