"""The example plugin FloatingLicences, from its files."""

from __future__ import annotations

import json
import re
from pathlib import Path

from tests.cli.cluster import run

from .running import EXAMPLES

PLUGIN = f"{EXAMPLES / 'plugins' / 'floating_licences.py'}:FloatingLicences"
SCENARIO = EXAMPLES / "plugins" / "licences.yaml"


def test_a_pod_waits_until_a_licence_is_free(tmp_path: Path) -> None:
    """Two pods draw at a time; the end of one of them wakes the others, and no other event."""
    log = tmp_path / "decisions.jsonl"
    result = run("simulate", SCENARIO, "--plugin", PLUGIN, "--decision-log", log)
    assert (0, "") == (result.exit_code, result.stderr)
    found = [json.loads(line) for line in log.read_text(encoding="utf-8").splitlines()]
    placed = [(one["pod"], one["node"][:4], one["at"]) for one in found if one["what"] == "placed"]
    assert [
        ("default/drawing-0", "node"),
        ("default/drawing-1", "node"),
        ("default/web-0", "othe"),
        ("default/drawing-2", "node"),
        ("default/drawing-3", "node"),
    ] == [one[:2] for one in placed]
    assert [601, 603] == [int(one[2]) for one in placed[3:]]
    (reason,) = {one["message"].partition(".")[0] for one in found if one["what"] == "rejected"}
    assert "0/4 nodes are available: all 2 licences cad are in use" == reason


def test_arguments_are_checked(tmp_path: Path) -> None:
    """A wrong type is named with its path."""
    wrong = tmp_path / "wrong.yaml"
    wrong.write_text(re.sub("cad: 2", "cad: two", SCENARIO.read_text(encoding="utf-8")))
    result = run("simulate", wrong, "--plugin", PLUGIN)
    assert 2 == result.exit_code
    path = "profiles[0].pluginConfig[0].args.licences.cad"
    error = f'{path}: Invalid value: "two": expected integer, got text'
    assert f"kubesched: error: {wrong}: {error}\n" == result.stderr
