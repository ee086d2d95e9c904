"""TLS of the secure port: versions and cipher suites by Kubernetes' names, client authorities.

Upstream: staging/src/k8s.io/component-base/cli/flag/ciphersuites_flag.go,
          staging/src/k8s.io/apiserver/pkg/server/secure_serving.go (v1.36)
Rejects:  names that upstream does not know.
Differs:  versions before TLS 1.2 and HTTP/2 are not supported; suites that are too weak for
          OpenSSL's default security level are not offered.
"""

from __future__ import annotations

import ssl
from collections.abc import Iterable
from typing import Final

from kubesched.api.errors import SetupError
from kubesched.api.go_text import go_quote
from kubesched.app.options import ServingOptions
from kubesched.app.serving_certificates import KeyPair, unusable
from kubesched.client.tls import load_key_pair

_DEFAULTS: Final = ServingOptions()
_VERSIONS: Final = {
    "": ssl.TLSVersion.TLSv1_2,
    "VersionTLS10": ssl.TLSVersion.TLSv1_2,
    "VersionTLS11": ssl.TLSVersion.TLSv1_2,
    "VersionTLS12": ssl.TLSVersion.TLSv1_2,
    "VersionTLS13": ssl.TLSVersion.TLSv1_3,
}

# By Go's names. The suites of TLS 1.3 cannot be chosen: they are always offered.
_CHOSEN_ALWAYS: Final = frozenset(
    ("TLS_AES_128_GCM_SHA256", "TLS_AES_256_GCM_SHA384", "TLS_CHACHA20_POLY1305_SHA256")
)
_SUITES: Final = {
    "TLS_ECDHE_ECDSA_WITH_AES_128_CBC_SHA": "ECDHE-ECDSA-AES128-SHA",
    "TLS_ECDHE_ECDSA_WITH_AES_128_CBC_SHA256": "ECDHE-ECDSA-AES128-SHA256",
    "TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256": "ECDHE-ECDSA-AES128-GCM-SHA256",
    "TLS_ECDHE_ECDSA_WITH_AES_256_CBC_SHA": "ECDHE-ECDSA-AES256-SHA",
    "TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384": "ECDHE-ECDSA-AES256-GCM-SHA384",
    "TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305": "ECDHE-ECDSA-CHACHA20-POLY1305",
    "TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256": "ECDHE-ECDSA-CHACHA20-POLY1305",
    "TLS_ECDHE_ECDSA_WITH_RC4_128_SHA": "",
    "TLS_ECDHE_RSA_WITH_3DES_EDE_CBC_SHA": "",
    "TLS_ECDHE_RSA_WITH_AES_128_CBC_SHA": "ECDHE-RSA-AES128-SHA",
    "TLS_ECDHE_RSA_WITH_AES_128_CBC_SHA256": "ECDHE-RSA-AES128-SHA256",
    "TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256": "ECDHE-RSA-AES128-GCM-SHA256",
    "TLS_ECDHE_RSA_WITH_AES_256_CBC_SHA": "ECDHE-RSA-AES256-SHA",
    "TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384": "ECDHE-RSA-AES256-GCM-SHA384",
    "TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305": "ECDHE-RSA-CHACHA20-POLY1305",
    "TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256": "ECDHE-RSA-CHACHA20-POLY1305",
    "TLS_ECDHE_RSA_WITH_RC4_128_SHA": "",
    "TLS_RSA_WITH_3DES_EDE_CBC_SHA": "",
    "TLS_RSA_WITH_AES_128_CBC_SHA": "AES128-SHA",
    "TLS_RSA_WITH_AES_128_CBC_SHA256": "AES128-SHA256",
    "TLS_RSA_WITH_AES_128_GCM_SHA256": "AES128-GCM-SHA256",
    "TLS_RSA_WITH_AES_256_CBC_SHA": "AES256-SHA",
    "TLS_RSA_WITH_AES_256_GCM_SHA384": "AES256-GCM-SHA384",
    "TLS_RSA_WITH_RC4_128_SHA": "",
}


class ServingTlsError(SetupError):
    """A TLS version or cipher suite is unknown; the message names it."""


def serving_context(pair: KeyPair, options: ServingOptions = _DEFAULTS) -> ssl.SSLContext:
    """Return the TLS context of the port.

    Args:
        pair: Certificate and key.
        options: Version and suites; the flags of the pair, for errors.

    Raises:
        ServingTlsError: A name is unknown.
        ServingCertificateError: The certificate cannot be used.
    """
    version = _VERSIONS.get(options.tls_min_version)
    if version is None:
        raise ServingTlsError(f"unknown tls version {go_quote(options.tls_min_version)}")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = version
    context.set_alpn_protocols(["http/1.1"])
    _choose(context, options.tls_cipher_suites)
    try:
        load_key_pair(context, pair.certificate, pair.key)
    except (OSError, ValueError) as error:
        raise unusable(options, str(error)) from None
    return context


def ask_for_certificates(context: ssl.SSLContext, authorities: str) -> None:
    """Request client certificates on new connections; clients may omit them.

    Args:
        context: The port's.
        authorities: As PEM; added to those loaded before.
    """
    if authorities:
        context.verify_mode = ssl.CERT_OPTIONAL
        context.load_verify_locations(cadata=authorities)


def _choose(context: ssl.SSLContext, names: Iterable[str]) -> None:
    chosen: list[str] = []
    for name in names:
        if name in _CHOSEN_ALWAYS:
            continue
        if name not in _SUITES:
            raise ServingTlsError(f"Cipher suite {name} not supported or doesn't exist")
        if _SUITES[name]:
            chosen.append(_SUITES[name])
    if chosen:
        try:
            context.set_ciphers(":".join(chosen))
        except ssl.SSLError:
            raise ServingTlsError("none of the cipher suites can be used") from None
