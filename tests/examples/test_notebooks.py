"""The notebooks show what their cells show when they are run again."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
NOTEBOOKS = sorted((ROOT / "examples" / "notebooks").glob("*.ipynb"))


@pytest.mark.slow
def test_notebooks_show_what_their_cells_show() -> None:
    """Each runs in a kernel of its own, all at once."""
    assert len(NOTEBOOKS) == 3
    files = [str(ROOT / "tools" / "notebooks.py"), "--check", *map(str, NOTEBOOKS)]
    done = subprocess.run(  # noqa: S603 - our own words
        [sys.executable, *files], capture_output=True, text=True, check=False
    )
    assert ("", 0) == (done.stderr, done.returncode)
