"""Runs kubesched on the examples."""

from __future__ import annotations

import importlib.util
import json
import sys
from pathlib import Path
from types import ModuleType
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
    """Return the node of each placed pod, by name."""
    return {
        placement["pod"].partition("/")[2]: placement["node"] for placement in report["placements"]
    }


def plugin_module(name: str) -> ModuleType:
    """Import a module of examples/plugins."""
    path = EXAMPLES / "plugins" / f"{name}.py"
    spec = importlib.util.spec_from_file_location(f"example_{name}", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def gpu_sharing(name: str) -> ModuleType:
    """Import a module of examples/gpu-sharing, whose modules import each other by name."""
    directory = str(EXAMPLES / "gpu-sharing")
    if directory not in sys.path:
        sys.path.append(directory)
    return importlib.import_module(name)
