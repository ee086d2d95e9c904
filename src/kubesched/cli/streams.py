"""The standard streams as the commands find them: always there, whatever the caller closed."""

from __future__ import annotations

import errno
import io
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer


class _Closed(io.RawIOBase):
    """A stream that the caller closed; whoever uses it hears so."""

    def __init__(self, name: str) -> None:
        super().__init__()
        self._error = OSError(errno.EBADF, "it is closed", name)

    def readable(self) -> bool:
        """Say that reading may be tried."""
        return True

    def writable(self) -> bool:
        """Say that writing may be tried."""
        return True

    def readinto(self, _buffer: WriteableBuffer, /) -> int:
        """Refuse to read."""
        raise self._error

    def write(self, _data: object, /) -> int:
        """Refuse to write."""
        raise self._error


def prepare_streams() -> None:
    """Let every stream be there, and take whatever a dump may hold."""
    # Python leaves None where a stream was closed before it began.
    sys.stdin = sys.stdin or io.TextIOWrapper(io.BufferedReader(_Closed("stdin")))
    sys.stdout = sys.stdout or io.TextIOWrapper(io.BufferedWriter(_Closed("stdout")))
    if sys.stderr is None:
        # There is nowhere left to say so.
        sys.stderr = Path(os.devnull).open("w", encoding="utf-8")  # noqa: SIM115 - to the very end
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            # A name may hold what the terminal's encoding lacks.
            stream.reconfigure(errors="backslashreplace")
