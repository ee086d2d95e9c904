"""Every document has a schema, and what commands print is valid under it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import jsonschema
import msgspec
import pytest

from kubesched import Cluster
from kubesched.app.decision_ring import DecisionQuery, decision_page
from kubesched.app.http_exchange import HttpRequest
from kubesched.explain.decision_records import DecisionRecords, QueuePart, QueueState
from kubesched.explain.shadow_report import (
    Disagreement,
    ScoreDifference,
    ShadowReport,
    ShadowVerdict,
)
from kubesched.plugins.registry import in_tree_registry
from kubesched.reports import DOCUMENTS, schema_of
from kubesched.simulator.playback import PlaybackRecorder
from kubesched.simulator.run import simulate
from kubesched.simulator.scenario_loading import load_scenario
from tests.app.test_decision_ring import played, preemption
from tests.cli.cluster import document, manifest, node, pod, run, shop, write

SCENARIOS = Path(__file__).resolve().parents[1] / "examples" / "scenarios"


def printed(tmp_path: Path) -> dict[str, list[str]]:
    """Return the commands that print each kind of document."""
    objects = [*shop(), pod("big", "7500m", priority=100), pod("busy", "3", node_name="beta")]
    cluster = str(write(tmp_path, objects))
    other = str(write(tmp_path, [*objects[1:], pod("new")], "other.json"))
    scenario = [str(SCENARIOS / "batch-and-web.yaml"), "--duration", "60s"]
    deployment = str(write(tmp_path, [manifest("Deployment")], "web.json"))
    plan = str(tmp_path / "plan.yaml")
    Path(plan).write_text("steps: [{addNodes: {like: beta}}]")
    configs = [f"--config={SCENARIOS / name}" for name in ("spread.yaml", "pack.yaml")]
    return {
        "WhyReport": ["why", "shop/big", cluster],
        "FitReport": ["fit", deployment, "--cluster", cluster, "--max"],
        "DrainReport": ["drain", "delta", cluster],
        "WhatIfReport": ["whatif", plan, cluster],
        "UpgradeReport": ["upgrade", "-l", "kubernetes.io/hostname", "--force", cluster],
        "CompactReport": ["compact", "--force", cluster],
        "PodExplanation": ["explain", "shop/big", cluster],
        "TopReport": ["top", "zones", cluster, "--room-like", "shop/big"],
        "SimulationReport": ["simulate", cluster],
        "TimelineReport": ["simulate", *scenario],
        "TimelineComparison": ["compare", *scenario, *configs],
        "ClusterComparison": ["compare", cluster, other],
    }


def _document(kind: str, tmp_path: Path) -> Any:
    """Return a document of each kind, as it is printed or served."""
    if kind == "DecisionRecords":
        ring = played(preemption)
        queue = QueueState(part=QueuePart.GATED)
        records = DecisionRecords(
            leads=True, capacity=9, recorded=3, records=ring.newest(DecisionQuery()), queue=queue
        )
        return json.loads(decision_page(HttpRequest(path="/"), lambda _query: records).body)
    if kind == "ClusterView":
        return Cluster.from_files(write(tmp_path, shop())).view().to_dict()
    if kind == "ShadowReport":
        return shadow_report().to_dict()
    if kind == "ReplayReport":
        return document(*replaying(tmp_path))
    if kind == "Playback":
        recorder = PlaybackRecorder()
        scenario = msgspec.structs.replace(
            load_scenario(SCENARIOS / "batch-and-web.yaml"), duration=60
        )
        simulate(scenario, in_tree_registry(), recorder=recorder)
        return recorder.playback(scenario.name, 60).to_dict()
    return document(*printed(tmp_path)[kind], code=0)


def replaying(folder: Path) -> tuple[str, ...]:
    """Record a simulation; return the command that replays it with another configuration."""
    recording = str(folder / "run.jsonl")
    scenario = str(SCENARIOS / "batch-and-web.yaml")
    run("simulate", scenario, "--duration", "60s", "--record", recording)
    return "replay", recording, "--config", str(SCENARIOS / "pack.yaml")


def shadow_report() -> ShadowReport:
    """Return a report with one difference."""
    counts: Any = dict.fromkeys(ShadowReport.__struct_fields__[1:-2], 1)
    different = Disagreement(
        pod="shop/web",
        uid="u",
        verdict=ShadowVerdict.DIFFERENT,
        sentence="",
        scores=(ScoreDifference("NodeResourcesFit", 1, 2),),
    )
    return ShadowReport(scheduler_name="s", **counts, disagreements=(different,))


@pytest.mark.parametrize("kind", DOCUMENTS)
def test_printed_documents_are_valid(kind: str, tmp_path: Path) -> None:
    """Unknown fields are errors here."""
    printed_or_served = _document(kind, tmp_path)
    schema = _strict(schema_of(kind))
    jsonschema.Draft202012Validator.check_schema(schema)
    jsonschema.Draft202012Validator(schema).validate(printed_or_served)


def _strict(schema: dict[str, Any]) -> dict[str, Any]:
    """Return the schema with unknown fields forbidden."""
    for part in (schema, *schema.get("$defs", {}).values()):
        if "properties" in part:
            part["additionalProperties"] = False
    return schema


def _undescribed() -> list[str]:
    """Return the fields of documents without a description, as `Class.field`."""
    found = set()
    for kind in DOCUMENTS:
        schema = schema_of(kind)
        for title, part in {kind: schema, **schema.get("$defs", {})}.items():
            found |= {
                f"{title}.{name}"
                for name, field in part.get("properties", {}).items()
                if "description" not in field and "const" not in field
            }
    return sorted(found)


def test_every_field_has_a_description() -> None:
    """The description is in the schema."""
    assert [] == _undescribed()


def test_a_schema_rejects_documents_of_another_kind(tmp_path: Path) -> None:
    """A document of another kind is not valid."""
    cluster = write(tmp_path, [node("a", "1"), pod("b", "2")])
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(document("why", "b", cluster), schema_of("PodExplanation"))
