"""The lines of a recording."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tests.app.test_replay import recorded, small


def _lines(file: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in file.read_bytes().splitlines()]


def test_events_and_decisions_are_in_order(tmp_path: Path) -> None:
    """A decision is after the events it depends on and before its binding."""
    lines = _lines(recorded(tmp_path / "run.jsonl", small()))
    head, *_, last = lines
    assert {
        "type": "RECORDING",
        "at": 0,
        "version": 1,
        "recordedBy": "simulate",
        "schedulerNames": ["default-scheduler"],
    } == head
    assert ("END", 60) == (last["type"], round(last["at"]))
    of_pod = [
        (line["type"], line.get("object", {}).get("spec", {}).get("nodeName", ""))
        for line in lines
        if line.get("object", {}).get("kind") == "Pod" or "decision" in line
    ]
    assert [("ADDED", ""), ("DECIDED", ""), ("MODIFIED", "large-0")] == of_pod[:3]
    (decided,) = (line["decision"] for line in lines if line["type"] == "DECIDED")
    assert ("default/web-00001", "large-0") == (decided["pod"], decided["node"])


def test_a_failed_binding_has_a_line(tmp_path: Path) -> None:
    """It follows the decision."""
    failing = {**small(), "faults": {"bind": {"error": 1.0}}}
    lines = _lines(recorded(tmp_path / "run.jsonl", failing))
    types = [line["type"] for line in lines if "decision" in line]
    assert ["DECIDED", "UNDONE", "DECIDED", "UNDONE"] == types[:4]
