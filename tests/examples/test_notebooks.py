"""Notebooks have the current output of their cells."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
NOTEBOOKS = sorted((ROOT / "examples" / "notebooks").glob("*.ipynb"))


@pytest.mark.slow
def test_notebooks_have_current_output() -> None:
    """Each runs in its own kernel, all at once."""
    assert len(NOTEBOOKS) == 3
    files = [str(ROOT / "tools" / "notebooks.py"), "--check", *map(str, NOTEBOOKS)]
    done = subprocess.run(  # noqa: S603 - our own words
        [sys.executable, *files], capture_output=True, text=True, check=False
    )
    # Not "nothing on stderr": a kernel may log that its sockets closed before its last message.
    assert done.returncode == 0, done.stderr
