"""Credentials of requests: static ones, or a token from a file.

Upstream: staging/src/k8s.io/client-go/transport/token_source.go, round_trippers.go (v1.36)
Differs:  a token file is read again as soon as it changes, not only every 50 seconds.
"""

from __future__ import annotations

import base64
from collections.abc import Callable
from pathlib import Path
from typing import Final, NamedTuple, Protocol

from kubesched.client.connection_settings import UserSettings

_TOKEN_AGE_SECONDS_MAX: Final = 50.0
_LOOK_PERIOD_SECONDS: Final = 1.0


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


NOBODY: Final = Credential()


class Credentials(Protocol):
    """A source of credentials."""

    async def get(self) -> Credential:
        """Return the current credential.

        Raises:
            CredentialsError: There is none.
        """
        ...

    async def renew(self, refused: Credential) -> Credential:
        """Return a newer credential after the server refused one; the same if there is none.

        Raises:
            CredentialsError: There is none.
        """
        ...


class FixedCredentials:
    """Credentials that never change."""

    def __init__(self, credential: Credential = NOBODY) -> None:
        self._credential = credential

    async def get(self) -> Credential:
        """Return the credential."""
        return self._credential

    async def renew(self, refused: Credential) -> Credential:
        """Return the same credential."""
        return self._credential


class TokenFile:
    """A bearer token in a file that is replaced from time to time.

    Args:
        path: Of the file.
        now: A monotonic clock in seconds.
        token: Used while the file cannot be read.
    """

    def __init__(self, path: str, now: Callable[[], float], token: str = "") -> None:
        self._path = Path(path)
        self._now = now
        self._credential = bearer(token) if token else NOBODY
        self._read_at = float("-inf")
        self._looked_at = float("-inf")
        self._seen: tuple[int, int, int] | None = None

    async def get(self) -> Credential:
        """Return the token, read again if the file changed or the reading is 50 seconds old."""
        now = self._now()
        if now - self._looked_at >= _LOOK_PERIOD_SECONDS:
            self._looked_at = now
            if now - self._read_at >= _TOKEN_AGE_SECONDS_MAX or self._signature() != self._seen:
                self._read()
        return self._credential

    async def renew(self, refused: Credential) -> Credential:
        """Return the token after reading the file again."""
        if refused == self._credential:
            self._read()
        return self._credential

    def _read(self) -> None:
        """Read the file; if that fails, the last token remains in use."""
        seen = self._signature()
        try:
            token = self._path.read_text(encoding="utf-8").strip()
        except (OSError, UnicodeDecodeError) as error:
            self._keep(f"failed to read token file {str(self._path)!r}: {error}")
            return
        if not token:
            self._keep(f"read empty token from file {str(self._path)!r}")
            return
        self._credential = bearer(token)
        self._read_at = self._now()
        self._seen = seen

    def _keep(self, problem: str) -> None:
        if not self._credential.header:
            # The next request reads the file again.
            self._looked_at = float("-inf")
            raise CredentialsError(problem)

    def _signature(self) -> tuple[int, int, int] | None:
        try:
            status = self._path.stat()
        except OSError:
            return None
        return status.st_mtime_ns, status.st_ino, status.st_size


def bearer(token: str) -> Credential:
    """Return the credential for a bearer token."""
    return Credential(f"Bearer {token}")


def basic(username: str, password: str) -> Credential:
    """Return the credential for a name and a password."""
    text = base64.b64encode(f"{username}:{password}".encode()).decode()
    return Credential(f"Basic {text}")


def fixed_credential(user: UserSettings) -> Credential:
    """Return the static credential of a user's settings, `NOBODY` without one."""
    if user.username or user.password:
        return basic(user.username, user.password)
    return bearer(user.token.strip()) if user.token else NOBODY
