"""The example that trains a policy: it beats the default scores at its own goal."""

from __future__ import annotations

import subprocess
import sys

import pytest

from .running import EXAMPLES


@pytest.mark.slow
def test_a_trained_policy_packs_better_than_the_defaults() -> None:
    """They are not meant for packing."""
    command = [
        sys.executable,
        str(EXAMPLES / "rl" / "train.py"),
        "--generations",
        "6",
        "--pods",
        "80",
    ]
    found = subprocess.run(command, capture_output=True, encoding="utf-8", check=True)  # noqa: S603 - ours
    rewards = [float(line.split()[-1]) for line in found.stdout.splitlines()]
    assert len(rewards) == 2
    assert rewards[1] > rewards[0]
