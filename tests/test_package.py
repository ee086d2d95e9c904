"""The package as such."""

from __future__ import annotations

import subprocess
import sys


def test_nobody_is_told_unasked() -> None:
    """Errors that are logged stay out of stderr until somebody sets up logging."""
    code = "import logging, kubesched; logging.getLogger('kubesched.x').error('words')"
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, capture_output=True, check=True)  # noqa: S603 - our own command
    assert b"" == done.stderr
