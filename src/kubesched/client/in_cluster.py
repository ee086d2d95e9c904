"""The settings a pod finds in its own container: a token, an authority, two variables.

Upstream: staging/src/k8s.io/client-go/rest/config.go: InClusterConfig (v1.36)
Differs:  nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Final

from kubesched.client.connection_settings import ConnectionSettings, TlsSettings, UserSettings

SERVICE_ACCOUNT_DIRECTORY: Final = Path("/var/run/secrets/kubernetes.io/serviceaccount")


class NotInClusterError(ValueError):
    """This process does not run in a pod that may speak to its API server."""


def in_cluster_settings(
    environ: Mapping[str, str], directory: Path = SERVICE_ACCOUNT_DIRECTORY
) -> ConnectionSettings:
    """Return the settings for the cluster that this process runs in.

    Args:
        environ: Names the server in KUBERNETES_SERVICE_HOST and KUBERNETES_SERVICE_PORT.
        directory: Holds `token`, `ca.crt` and `namespace`.

    Raises:
        NotInClusterError: A variable is not set, or there is no token.
    """
    host = environ.get("KUBERNETES_SERVICE_HOST", "")
    port = environ.get("KUBERNETES_SERVICE_PORT", "")
    if not host or not port:
        raise NotInClusterError(
            "unable to load in-cluster configuration,"
            " KUBERNETES_SERVICE_HOST and KUBERNETES_SERVICE_PORT must be defined"
        )
    token_file = directory / "token"
    try:
        token = token_file.read_text(encoding="utf-8").strip()
    except OSError as error:
        raise NotInClusterError(f"open {token_file}: {error.strerror}") from None
    ca_file = directory / "ca.crt"
    return ConnectionSettings(
        server=f"https://{f'[{host}]' if ':' in host else host}:{port}",
        # Without the authority's file those of the system are asked, as upstream does.
        tls=TlsSettings(ca_file=str(ca_file) if ca_file.exists() else ""),
        user=UserSettings(token=token, token_file=str(token_file)),
        namespace=in_cluster_namespace(environ, directory),
    )


def in_cluster_namespace(
    environ: Mapping[str, str], directory: Path = SERVICE_ACCOUNT_DIRECTORY
) -> str:
    """Return the namespace this process runs in, `default` if nothing says it."""
    if environ.get("POD_NAMESPACE"):
        return environ["POD_NAMESPACE"]
    try:
        found = (directory / "namespace").read_text(encoding="utf-8").strip()
    except OSError:
        found = ""
    return found or "default"
