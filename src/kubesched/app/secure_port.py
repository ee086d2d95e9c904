"""SecurePort serves health, configuration, metrics and debugging to authorized clients.

Its certificate comes from files, from a directory, or is generated at start-up. TLS versions and
cipher suites go by Kubernetes' names.

Upstream: cmd/kube-scheduler/app/server.go, buildHandlerChain, newEndpointsHandler;
          staging/src/k8s.io/apiserver/pkg/endpoints/filters,
          staging/src/k8s.io/apiserver/pkg/server/options/serving.go,
          staging/src/k8s.io/apiserver/pkg/server/secure_serving.go,
          staging/src/k8s.io/component-base/cli/flag/ciphersuites_flag.go (v1.36)
Rejects:  names of TLS versions and cipher suites that upstream does not know.
Differs:  authorities in files are read at start-up only. Versions before TLS 1.2 and HTTP/2 are not
          supported; suites that are too weak for OpenSSL's default security level are not offered.
"""

from __future__ import annotations

import asyncio
import errno
import logging
import os
import ssl
from collections.abc import Iterable
from contextlib import AsyncExitStack, suppress
from pathlib import Path
from random import Random
from typing import Final

from kubesched.api.errors import SetupError
from kubesched.api.go_text import go_quote
from kubesched.app.access import (
    Authenticator,
    Authorities,
    Authorizer,
    ClusterAuthentication,
    LookupFailedError,
    check_bundle,
    with_access,
)
from kubesched.app.endpoints import Endpoints
from kubesched.app.key_pair import KeyPair, make_pair
from kubesched.app.options import AccessOptions, ServingOptions
from kubesched.app.reviews import AccessStatus, Reviews, TokenStatus
from kubesched.app.secure_serving import SecureServing
from kubesched.client.connect import connect, find_settings
from kubesched.client.connection_settings import ConnectionSettings
from kubesched.client.rest import HttpRestClient
from kubesched.client.tls import load_key_pair, trust

log: Final = logging.getLogger(__name__)


class SecurePort:
    """The secure port of one process."""

    def __init__(
        self,
        serving: ServingOptions,
        access: AccessOptions,
        settings: ConnectionSettings,
        endpoints: Endpoints,
    ) -> None:
        """Read certificates and settings; nothing is served yet; raises SetupError.

        `settings` is the API server for reviews, unless a flag names another one.
        """
        self._serving = serving
        self._options = access
        self._endpoints = endpoints
        self._pair = serving_pair(serving)
        self._context = self._newest = serving_context(self._pair, serving)
        self._own = _authorities_in(access)
        ask_for_certificates(self._context, self._own.pem)
        self._authentication_settings = _settings(
            "authentication", access.authentication_kubeconfig, settings
        )
        self._authorization_settings = _settings(
            "authorization", access.authorization_kubeconfig, settings
        )

    async def open(self, opened: AsyncExitStack) -> None:
        """Serve until the stack is closed; raises SetupError if the address is in use.

        It is a LookupFailedError if the cluster's client authorities are needed but cannot be read.
        """
        authentication = _connection(self._authentication_settings, opened)
        authorization = _connection(self._authorization_settings, opened)
        flags = self._options
        known = ClusterAuthentication(authentication, self._own, self._ask_for_certificates)
        if not flags.authentication_skip_lookup:
            await self._follow(known, opened)
        random = Random()  # noqa: S311 - spreads retries

        def keep_token(status: TokenStatus) -> float:
            # After an error the API server is asked again at once.
            return 0.0 if status.error else flags.token_cache_seconds

        def keep_access(status: AccessStatus) -> float:
            return flags.allowed_cache_seconds if status.allowed else flags.denied_cache_seconds

        tokens = Reviews(authentication, TokenStatus, keep_token, random)
        reviews = Reviews(authorization, AccessStatus, keep_access, random)
        handle = with_access(
            Authenticator(lambda: known.authorities, tokens),
            Authorizer(flags.always_allow_paths, reviews),
            self._endpoints.answer,
        )
        address, port = self._serving.bind_address, self._serving.secure_port
        serving = SecureServing(
            handle,
            self._context,
            address,
            port,
            shares_port=self._serving.permit_port_sharing,
        )
        try:
            await opened.enter_async_context(serving)
        except OSError as error:
            raise SetupError(
                f"--secure-port {port}: cannot listen on {address}: {error.strerror or error}; "
                "choose another port, or 0 to serve nothing"
            ) from error
        certificate, key = _pair_files(self._serving)
        if certificate:
            renewing = asyncio.ensure_future(self._renew_certificate(certificate, key, known))
            opened.callback(renewing.cancel)

    async def _follow(self, known: ClusterAuthentication, opened: AsyncExitStack) -> None:
        """Read the cluster's authorities, and again until the stack is closed."""
        try:
            await known.refresh()
        except LookupFailedError as error:
            if not self._options.tolerate_lookup_failure:
                raise
            log.warning(
                "Error looking up in-cluster authentication configuration: %s; continuing without "
                "it, so requests may be treated as anonymous",
                error,
            )
        following = asyncio.ensure_future(known.run())
        opened.callback(following.cancel)

    async def _renew_certificate(
        self, certificate: str, key: str, known: ClusterAuthentication
    ) -> None:
        """Serve the certificate of the files whenever they are replaced, until cancelled.

        If the files are unreadable or do not match, the old certificate remains in use.
        """
        self._context.sni_callback = self._show_newest
        while True:
            await asyncio.sleep(_LOOK_SECONDS)
            with suppress(SetupError):
                pair = _read(self._serving, Path(certificate), Path(key))
                if pair != self._pair:
                    # The old context would also keep a certificate whose key has another type.
                    self._newest = serving_context(pair, self._serving)
                    self._pair = pair
                    self._ask_for_certificates(known.authorities)
                    log.info("Loaded serving cert %s", certificate)

    def _show_newest(self, connection: ssl.SSLObject, _name: object, _context: object) -> None:
        connection.context = self._newest

    def _ask_for_certificates(self, authorities: Authorities) -> None:
        for context in (self._context, self._newest):
            ask_for_certificates(context, authorities.pem)


def _authorities_in(access: AccessOptions) -> Authorities:
    """Return the authorities of files, empty without files."""
    flags = access.proxies
    return Authorities(
        _bundle("--client-ca-file", access.client_ca_file),
        _bundle("--requestheader-client-ca-file", flags.client_ca_file),
        flags,
    )


def _bundle(flag: str, file: str) -> str:
    if not file:
        return ""
    try:
        pem = Path(file).read_text(encoding="utf-8", errors="ignore")
        check_bundle(pem)
    except OSError as error:
        raise SetupError(f"{flag} {file}: {_file_problem(error)}") from error
    except ValueError as error:
        raise SetupError(f"{flag} {file}: {error}") from error
    return pem


def _settings(purpose: str, kubeconfig: str, default: ConnectionSettings) -> ConnectionSettings:
    if not kubeconfig:
        return default
    try:
        return find_settings(kubeconfig=kubeconfig)
    except SetupError as error:
        raise SetupError(
            f"--{purpose}-kubeconfig {kubeconfig}: failed to get delegated {purpose} kubeconfig: "
            f"{error}"
        ) from error


def _connection(settings: ConnectionSettings, opened: AsyncExitStack) -> HttpRestClient:
    rest = connect(settings, qps=-1)
    opened.push_async_callback(rest.aclose)
    return rest


# The certificate and key.

_PAIR_NAME: Final = "kube-scheduler"
_LOOK_SECONDS: Final = 60.0


def _pair_files(options: ServingOptions) -> tuple[str, str]:
    """Return the files of the certificate and its key, "" for one made at start-up.

    Raises SetupError if only one of both is given.
    """
    given = options.tls_cert_file, options.tls_private_key_file
    if any(given) and not all(given):
        raise SetupError(
            "missing filename for serving cert: --tls-cert-file and --tls-private-key-file go "
            "together"
        )
    if any(given) or not options.cert_dir:
        return given
    stem = str(Path(options.cert_dir, _PAIR_NAME))
    return f"{stem}.crt", f"{stem}.key"


def serving_pair(options: ServingOptions) -> KeyPair:
    """Return the certificate and key for the secure port; raises SetupError.

    Options name files, or a directory; a generated pair is written to an empty one.
    """
    certificate, key = _pair_files(options)
    if not certificate:
        return make_pair(options.bind_address)
    files = Path(certificate), Path(key)
    if options.tls_cert_file:
        return _read(options, *files)
    there = [file.exists() for file in files]
    if all(there):
        return _read(options, *files)
    if any(there):
        missing = files[there.index(False)]
        raise SetupError(f"{missing} is missing beside the other half of the pair")
    pair = make_pair(options.bind_address)
    _write(pair, *files)
    return pair


def _unusable(options: ServingOptions, why: str) -> SetupError:
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
        raise _unusable(options, _file_problem(error)) from None


def _file_problem(error: OSError) -> str:
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


# TLS settings.

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


def serving_context(pair: KeyPair, options: ServingOptions) -> ssl.SSLContext:
    """Return the TLS context of the port; the options name version and cipher suites.

    Raises SetupError if a name is unknown, or the certificate cannot be used.
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
        raise _unusable(options, str(error)) from None
    return context


def ask_for_certificates(context: ssl.SSLContext, authorities: str) -> None:
    """Request client certificates on new connections of a port; clients may omit them.

    The authorities, as PEM, are added to those loaded before.
    """
    if authorities:
        context.verify_mode = ssl.CERT_OPTIONAL
        trust(context, authorities.encode())


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
