"""Access to a sandbox: tokens, certificate and kubeconfig.

Invariants: only the user can read the files; a kubeconfig that is not a sandbox's, or of a running
            one, is never overwritten.
"""

from __future__ import annotations

import base64
import contextlib
import os
import secrets
import socket
import ssl
import tempfile
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

import msgspec

from kubesched.api.yaml_syntax import YamlError, dump, load_documents
from kubesched.apiserver.authorization import SCHEDULER
from kubesched.apiserver.request import User
from kubesched.apiserver.server import ADMIN
from kubesched.app.key_pair import make_pair
from kubesched.client.connection_settings import ConnectionSettings, TlsSettings, UserSettings
from kubesched.client.tls import tls_context
from kubesched.inputs.errors import UserError

CONTEXT: Final = "kubesched-sandbox"
HOST: Final = "127.0.0.1"
_TOKEN_BYTES: Final = 32
# Half of the time for which a certificate is valid.
_KEPT_DAYS_MAX: Final = 180
_ANSWER_SECONDS_MAX: Final = 5.0


class _Secrets(msgspec.Struct, frozen=True):
    """Two tokens, and certificate and key as PEM; "" for plain HTTP."""

    admin: str
    scheduler: str
    certificate: str = ""
    key: str = ""


class SandboxAccess:
    """The tokens of administrator and scheduler in one sandbox, and its certificate.

    For plain HTTP, `certificate` is "" and `tls`, the context of the server, is None.
    """

    def __init__(self, folder: Path, *, has_tls: bool = True, kept_in: Path | None = None) -> None:
        """Generate tokens and, for TLS, a certificate and its key in a private directory.

        Those of an earlier sandbox are used if it kept them in `kept_in` in the last half year.
        Raises UserError if that file cannot be used.
        """
        kept = None if kept_in is None else _kept(kept_in)
        self._is_new = kept is None
        self._secrets = found = kept or _new_secrets(has_tls=has_tls)
        self.admin, self.scheduler = found.admin, found.scheduler
        self.tls: ssl.SSLContext | None = None
        self.certificate = found.certificate
        if has_tls:
            files = folder / "certificate.pem", folder / "key.pem"
            write_private(files[0], found.certificate)
            write_private(files[1], found.key)
            self.tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            self.tls.load_cert_chain(*files)

    def keep(self, file: Path) -> None:
        """Write tokens, certificate and key for later sandboxes, unless they come from one."""
        if self._is_new:
            write_private(file, msgspec.json.encode(self._secrets).decode())

    def users(self) -> dict[str, User]:
        """Return the users by token."""
        scheduler = User(SCHEDULER, ("system:authenticated",))
        return {self.admin: ADMIN, self.scheduler: scheduler}

    def kubeconfig_dict(self, url: str, token: str) -> dict[str, Any]:
        """Return a kubeconfig with a token, as plain values."""
        cluster = {"server": url}
        if self.certificate:
            cluster["certificate-authority-data"] = base64.b64encode(
                self.certificate.encode()
            ).decode()
        context = {"cluster": CONTEXT, "user": CONTEXT}
        return {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": CONTEXT, "cluster": cluster}],
            "users": [{"name": CONTEXT, "user": {"token": token}}],
            "contexts": [{"name": CONTEXT, "context": context}],
            "current-context": CONTEXT,
        }

    def kubeconfig(self, url: str, token: str) -> str:
        """Return a kubeconfig with a token."""
        return dump(self.kubeconfig_dict(url, token))

    def settings(self, url: str, token: str) -> ConnectionSettings:
        """Return how kubesched's own client connects with a token."""
        tls = TlsSettings(ca_pem=self.certificate.encode())
        return ConnectionSettings(server=url, tls=tls, user=UserSettings(token=token))


def _new_secrets(*, has_tls: bool) -> _Secrets:
    admin, scheduler = secrets.token_urlsafe(_TOKEN_BYTES), secrets.token_urlsafe(_TOKEN_BYTES)
    if not has_tls:
        return _Secrets(admin, scheduler)
    pair = make_pair(HOST)
    return _Secrets(admin, scheduler, pair.certificate.decode(), pair.key.decode())


def _kept(file: Path) -> _Secrets | None:
    """Return the secrets in a file; None if there is none, or its certificate is too old."""
    try:
        age = datetime.now(UTC).timestamp() - file.stat().st_mtime
        found = msgspec.json.decode(file.read_bytes(), type=_Secrets)
    except FileNotFoundError:
        return None
    except (OSError, msgspec.MsgspecError) as error:
        raise UserError(
            f"{file}: has no tokens that can be read: {error}; remove it for new ones"
        ) from None
    return found if age < _KEPT_DAYS_MAX * 86400 else None


def check_ours(file: Path) -> None:
    """Check that a kubeconfig may be written: there is none, or its sandbox has ended.

    Raises UserError if it is not a sandbox's, or the sandbox is running.
    """
    if not file.exists():
        return
    try:
        # A device may have no end.
        text = "" if file.is_char_device() else file.read_text(encoding="utf-8")
        [(_, found)] = load_documents(text)
        [named] = found["clusters"]
        cluster = dict(named.get("cluster") or {})
        is_ours = found.get("current-context") == CONTEXT
    except OSError as error:
        why = f"cannot be read: {error.strerror}"
        raise UserError(f"{file}: {why}; name another file with --kubeconfig") from None
    except (YamlError, UnicodeDecodeError, ValueError, AttributeError, KeyError, TypeError):
        is_ours = False
    if not is_ours:
        raise UserError(
            f"{file}: exists and is not from a sandbox; name another file with --kubeconfig"
        )
    if _is_running(cluster):
        raise UserError(
            f"{file}: belongs to a running sandbox; name another file with --kubeconfig, or "
            "end that sandbox first"
        )


def _is_running(cluster: Mapping[str, str]) -> bool:
    """Whether a sandbox still listens: only it has the key of the certificate."""
    try:
        server = urlsplit(cluster["server"])
        authority = base64.b64decode(cluster["certificate-authority-data"])
        tls = tls_context(TlsSettings(ca_pem=authority))
        address = server.hostname or "", server.port or 0
        with (
            socket.create_connection(address, _ANSWER_SECONDS_MAX) as plain,
            tls.wrap_socket(plain, server_hostname=address[0]),
        ):
            return True
    except TimeoutError:
        # It may be busy, or stopped.
        return True
    except (OSError, ValueError, KeyError, TypeError):
        return False


def remove_own(file: Path, text: str) -> None:
    """Remove a kubeconfig if it was not changed."""
    with contextlib.suppress(OSError, UnicodeDecodeError):
        if file.read_text(encoding="utf-8") == text:
            file.unlink()


def write_private(file: Path, text: str) -> None:
    """Write a file that only the user can read, completely or not at all; raises UserError."""
    try:
        handle, name = tempfile.mkstemp(dir=file.parent, prefix=f".{file.name}.")
        try:
            with os.fdopen(handle, "w", encoding="utf-8") as output:
                output.write(text)
            Path(name).replace(file)
        except OSError:
            Path(name).unlink()
            raise
    except OSError as error:
        why = f"cannot be written: {error.strerror}"
        raise UserError(f"{file}: {why}; choose a directory that you can write to") from None
