"""Files that are read: all are looked for before the first is opened, so that none is told late."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterable
from pathlib import Path

from kubesched.api.decode import STANDARD_INPUT
from kubesched.cli.errors import UserError


def look_for_files(files: Iterable[Path | None]) -> None:
    """Look whether files and directories can be read; None and `-` can.

    Raises:
        UserError: with one line for each that cannot.
    """
    messages = [
        f"{file}: {fault}"
        for file in dict.fromkeys(files)
        if file is not None and (fault := fault_of(file))
    ]
    if messages:
        raise UserError(*messages)


def fault_of(file: Path) -> str:
    """Return why a file cannot be read; empty if it can."""
    if str(file) == STANDARD_INPUT:
        return ""
    try:
        file.stat()
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
    else:
        reason = "" if os.access(file, os.R_OK) else os.strerror(errno.EACCES)
    return f"it cannot be read: {reason}" if reason else ""
