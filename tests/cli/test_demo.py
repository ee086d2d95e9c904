"""The demo runs anywhere, and its text is true."""

from __future__ import annotations

import os
import pty
import re
import struct
import subprocess
import sys
import termios
from fcntl import ioctl
from pathlib import Path

import pytest

from tests.examples.running import EXAMPLES, node_of, simulate

from .cluster import run

DEMO = (sys.executable, "-m", "kubesched", "demo")
CLUSTER = EXAMPLES / "demo" / "cluster.yaml"

_STYLE = re.compile(r"\x1b\[[0-9;]*m")


def _on_terminal(columns: int, unbuffered: str) -> str:
    ours, theirs = pty.openpty()
    ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 50, columns, 0, 0))
    environment = {key: value for key, value in os.environ.items() if key != "COLUMNS"}
    with subprocess.Popen(  # noqa: S603 - our own demo
        DEMO,
        cwd=EXAMPLES.parent,
        env={
            **environment,
            "TERM": "xterm-256color",
            "NO_COLOR": "",
            "PYTHONUTF8": "1",
            "PYTHONUNBUFFERED": unbuffered,
        },
        stdin=subprocess.DEVNULL,
        stdout=theirs,
        stderr=theirs,
    ) as process:
        os.close(theirs)
        parts: list[bytes] = []
        while True:
            try:
                part = os.read(ours, 1 << 16)
            except OSError:  # Linux says so when the other end is closed
                break
            if not part:
                break
            parts.append(part)
    os.close(ours)
    assert 0 == process.returncode
    return b"".join(parts).decode().replace("\r\n", "\n")


@pytest.mark.slow
def test_it_runs_without_a_terminal(tmp_path: Path) -> None:
    """In a pipe, from any directory, it exits with 0 and has no colours."""
    found = subprocess.run(  # noqa: S603 - our own demo
        DEMO,
        cwd=tmp_path,
        env={**os.environ, "PYTHONUTF8": "1"},
        capture_output=True,
        encoding="utf-8",
        check=False,
    )
    assert 0 == found.returncode
    assert "\x1b" not in found.stdout
    assert "Pod batch/report-0 fits none of 6 nodes: 4 have too little cpu" in found.stdout


@pytest.mark.slow
@pytest.mark.parametrize(("columns", "unbuffered"), [(60, "1"), (100, "")])
def test_it_fits_the_terminal(columns: int, unbuffered: str) -> None:
    """On a terminal only commands may be wider than it, and there are colours."""
    written = _on_terminal(columns, unbuffered)
    lines = _STYLE.sub("", written).splitlines()
    commands = ("$ ",)
    wide = [line for line in lines if len(line) > columns and not line.startswith(commands)]
    assert "\x1b[" in written
    assert [] == wide


def test_its_statements_are_true() -> None:
    """Web servers are spread over zones, two batch pods are evicted, the report is pending."""
    report = simulate(CLUSTER)
    places = node_of(report)
    zones = sorted(node[0] for pod, node in places.items() if pod.startswith("web"))
    assert ["a", "a", "b", "b", "c", "c"] == zones
    assert ["batch/etl-2", "batch/etl-3"] == [pod["pod"] for pod in report["evictions"]]
    assert ["batch/report-0"] == [pod["pod"] for pod in report["unplaced"]]


def test_the_cluster_is_written(tmp_path: Path) -> None:
    """The file is the example of the documents."""
    file = tmp_path / "cluster.yaml"
    assert run("demo", "--write", file).exit_code == 0
    assert file.read_text(encoding="utf-8") == CLUSTER.read_text(encoding="utf-8")
