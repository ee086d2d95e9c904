"""Credentials of requests: static ones, tokens from files, or those of a kubeconfig's exec plugin.

Upstream: staging/src/k8s.io/client-go/transport/token_source.go, round_trippers.go,
          staging/src/k8s.io/client-go/plugin/pkg/client/auth/exec/exec.go (v1.36)
Differs:  plugins are never interactive; credentials are renewed shortly before they expire; every
          error has the install hint, not only ten an hour.
"""

from __future__ import annotations

import asyncio
import base64
import os
from collections.abc import Awaitable, Callable, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any, Final, NamedTuple

import msgspec

from kubesched.api.times import parse_time
from kubesched.client.connection_settings import ExecSettings, UserSettings

_TOKEN_AGE_SECONDS_MAX: Final = 50.0


class CredentialsError(Exception):
    """Credentials are not available; the message names reason and remedy."""


class Credential(NamedTuple):
    """What authenticates a request.

    Attributes:
        header: The value of `Authorization`, "" for none.
        certificate: A client certificate as PEM text, b"" for none of its own.
        key: Its key.
    """

    header: str = ""
    certificate: bytes = b""
    key: bytes = b""


NO_CREDENTIAL: Final = Credential()


class Credentials:
    """Credentials that never change; the base class of those that do."""

    def __init__(self, credential: Credential = NO_CREDENTIAL) -> None:
        self._credential = credential

    async def get(self) -> Credential:
        """Return the current credential; raises CredentialsError if there is none."""
        return self._credential

    async def renew(self, refused: Credential) -> Credential:
        """Return a newer credential after the server refused one; the same if none is newer.

        Raises as `get` does.
        """
        return await self.get()


class TokenFile(Credentials):
    """A bearer token in a file that is replaced from time to time.

    `now` is a monotonic clock in seconds; `token` is used while the file cannot be read.
    """

    def __init__(self, path: str, now: Callable[[], float], token: str = "") -> None:
        super().__init__(bearer(token) if token else NO_CREDENTIAL)
        self._path = Path(path)
        self._now = now
        self._read_at = float("-inf")

    async def get(self) -> Credential:
        """Return the token, read again if the reading is 50 seconds old."""
        if self._now() - self._read_at >= _TOKEN_AGE_SECONDS_MAX:
            self._read()
        return self._credential

    async def renew(self, refused: Credential) -> Credential:
        """Return the token after reading the file again."""
        if refused == self._credential:
            self._read()
        return self._credential

    def _read(self) -> None:
        """Read the file; if that fails, the last token remains in use.

        Raises CredentialsError if there is no last token.
        """
        try:
            token = self._path.read_text(encoding="utf-8").strip()
        except (OSError, UnicodeDecodeError) as error:
            problem = f"failed to read token file {str(self._path)!r}: {error}"
        else:
            problem = "" if token else f"read empty token from file {str(self._path)!r}"
        if not problem:
            self._credential = bearer(token)
        elif not self._credential.header:
            raise CredentialsError(problem)
        self._read_at = self._now()


def bearer(token: str) -> Credential:
    """Return the credential for a bearer token."""
    return Credential(f"Bearer {token}")


def basic(username: str, password: str) -> Credential:
    """Return the credential for a name and a password."""
    text = base64.b64encode(f"{username}:{password}".encode()).decode()
    return Credential(f"Basic {text}")


def fixed_credential(user: UserSettings) -> Credential:
    """Return the static credential of a user's settings, `NO_CREDENTIAL` without one."""
    if user.username or user.password:
        return basic(user.username, user.password)
    return bearer(user.token.strip()) if user.token else NO_CREDENTIAL


# Exec plugins.

_SKEW_SECONDS_MAX: Final = 10.0
_SKEW_SHARE: Final = 0.1

Run = Callable[[Sequence[str], Mapping[str, str]], Awaitable[tuple[int, bytes]]]


class _Status(msgspec.Struct, rename="camel"):
    expiration_timestamp: str | None = None
    token: str | None = None
    client_certificate_data: str | None = None
    client_key_data: str | None = None


class _ExecCredential(msgspec.Struct, rename="camel"):
    api_version: str = ""
    kind: str = ""
    status: _Status | None = None


async def run_program(arguments: Sequence[str], environ: Mapping[str, str]) -> tuple[int, bytes]:
    """Run a program without input; return its exit code and what it printed.

    Raises OSError if it cannot be started.
    """
    program = await asyncio.create_subprocess_exec(
        *arguments,
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        env=dict(environ),
    )
    try:
        printed, _ = await program.communicate()
    except asyncio.CancelledError:
        if program.returncode is None:
            program.kill()
            await program.wait()
        raise
    return program.returncode or 0, printed


class ExecPlugin(Credentials):
    """Credentials that a program prints, kept until they expire.

    Concurrent requests share one run of the program, which inherits `environ`. `wall_clock` returns
    the current time, with a time zone.
    """

    def __init__(
        self,
        settings: ExecSettings,
        wall_clock: Callable[[], datetime],
        environ: Mapping[str, str] = os.environ,
        run: Run = run_program,
    ) -> None:
        super().__init__()
        self._settings = settings
        self._wall_clock = wall_clock
        self._environ = environ
        self._run = run
        self._renew_at = float("-inf")
        self._running: asyncio.Task[Credential] | None = None

    async def get(self) -> Credential:
        """Return the credentials; runs the program if there are none or they have expired.

        Raises CredentialsError if the program cannot be run, fails, or prints no credentials.
        """
        if self._wall_clock().timestamp() < self._renew_at:
            return self._credential
        return await self._refresh()

    async def renew(self, refused: Credential) -> Credential:
        """Return newer credentials than those that the server refused; raises as `get` does."""
        if self._credential not in (NO_CREDENTIAL, refused):
            return self._credential
        return await self._refresh()

    async def _refresh(self) -> Credential:
        if self._running is None:
            self._running = asyncio.create_task(self._ask(), name="exec plugin")
            self._running.add_done_callback(self._finish)
        # A cancelled request does not cancel the run for the others.
        return await asyncio.shield(self._running)

    def _finish(self, task: asyncio.Task[Credential]) -> None:
        self._running = None
        if not task.cancelled():
            # Marks the exception as retrieved, if no request waits any more.
            task.exception()

    async def _ask(self) -> Credential:
        status = self._status_of(await self._printed())
        now = self._wall_clock().timestamp()
        self._renew_at = _renewal(status.expiration_timestamp, now)
        self._credential = Credential(
            f"Bearer {status.token}" if status.token else "",
            (status.client_certificate_data or "").encode(),
            (status.client_key_data or "").encode(),
        )
        return self._credential

    async def _printed(self) -> bytes:
        settings = self._settings
        if settings.interactive_mode == "Always":
            raise CredentialsError(
                "exec plugin cannot support interactive mode: standard input is unavailable;"
                " set interactiveMode to IfAvailable or Never"
            )
        environ = {**self._environ, **{each.name: each.value for each in settings.env}}
        environ["KUBERNETES_EXEC_INFO"] = self._exec_info()
        try:
            code, printed = await self._run((settings.command, *settings.args), environ)
        except OSError as error:
            raise CredentialsError(self._not_started(error)) from None
        if code != 0:
            raise CredentialsError(
                f"exec: executable {settings.command} failed with exit code {code}"
            )
        return printed

    def _exec_info(self) -> str:
        spec: dict[str, Any] = {"interactive": False}
        if self._settings.cluster is not None:
            spec = {"cluster": self._settings.cluster, "interactive": False}
        info = {"kind": "ExecCredential", "apiVersion": self._settings.api_version, "spec": spec}
        return msgspec.json.encode(info).decode()

    def _not_started(self, error: OSError) -> str:
        command = self._settings.command
        if isinstance(error, FileNotFoundError):
            hint = f"; {self._settings.install_hint}" if self._settings.install_hint else ""
            return f"exec: executable {command} not found{hint}"
        return f"exec: {command}: {error.strerror}"

    def _status_of(self, printed: bytes) -> _Status:
        try:
            credential = msgspec.json.decode(printed, type=_ExecCredential)
        except (msgspec.MsgspecError, UnicodeDecodeError) as error:
            raise CredentialsError(f"exec plugin: decoding stdout: {error}") from None
        wanted = self._settings.api_version
        if credential.kind != "ExecCredential" or credential.api_version != wanted:
            raise CredentialsError(
                f"exec plugin is configured to use API version {wanted},"
                f" plugin returned version {credential.api_version}"
            )
        status = credential.status
        if status is None:
            raise CredentialsError("exec plugin didn't return a status field")
        if not (status.token or status.client_certificate_data or status.client_key_data):
            raise CredentialsError("exec plugin didn't return a token or cert/key pair")
        if bool(status.client_certificate_data) != bool(status.client_key_data):
            raise CredentialsError("exec plugin returned only certificate or key, not both")
        return status


def _renewal(expires: str | None, now: float) -> float:
    """Return the time of the next run: shortly before the credentials expire."""
    if not expires:
        return float("inf")
    try:
        end = parse_time(expires) / 1e9
    except ValueError:
        problem = f"exec plugin returned no valid expirationTimestamp: {expires!r}"
        raise CredentialsError(problem) from None
    return end - min(_SKEW_SECONDS_MAX, max(0.0, end - now) * _SKEW_SHARE)
