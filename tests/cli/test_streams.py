"""What plugins print, beside the results on stdout."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from .cluster import node, pod, run, write

PLUGIN = """
from kubesched.framework import SUCCESS, PerRowFilter

print("imported")


class Chatty(PerRowFilter):
    name = "Chatty"

    def filter_node(self, state, pod, node):
        print("filtering")
        return SUCCESS
"""


@pytest.mark.parametrize("command", [["simulate"], ["explain", "a"], ["why", "a"], ["top"]])
def test_what_a_plugin_prints_is_not_part_of_the_result(tmp_path: Path, command: list[str]) -> None:
    """It goes to stderr, and stdout is as before when the command has ended."""
    (tmp_path / "plugin").mkdir()
    plugin = tmp_path / "plugin" / "chatty.py"
    plugin.write_text(PLUGIN)
    dump = write(tmp_path, [node("alpha"), pod("a")])
    before = sys.stdout
    result = run(*command, dump, "--plugin", f"{plugin}:Chatty", "-o", "json")
    assert not result.exit_code, result.stderr
    assert json.loads(result.stdout)
    assert "imported" in result.stderr
    assert sys.stdout is before
