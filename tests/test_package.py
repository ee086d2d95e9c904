"""The package as a whole."""

from __future__ import annotations

import subprocess
import sys


def test_nothing_is_printed_without_logging_set_up() -> None:
    """Logged errors do not appear on stderr."""
    code = "import logging, kubesched; logging.getLogger('kubesched.x').error('words')"
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, capture_output=True, check=True)  # noqa: S603 - our own command
    assert b"" == done.stderr
