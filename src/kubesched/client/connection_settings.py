"""Settings of a connection: the server, TLS, and the user.

Upstream: staging/src/k8s.io/client-go/rest/config.go (v1.36)
Differs:  rate limit, user agent and timeout are arguments of `connect`, not settings.
"""

from __future__ import annotations

import ipaddress
from typing import Any
from urllib.parse import urlsplit

import msgspec


class TlsSettings(msgspec.Struct, frozen=True, kw_only=True):
    """How the server is authenticated, and the client's certificate.

    A PEM text wins over the path beside it. The server's certificate must name `server_name`, or,
    if that is "", the server's host; `is_insecure` accepts any certificate.
    """

    ca_file: str = ""
    ca_pem: bytes = b""
    server_name: str = ""
    is_insecure: bool = False
    certificate_file: str = ""
    certificate_pem: bytes = b""
    key_file: str = ""
    key_pem: bytes = b""

    @property
    def has_authority(self) -> bool:
        """Whether certificate authorities are set."""
        return bool(self.ca_file or self.ca_pem)

    def without_authority(self) -> TlsSettings:
        """Return the same for a server whose certificate is not checked."""
        return msgspec.structs.replace(self, is_insecure=True, ca_file="", ca_pem=b"")

    @property
    def has_certificate(self) -> bool:
        """Whether the client has a certificate of its own."""
        return bool(self.certificate_file or self.certificate_pem)


class EnvVariable(msgspec.Struct, frozen=True):
    """A variable of a program's environment."""

    name: str = ""
    value: str = ""


class ExecSettings(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """An exec plugin: a program that prints credentials; also its form in a kubeconfig.

    Attributes:
        command: A path, or a name to look for in PATH.
        env: Variables it gets besides those of this process.
        install_hint: Added to the error if the program is missing.
        provide_cluster_info: Whether it gets the cluster's settings.
        interactive_mode: `Never`, `IfAvailable` or `Always`; "" for `IfAvailable`.
        cluster: The cluster's settings for the program, as JSON values; None to pass none.
    """

    command: str = ""
    args: tuple[str, ...] = ()
    env: tuple[EnvVariable, ...] = ()
    api_version: str = ""
    install_hint: str = ""
    provide_cluster_info: bool = False
    interactive_mode: str = ""
    cluster: dict[str, Any] | None = None


class Impersonation(msgspec.Struct, frozen=True, kw_only=True):
    """The user to impersonate; `user_name` is "" for none."""

    user_name: str = ""
    uid: str = ""
    groups: tuple[str, ...] = ()
    extra: dict[str, tuple[str, ...]] = {}


class UserSettings(msgspec.Struct, frozen=True, kw_only=True):
    """The user of a connection; the content of the token file takes precedence over the token."""

    token: str = ""
    token_file: str = ""
    username: str = ""
    password: str = ""
    exec: ExecSettings | None = None
    impersonation: Impersonation = Impersonation()


class ConnectionSettings(msgspec.Struct, frozen=True, kw_only=True):
    """Everything needed to send requests to one API server as one user.

    Attributes:
        server: Its URL with scheme and host, perhaps a path, no slash at the end.
        proxy_url: Of an HTTP proxy; "" for the environment's.
        namespace: The default namespace; "" if not set.
    """

    server: str
    tls: TlsSettings = TlsSettings()
    user: UserSettings = UserSettings()
    proxy_url: str = ""
    namespace: str = ""

    @property
    def may_carry_credentials(self) -> bool:
        """Whether requests cannot be read on the way: over TLS, or to loopback."""
        parts = urlsplit(self.server)
        return parts.scheme == "https" or _is_loopback(parts.hostname or "")


def _is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def server_url(server: str, *, tls: TlsSettings = TlsSettings()) -> str:
    """Return the URL of a server that may be given as `host:port`.

    Without a scheme it is https if any TLS setting is given, else http. Raises ValueError if the
    address is invalid.
    """
    text = server or "localhost"
    if not _has_host(text):
        by_default = tls.has_authority or tls.has_certificate or tls.is_insecure
        text = f"{'https' if by_default else 'http'}://{text}"
        if not _has_host(text) or urlsplit(text).path not in {"", "/"}:
            raise ValueError(f"host must be a URL or a host:port pair: {server!r}")
    parts = urlsplit(text)
    if parts.scheme not in {"http", "https"}:
        raise ValueError(
            f"unsupported scheme {parts.scheme!r} in {server!r}, must be http or https"
        )
    return f"{parts.scheme}://{parts.netloc}{parts.path}".rstrip("/")


def _has_host(text: str) -> bool:
    try:
        parts = urlsplit(text)
        # An invalid port raises only when it is read.
        is_complete = parts.scheme and parts.hostname and " " not in parts.netloc
        return bool(is_complete) and parts.port != 0
    except ValueError:
        return False
