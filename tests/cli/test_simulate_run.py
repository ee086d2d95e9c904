"""Runs of a simulation on a terminal: the progress bar."""

from __future__ import annotations

import io
import sys
from typing import TYPE_CHECKING

from kubesched.cli import simulate_run

from .test_output import Terminal

if TYPE_CHECKING:
    import pytest


def _written(monkeypatch: pytest.MonkeyPatch, stream: io.StringIO) -> str:
    """Return what a bar writes while four of ten pods are tried."""
    monkeypatch.setattr(sys, "stderr", stream)
    monkeypatch.setattr(simulate_run, "_PATIENCE_SECONDS", 0.0)
    with simulate_run._LateProgress() as bar:
        bar.update(4, 10)
    return stream.getvalue()


def test_progress_only_on_terminals(monkeypatch: pytest.MonkeyPatch) -> None:
    """A bar is drawn on a terminal, and nothing elsewhere."""
    written = _written(monkeypatch, Terminal())
    assert "Placing pods" in written
    assert "40%" in written
    assert not _written(monkeypatch, io.StringIO())
