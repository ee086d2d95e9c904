"""Stdout, which is for results: what plugins print goes to stderr."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final, TextIO

_kept: Final[list[TextIO]] = []


def stdout() -> TextIO:
    """Return the stream for results."""
    return _kept[-1] if _kept else sys.stdout


@contextmanager
def printing_to_stderr() -> Iterator[None]:
    """Let `print` write to stderr, as plugins may print in the middle of a result."""
    _kept.append(sys.stdout)
    sys.stdout = sys.stderr
    try:
        yield
    finally:
        sys.stdout = _kept.pop()
