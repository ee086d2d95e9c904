"""Runs of a simulation on a terminal: the status line."""

from __future__ import annotations

import io
import sys
from typing import TYPE_CHECKING

from kubesched.answers.cluster import Cluster
from kubesched.cli import output
from kubesched.cli.simulate_run import run_simulation

from .test_output import Terminal

if TYPE_CHECKING:
    import pytest


def _written(monkeypatch: pytest.MonkeyPatch, stream: io.StringIO) -> str:
    """Return what is written to stderr while a pod is placed."""
    monkeypatch.setattr(sys, "stderr", stream)
    monkeypatch.setattr(output, "_PATIENCE_SECONDS", 0.0)
    container = {"name": "c", "image": "i"}
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "a", "namespace": "default"},
        "spec": {"containers": [container]},
    }
    run_simulation(Cluster.from_objects([pod]))
    return stream.getvalue()


def test_progress_only_on_terminals(monkeypatch: pytest.MonkeyPatch) -> None:
    """A line is shown on a terminal, and nothing elsewhere."""
    assert "Placing pods: 1 of 1" in _written(monkeypatch, Terminal())
    assert not _written(monkeypatch, io.StringIO())
