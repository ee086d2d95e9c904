"""Our small renderer of charts compared with Helm.

The record holds a chart's sources and what Helm 4 made of them with several values.
"""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any, Final

import pytest

from tests.deploy.go_templates import render_chart
from tests.deploy.shipped import objects_of

Plain = dict[str, Any]

RECORD: Final[Plain] = json.loads(
    gzip.decompress((Path(__file__).parent / "data" / "helm.json.gz").read_bytes())
)
CASES: Final[dict[str, Plain]] = RECORD["cases"]


@pytest.fixture
def chart(tmp_path: Path) -> Path:
    """Return a directory with the recorded chart."""
    (tmp_path / "templates").mkdir()
    for name in ("Chart.yaml", "values.yaml"):
        (tmp_path / name).write_text(RECORD[name], encoding="utf-8")
    for name, text in RECORD["templates"].items():
        (tmp_path / "templates" / name).write_text(text, encoding="utf-8")
    return tmp_path


def without_plugins_digest(text: str) -> list[Plain]:
    """Return the objects without a digest over YAML, which two libraries quote differently."""
    objects = objects_of(text)
    for found in objects:
        if found["kind"] == "Deployment":
            annotations = found["spec"]["template"]["metadata"]["annotations"]
            assert 64 == len(annotations.pop("checksum/plugins"))
    return objects


@pytest.mark.parametrize("name", CASES)
def test_rendered_templates_equal_helms(chart: Path, name: str) -> None:
    """As objects, or as text if they are not YAML."""
    case = CASES[name]
    rendered = render_chart(chart, case["values"], case["release"])
    assert case["rendered"].keys() == rendered.keys()
    assert case["rendered"]["NOTES.txt"] == rendered["NOTES.txt"]
    for file in rendered.keys() - {"NOTES.txt"}:
        expected = without_plugins_digest(case["rendered"][file])
        assert expected == without_plugins_digest(rendered[file])


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("{{ if .Values.a }}", id="no end"),
        pytest.param("{{ lookup }}", id="unknown function"),
        pytest.param("{{ .Values.a + 1 }}", id="unknown sign"),
        pytest.param('{{ printf "%d" 1 }}', id="unknown form"),
    ],
)
def test_unknown_template_functions_are_errors(chart: Path, text: str) -> None:
    """Nothing is skipped."""
    (chart / "templates" / "x.yaml").write_text(text, encoding="utf-8")
    with pytest.raises((AssertionError, KeyError, ValueError)):
        render_chart(chart, {}, "r")
