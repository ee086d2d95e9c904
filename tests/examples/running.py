"""Runs kubesched on the examples."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from click.testing import CliRunner

from kubesched.cli.main import kubesched

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"

Json = dict[str, Any]


def simulate(*arguments: object) -> Json:
    """Run `kubesched simulate` and return its report."""
    words = ["simulate", *map(str, arguments), "-o", "json"]
    result = CliRunner().invoke(kubesched, words, env={"KUBESCHED_DEBUG": ""})
    assert (0, "") == (result.exit_code, result.stderr)
    report: Json = json.loads(result.stdout)
    return report


def node_of(report: Json) -> dict[str, str]:
    """Return where each placed pod is, by the pod's name."""
    return {
        placement["pod"].partition("/")[2]: placement["node"] for placement in report["placements"]
    }
