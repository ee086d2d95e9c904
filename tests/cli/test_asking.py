"""The status line of a simulation."""

from __future__ import annotations

import io
import sys
from typing import TYPE_CHECKING

from kubesched.answers.cluster import Cluster
from kubesched.cli.asking import run_simulation
from kubesched.inputs import status_line

from .cluster import pod
from .test_output import Terminal

if TYPE_CHECKING:
    import pytest


def _written(monkeypatch: pytest.MonkeyPatch, stream: io.StringIO) -> str:
    """Return what a simulation of one pod writes to stderr."""
    monkeypatch.setattr(sys, "stderr", stream)
    monkeypatch.setattr(status_line, "_PATIENCE_SECONDS", 0.0)
    run_simulation(Cluster.from_objects([pod("a")]))
    return stream.getvalue()


def test_progress_only_on_terminals(monkeypatch: pytest.MonkeyPatch) -> None:
    """Progress is shown on a terminal only."""
    assert "Placing pods: 0 of 1" in _written(monkeypatch, Terminal())
    assert not _written(monkeypatch, io.StringIO())
