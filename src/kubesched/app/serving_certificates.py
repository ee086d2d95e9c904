"""Serving certificates and TLS settings of the secure port.

Certificates come from files, from a directory, or are generated at start-up. Versions and cipher
suites go by Kubernetes' names.

Upstream: staging/src/k8s.io/apiserver/pkg/server/options/serving.go,
          staging/src/k8s.io/component-base/cli/flag/ciphersuites_flag.go,
          staging/src/k8s.io/apiserver/pkg/server/secure_serving.go (v1.36)
Rejects:  names that upstream does not know.
Differs:  files are read at start-up only. Versions before TLS 1.2 and HTTP/2 are not supported;
          suites that are too weak for OpenSSL's default security level are not offered.
"""

from __future__ import annotations

import errno
import os
import ssl
from collections.abc import Iterable
from pathlib import Path
from typing import Final

from kubesched.api.errors import SetupError
from kubesched.api.go_text import go_quote
from kubesched.app.key_pair import KeyPair, make_pair
from kubesched.app.options import ServingOptions
from kubesched.client.tls import load_key_pair

PAIR_NAME: Final = "kube-scheduler"


def serving_pair(options: ServingOptions) -> KeyPair:
    """Return the certificate and key for the secure port.

    Options name files, or a directory; a generated pair is written to an empty one.

    Raises:
        SetupError: A file cannot be read or written, or half of a pair is missing.
    """
    given = options.tls_cert_file, options.tls_private_key_file
    if all(given):
        return _read(options, *map(Path, given))
    if any(given):
        raise SetupError(
            "missing filename for serving cert: --tls-cert-file and --tls-private-key-file go "
            "together"
        )
    if not options.cert_dir:
        return make_pair(options.bind_address)
    folder = Path(options.cert_dir)
    files = folder / f"{PAIR_NAME}.crt", folder / f"{PAIR_NAME}.key"
    there = [file.exists() for file in files]
    if all(there):
        return _read(options, *files)
    if any(there):
        missing = files[there.index(False)]
        raise SetupError(f"{missing} is missing beside the other half of the pair")
    pair = make_pair(options.bind_address)
    _write(pair, *files)
    return pair


def unusable(options: ServingOptions, why: str) -> SetupError:
    """Return the error for an unusable pair, with the flags that name it."""
    place = ""
    if options.tls_cert_file:
        certificate, key = options.tls_cert_file, options.tls_private_key_file
        place = f" (--tls-cert-file {certificate}, --tls-private-key-file {key})"
    elif options.cert_dir:
        place = f" (--cert-dir {options.cert_dir})"
    return SetupError(f"unable to load server certificate{place}: {why}")


def _read(options: ServingOptions, certificate: Path, key: Path) -> KeyPair:
    try:
        return KeyPair(certificate.read_bytes(), key.read_bytes())
    except OSError as error:
        raise unusable(options, file_problem(error)) from None


def file_problem(error: OSError) -> str:
    """Return why a file cannot be read, in Go's words."""
    verb = "read" if error.errno == errno.EISDIR else "open"
    return f"{verb} {error.filename}: {(error.strerror or str(error)).lower()}"


def _write(pair: KeyPair, certificate: Path, key: Path) -> None:
    try:
        certificate.parent.mkdir(mode=0o755, parents=True, exist_ok=True)
        certificate.write_bytes(pair.certificate)
        # The key must never be readable for others, not even briefly.
        with os.fdopen(os.open(key, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as file:
            file.write(pair.key)
    except OSError as error:
        raise SetupError(f"unable to write server certificate: {error}") from None


# The TLS settings of the secure port.

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


def serving_context(pair: KeyPair, options: ServingOptions = _DEFAULTS) -> ssl.SSLContext:
    """Return the TLS context of the port; the options name version and cipher suites.

    Raises:
        SetupError: A name is unknown, or the certificate cannot be used.
    """
    version = _VERSIONS.get(options.tls_min_version)
    if version is None:
        raise SetupError(f"unknown tls version {go_quote(options.tls_min_version)}")
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
    """Request client certificates on new connections of a port; clients may omit them.

    The authorities, as PEM, are added to those loaded before.
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
            raise SetupError(f"Cipher suite {name} not supported or doesn't exist")
        if _SUITES[name]:
            chosen.append(_SUITES[name])
    if chosen:
        try:
            context.set_ciphers(":".join(chosen))
        except ssl.SSLError:
            raise SetupError("none of the cipher suites can be used") from None
