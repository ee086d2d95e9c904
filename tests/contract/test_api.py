"""Every recorded conversation with the real API server, replayed with ours."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from pathlib import Path

import pytest

from kubesched.simulator.virtual_loop import run

from .expected_differences import EXPECTED_DIFFERENCES
from .placeholders import DifferenceError
from .replay import load, names, replay, replay_over_http

ROOT = Path(__file__).resolve().parents[2]
# Of each way to talk one, and none that waits.
OVER_HTTP = (
    "binding",
    "delete-pods",
    "errors-http-level",
    "pods-crud",
    "pretty-and-compact",
    "tables",
    "version-and-health",
    "watch-basic",
    "yaml-bodies",
)
AGREEING = [name for name in names() if name not in EXPECTED_DIFFERENCES]


@pytest.mark.parametrize("name", AGREEING)
def test_conversation_agrees(name: str) -> None:
    """Step by step."""
    run(replay(load(name)))


@pytest.mark.parametrize("name", sorted(EXPECTED_DIFFERENCES))
def test_expected_differences_exist(name: str) -> None:
    """At the place that the table names."""
    with pytest.raises(DifferenceError) as caught:
        run(replay(load(name)))
    assert EXPECTED_DIFFERENCES[name].where in str(caught.value)


@pytest.mark.parametrize("name", OVER_HTTP)
def test_conversation_agrees_over_http(name: str) -> None:
    """With a socket in between."""
    asyncio.run(replay_over_http(load(name)))


def test_expected_differences_name_recorded_conversations() -> None:
    """Each of them exists."""
    assert set(names()) >= set(EXPECTED_DIFFERENCES)


def test_the_page_about_the_contract_is_current() -> None:
    """It is generated from the tables."""
    found = subprocess.run(  # noqa: S603 - our own tool
        [sys.executable, ROOT / "tools" / "contract.py", "--check"],
        capture_output=True,
        encoding="utf-8",
        check=False,
    )
    assert ("", 0) == (found.stderr, found.returncode)
