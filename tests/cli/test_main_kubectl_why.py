"""The entry point that kubectl finds on PATH."""

from __future__ import annotations

import subprocess
import sys
import tomllib
from importlib.metadata import EntryPoint
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


def plugin(*words: str) -> subprocess.CompletedProcess[str]:
    """Run the plugin as the installed script does."""
    scripts = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["scripts"]
    entry = EntryPoint("kubectl-why", scripts["kubectl-why"], "console_scripts")
    code = f"from {entry.module} import {entry.attr}; {entry.attr}()"
    command = [sys.executable, "-c", code, *words]
    return subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603 - our own code


@pytest.mark.slow
def test_its_texts_say_what_people_type() -> None:
    """Usage and examples are those of `kubectl why`."""
    done = plugin("-h")
    assert 0 == done.returncode
    assert done.stdout.startswith("Usage: kubectl why [OPTIONS] POD [FILES]...\n")
    assert "  kubectl why web-1 -n shop\n" in done.stdout
    assert "kubesched why" not in done.stdout


@pytest.mark.slow
def test_same_answers_as_the_command() -> None:
    """Exit codes and errors are those of `kubesched why`."""
    cluster = str(ROOT / "examples" / "demo" / "cluster.yaml")
    done = plugin("report-0", cluster)
    assert (0, "") == (done.returncode, done.stderr)
    assert done.stdout.startswith("Pod batch/report-0 fits none of 6 nodes")
    failed = plugin("nobody", cluster)
    assert (2, 1) == (failed.returncode, len(failed.stderr.splitlines()))
