"""The dashboard and the alerts in deploy/monitoring."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any, Final

import pytest
import yaml

from kubesched.app.metrics.family import FAMILIES
from tests.app.metrics.scripted import families_of, page_of_recorded_run

FOLDER: Final = Path(__file__).parents[2] / "deploy" / "monitoring"

_METRIC: Final = re.compile(r"\b(?:scheduler|rest_client|leader_election|process|kube)_[a-z_]+")
_PART: Final = re.compile(r"_(bucket|sum|count)$")
_MATCHER: Final = re.compile(r"([a-z_]+)\{([^}]*)\}")
_LABEL: Final = re.compile(r"([a-z_]+)\s*(?:=|!=|=~|!~)\"")
_TARGET: Final = {"job", "instance"}


def _dashboard() -> dict[str, Any]:
    found: dict[str, Any] = json.loads((FOLDER / "grafana-dashboard.json").read_text())
    return found


def _alerts() -> list[dict[str, Any]]:
    rules = yaml.safe_load((FOLDER / "prometheus-rules.yaml").read_text())
    return [rule for group in rules["groups"] for rule in group["rules"]]


def _panels() -> list[dict[str, Any]]:
    return [panel for panel in _dashboard()["panels"] if panel["type"] != "row"]


def _expressions() -> Iterator[tuple[str, str]]:
    for panel in _panels():
        for target in panel["targets"]:
            yield f"{panel['title']} {target['refId']}", target["expr"]
    for rule in _alerts():
        yield rule["alert"], rule["expr"]
    for variable in _dashboard()["templating"]["list"]:
        if variable["type"] == "query":
            yield f"variable {variable['name']}", variable["query"]["query"]


@cache
def _known() -> dict[str, set[str]]:
    """Return label names by metric, including metrics that need an API server or time."""
    known = {
        name: {label for series in family["series"] for label, _ in series}
        for name, family in families_of(page_of_recorded_run()).items()
    }
    for family in FAMILIES.values():
        known.setdefault(family.name, set(family.labels))
    return known


@pytest.mark.parametrize(
    "expression", [pytest.param(text, id=name) for name, text in _expressions()]
)
def test_used_metrics_exist(expression: str) -> None:
    """With the labels that are used."""
    names = _METRIC.findall(expression)
    assert names
    for name in names:
        assert _PART.sub("", name) in _known() or name in _known()
    for name, matchers in _MATCHER.findall(expression):
        labels = _known()[name if name in _known() else _PART.sub("", name)]
        assert set(_LABEL.findall(matchers)) <= labels | _TARGET


@pytest.mark.parametrize(
    "expression", [pytest.param(text, id=name) for name, text in _expressions()]
)
def test_expressions_are_balanced(expression: str) -> None:
    """Brackets are closed, and quantiles are computed from buckets."""
    for opening, closing in ("()", "{}", "[]"):
        assert expression.count(opening) == expression.count(closing)
    assert ("histogram_quantile" in expression) == ("_bucket" in expression)


def test_panels_do_not_overlap() -> None:
    """Ids are unique."""
    panels = _dashboard()["panels"]
    assert len(panels) == len({panel["id"] for panel in panels})
    taken: set[tuple[int, int]] = set()
    for panel in panels:
        at = panel["gridPos"]
        cells = {
            (x, y)
            for x in range(at["x"], at["x"] + at["w"])
            for y in range(at["y"], at["y"] + at["h"])
        }
        assert not taken & cells
        assert at["x"] + at["w"] <= 24
        taken |= cells


def test_alerts_have_severity_and_description() -> None:
    """Names are unique."""
    names = [rule["alert"] for rule in _alerts()]
    assert len(names) == len(set(names))
    for rule in _alerts():
        assert rule["labels"]["severity"] in {"critical", "warning", "info"}
        assert {"summary", "description"} == set(rule["annotations"])
