"""Connections to an API server, from flags, kubeconfig files or the pod that this process runs in.

Upstream: staging/src/k8s.io/client-go/tools/clientcmd/client_config.go, BuildConfigFromFlags,
          staging/src/k8s.io/client-go/rest/config.go, InClusterConfig,
          cmd/kube-scheduler/app/options/options.go, createKubeConfig (v1.36)
Differs:  proxies of the environment are chosen once, for the server's own address; without a
          kubeconfig and an address, the files in KUBECONFIG are read, as kubectl reads them.
"""

from __future__ import annotations

import asyncio
import importlib
import ipaddress
import os
import platform
import sys
import time
from collections.abc import Mapping
from datetime import UTC, datetime
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote, urlsplit

from msgspec.structs import replace

from kubesched import __version__
from kubesched.client.connection_settings import (
    ConnectionSettings,
    Impersonation,
    TlsSettings,
    UserSettings,
)
from kubesched.client.credentials import Credentials, ExecPlugin, TokenFile, fixed_credential
from kubesched.client.kubeconfig import (
    load_kubeconfig,
    master_settings,
    merged_kubeconfig,
    missing_configuration,
)
from kubesched.client.requests import RequestObserver
from kubesched.client.rest import HttpRestClient, Permit, limiter_of

SERVICE_ACCOUNT_DIRECTORY: Final = Path("/var/run/secrets/kubernetes.io/serviceaccount")


def in_cluster_settings(
    environ: Mapping[str, str], directory: Path = SERVICE_ACCOUNT_DIRECTORY
) -> ConnectionSettings | None:
    """Return the settings for the cluster that this process runs in; None if it runs in no pod.

    KUBERNETES_SERVICE_HOST and KUBERNETES_SERVICE_PORT name the server; the directory holds
    `token`, `ca.crt` and `namespace`.
    """
    host = environ.get("KUBERNETES_SERVICE_HOST", "")
    port = environ.get("KUBERNETES_SERVICE_PORT", "")
    if not host or not port:
        return None
    token_file = directory / "token"
    try:
        token = token_file.read_text(encoding="utf-8").strip()
    except OSError:
        return None
    ca_file = directory / "ca.crt"
    return ConnectionSettings(
        server=f"https://{f'[{host}]' if ':' in host else host}:{port}",
        # Without ca.crt the system's certificate authorities count, as upstream.
        tls=TlsSettings(ca_file=str(ca_file) if ca_file.exists() else ""),
        user=UserSettings(token=token, token_file=str(token_file)),
        namespace=in_cluster_namespace(environ, directory),
    )


def in_cluster_namespace(
    environ: Mapping[str, str], directory: Path = SERVICE_ACCOUNT_DIRECTORY
) -> str:
    """Return the namespace that this process runs in, `default` if unknown."""
    if environ.get("POD_NAMESPACE"):
        return environ["POD_NAMESPACE"]
    try:
        found = (directory / "namespace").read_text(encoding="utf-8").strip()
    except OSError:
        found = ""
    return found or "default"


_ARCHITECTURES: Final = {"x86_64": "amd64", "aarch64": "arm64", "i686": "386"}


def find_settings(
    *,
    kubeconfig: str = "",
    master: str = "",
    environ: Mapping[str, str] = os.environ,
    service_account: Path = SERVICE_ACCOUNT_DIRECTORY,
) -> ConnectionSettings:
    """Return the settings of the flags.

    `master` replaces a kubeconfig's server; `master` alone is used without credentials. With
    neither, the files in KUBECONFIG are read; without those, this process must run in a pod, whose
    token is in the directory `service_account`. Raises SetupError if there is no usable
    configuration.
    """
    if kubeconfig:
        return load_kubeconfig(kubeconfig).settings(server=master)
    if master:
        return master_settings(master)
    listed = environ.get("KUBECONFIG", "")
    if listed and (merged := merged_kubeconfig(environ)).files:
        return merged.settings()
    settings = in_cluster_settings(environ, service_account)
    if settings is None:
        raise missing_configuration(listed)
    return settings


def connect(
    settings: ConnectionSettings,
    *,
    qps: float = 0.0,
    burst: int = 0,
    user_agent_suffix: str = "",
    timeout_seconds: float | None = None,
    observer: RequestObserver | None = None,
    permit: Permit | None = None,
) -> HttpRestClient:
    """Return a connection; nothing is sent yet, and no event loop needs to run.

    Args:
        settings: Server and user.
        qps: Requests per second; 0 for client-go's default of 5, below 0 for no limit.
        burst: Requests at once; 0 for client-go's default of 10, if the rate is the default too.
        user_agent_suffix: The component that sends the requests, such as `leader-election`.
        timeout_seconds: For each request; None for no limit.
        observer: Called for every request.
        permit: Called immediately before a request that changes something is written; raises an
            ApiError to stop it.

    Raises:
        SetupError: Certificates or keys cannot be used, or no request could ever be sent.
    """
    proxy_url = settings.proxy_url or environment_proxy(settings.server, os.environ)
    return HttpRestClient(
        replace(settings, proxy_url=proxy_url),
        headers=(
            ("User-Agent", user_agent(user_agent_suffix)),
            *impersonation_headers(settings.user.impersonation),
        ),
        credentials=credentials_of(settings),
        limiter=limiter_of(qps, burst),
        timeout_seconds=timeout_seconds,
        observer=observer,
        permit=permit,
    )


def credentials_of(settings: ConnectionSettings) -> Credentials:
    """Return the credentials of a user: static ones are preferred to those of an exec plugin."""
    user = settings.user
    if user.token_file:
        return TokenFile(user.token_file, time.monotonic, user.token)
    fixed = fixed_credential(user)
    if user.exec is None or fixed.header or settings.tls.has_certificate:
        return Credentials(fixed)
    return ExecPlugin(user.exec, lambda: datetime.now(UTC))


def user_agent(suffix: str = "") -> str:
    """Return the User-Agent, in the form of kube-scheduler's clients."""
    machine = platform.machine().lower()
    place = f"{sys.platform}/{_ARCHITECTURES.get(machine, machine)}"
    end = f"/{suffix}" if suffix else ""
    return f"kubesched/v{__version__} ({place}) kubernetes/{__version__}{end}"


def impersonation_headers(impersonation: Impersonation) -> tuple[tuple[str, str], ...]:
    """Return the impersonation headers, () without impersonation."""
    if not impersonation.user_name:
        return ()
    headers = [("Impersonate-User", impersonation.user_name)]
    if impersonation.uid:
        headers.append(("Impersonate-Uid", impersonation.uid))
    headers += [("Impersonate-Group", group) for group in impersonation.groups]
    for key, values in impersonation.extra.items():
        name = "Impersonate-Extra-" + quote(key, safe="!#$&'*+-.^_`|~")
        headers += [(name, value) for value in values]
    return tuple(headers)


def environment_proxy(server: str, environ: Mapping[str, str]) -> str:
    """Return the proxy URL that the environment sets for a server, "" for none."""
    parts = urlsplit(server)
    host = parts.hostname or ""
    if host == "localhost" or host.startswith("127.") or host == "::1":
        return ""
    name = f"{parts.scheme}_proxy"
    proxy = environ.get(name.upper()) or environ.get(name) or ""
    excluded = (environ.get("NO_PROXY") or environ.get("no_proxy") or "").split(",")
    if not proxy or any(_matches(host, entry.strip().lower()) for entry in excluded):
        return ""
    return proxy if "://" in proxy else f"http://{proxy}"


def _matches(host: str, entry: str) -> bool:
    """Whether an entry of NO_PROXY matches a host: a name, domain, address or network."""
    if not entry:
        return False
    if entry == "*":
        return True
    try:
        return ipaddress.ip_address(host) in ipaddress.ip_network(entry, strict=False)
    except ValueError:
        domain = entry.removeprefix("*")
        if domain.startswith("."):
            return host.endswith(domain)
        return host == domain or host.endswith(f".{domain}")


# The event loop.


def new_event_loop() -> asyncio.AbstractEventLoop:
    """Return a new event loop: uvloop's if it is installed, else asyncio's."""
    if find_spec("uvloop") is None:
        loop = asyncio.new_event_loop()
    else:
        loop = importlib.import_module("uvloop").new_event_loop()
    loop.set_exception_handler(_report)
    return loop


def _report(loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
    """Log what a callback raised, except failures to connect that nobody waits for any more.

    When one of several requests fails, the others are cancelled, and the loop would show the
    traceback of those whose TLS handshake has failed too.
    """
    is_unread = context.get("message") == "Future exception was never retrieved"
    if not (is_unread and isinstance(context.get("exception"), OSError)):
        loop.default_exception_handler(context)
