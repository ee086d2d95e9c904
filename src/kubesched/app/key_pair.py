"""A certificate and its key, made in a process of its own.

The sandbox needs no more of the secure port than this.
"""

from __future__ import annotations

import subprocess
import sys
from typing import Final

import msgspec

from kubesched.api.errors import SetupError

_made: Final = msgspec.json.Decoder(tuple[str, str])


class KeyPair(msgspec.Struct, frozen=True):
    """A certificate chain and its key, as PEM."""

    certificate: bytes
    key: bytes


def make_pair(bind_address: str) -> KeyPair:
    """Generate a certificate for localhost and an address, valid for a year, and its authority.

    An unspecified address adds nothing. Raises SetupError if it cannot be generated.
    """
    try:
        # In a process of its own, which gives back the 8 MiB that the library takes.
        made = subprocess.run(  # noqa: S603 - a module of this package, without a shell
            [sys.executable, "-m", "kubesched.app.self_signed_certificates", bind_address],
            check=True,
            capture_output=True,
        )
    except (OSError, subprocess.CalledProcessError) as error:
        raise SetupError(f"unable to generate self signed cert: {error}") from None
    certificate, key = _made.decode(made.stdout)
    return KeyPair(certificate.encode(), key.encode())
