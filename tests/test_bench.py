"""Developers and CI run the same targets of the Makefile."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

import yaml

ROOT: Final = Path(__file__).resolve().parents[1]
RECIPES: Final = set(
    re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text("utf-8"), re.MULTILINE)
)


def test_ci_ends_with_make_test() -> None:
    """As the README says."""
    last = (ROOT / ".ci" / "run").read_text("utf-8").splitlines()[-1]
    command = last.removeprefix("exec ")
    readme = (ROOT / "README.md").read_text("utf-8")
    assert "make test" == command
    assert re.search(rf"^{command} ", readme, re.MULTILINE)


def test_hooks_call_make_targets() -> None:
    """They download nothing."""
    configuration = yaml.safe_load((ROOT / ".pre-commit-config.yaml").read_text("utf-8"))
    assert ["local"] == [each["repo"] for each in configuration["repos"]]
    for hook in configuration["repos"][0]["hooks"]:
        words = hook["entry"].split()
        assert ("make", "system") == (words[0], hook["language"])
        assert words[1] in RECIPES
