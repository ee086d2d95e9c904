"""TLS contexts of clients: trusted authorities, and the client's certificate.

Upstream: staging/src/k8s.io/client-go/transport/transport.go, cert_rotation.go, ca_rotation.go
          (v1.36)
Differs:  versions below TLS 1.2 are not supported.
"""

from __future__ import annotations

import os
import ssl
import tempfile
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Final

from kubesched.api.errors import SetupError
from kubesched.client.connection_settings import TlsSettings

_CHECK_PERIOD_SECONDS: Final = 300.0
_WORDS: Final = {
    "KEY_VALUES_MISMATCH": "private key does not match public key",
    "WRONG_VERSION_NUMBER": "first record does not look like a TLS handshake",
}


def tls_context(settings: TlsSettings) -> ssl.SSLContext:
    """Return the context for connections to a server.

    Raises SetupError if the settings contradict each other, or a certificate or key cannot be read.
    """
    if settings.is_insecure and settings.has_authority:
        raise SetupError(
            "specifying a root certificates file with the insecure flag is not allowed:"
            " remove certificate-authority or insecure-skip-tls-verify"
        )
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    if settings.is_insecure:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    else:
        _load_authorities(context, settings)
    if settings.has_certificate:
        _load_certificate(context, settings)
    return context


def _load_authorities(context: ssl.SSLContext, settings: TlsSettings) -> None:
    if not settings.has_authority:
        context.load_default_certs()
        return
    place = "certificate-authority-data" if settings.ca_pem else settings.ca_file
    try:
        trust(context, _content(settings.ca_pem, settings.ca_file))
    except (OSError, ValueError) as error:
        is_garbled = isinstance(error, ssl.SSLError)
        why = "unable to parse bytes as PEM block" if is_garbled else error
        raise SetupError(f"unable to load root certificates from {place}: {why}") from None


def trust(context: ssl.SSLContext, bundle: bytes) -> None:
    """Trust the authorities of a PEM bundle; raises SSLError or ValueError if it cannot be parsed.

    Comments between the certificates are skipped; they may have any characters.
    """
    context.load_verify_locations(cadata=bundle.decode("ascii", "ignore"))


def _load_certificate(context: ssl.SSLContext, settings: TlsSettings) -> None:
    """Load the client's certificate for new connections."""
    if not settings.key_pem and not settings.key_file:
        raise SetupError(
            "client-key-data or client-key must be specified with a client certificate"
        )
    place = "client-certificate-data" if settings.certificate_pem else settings.certificate_file
    try:
        load_key_pair(context, *_read_pair(settings))
    except (OSError, ValueError) as error:
        raise SetupError(f"unable to load the client certificate of {place}: {error}") from None


def _read_pair(settings: TlsSettings) -> tuple[bytes, bytes]:
    """Return the client's certificate and key; raises OSError if a file cannot be read."""
    return (
        _content(settings.certificate_pem, settings.certificate_file),
        _content(settings.key_pem, settings.key_file),
    )


def _content(pem: bytes, file: str) -> bytes:
    """Return a PEM text, or that of a file, b"" without both; raises OSError as reading does."""
    return pem or (Path(file).read_bytes() if file else b"")


def load_key_pair(context: ssl.SSLContext, certificate: bytes, key: bytes) -> None:
    """Load certificate and key from memory.

    OpenSSL loads only from a path, so they are written to a temporary file that only this user can
    read. Raises OSError if they are not a certificate and its key, or the file cannot be written,
    ValueError if the key has a passphrase.
    """
    for text, what in ((certificate, "certificate"), (key, "key")):
        if b"-----BEGIN " not in text:
            raise OSError(f"tls: failed to find any PEM data in {what} input")
    descriptor, path = tempfile.mkstemp(prefix="kubesched-")
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(certificate.rstrip() + b"\n" + key)
        # A key with a passphrase must fail, not ask on the terminal.
        # OpenSSL drops the old key before it checks the new one, so check it elsewhere first.
        ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT).load_cert_chain(path, password=_refuse_passphrase)
        context.load_cert_chain(path, password=_refuse_passphrase)
    except ssl.SSLError as error:
        raise OSError(f"tls: {tls_words(error)}") from None
    finally:
        Path(path).unlink(missing_ok=True)


def tls_words(error: ssl.SSLError) -> str:
    """Return OpenSSL's reason, without its codes and source location."""
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"certificate verify failed: {error.verify_message}"
    if error.reason in _WORDS:
        return _WORDS[error.reason]
    if "PEM lib" in str(error):
        return "certificate or key cannot be parsed"
    return (error.reason or str(error)).replace("_", " ").lower()


def _refuse_passphrase() -> str:
    raise ValueError("the key has a passphrase, which is not supported")


class CertificateFiles:
    """Makes a new context when the files of a client's certificate or authorities are replaced.

    The old context would also keep the old authorities. `now` is a monotonic clock in seconds.
    """

    def __init__(self, settings: TlsSettings, now: Callable[[], float]) -> None:
        self._settings = settings
        self._now = now
        self._checked_at = now()
        self._seen: tuple[bytes, ...] | None = None
        with suppress(OSError):
            self._seen = self._read()

    def renew(self) -> ssl.SSLContext | None:
        """Check the files every five minutes; return a context if they were replaced.

        If the files are unreadable or do not match, the old certificates remain in use.
        """
        now = self._now()
        if now - self._checked_at < _CHECK_PERIOD_SECONDS:
            return None
        self._checked_at = now
        try:
            found = self._read()
            if found == self._seen:
                return None
            context = tls_context(self._settings)
        except (OSError, SetupError):
            return None
        self._seen = found
        return context

    def _read(self) -> tuple[bytes, bytes, bytes]:
        settings = self._settings
        return _content(settings.ca_pem, settings.ca_file), *_read_pair(settings)
