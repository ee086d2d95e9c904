"""The records that answers are made of, the documents of these, and their JSON Schemas.

Commands print documents with `-o json`, a port serves some. The fields of a document are those of
its class; the docstrings describe them. Within `v1` fields are added, never removed or renamed, so
readers should ignore what they do not know.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Mapping
from typing import Any, Final

import msgspec

from kubesched.answers.cluster_comparison import (
    ClusterComparison,
    ClusterDifference,
    ComparedCluster,
    PodDifference,
    WorkloadDifference,
)
from kubesched.answers.cluster_view import ClusterView, PendingGroup, ViewedNodes
from kubesched.answers.drain import (
    CompactReport,
    DrainedPod,
    DrainReport,
    NodesAtOnce,
    NodeThatBlocks,
    PodFate,
    UpgradeReport,
)
from kubesched.answers.fit import FitReport, MorePods, PodsOnNode, WorkloadFit
from kubesched.answers.node_shapes import MissingNodes, NodesOfShape
from kubesched.answers.pod_outcomes import ClusterUse, PodsWithoutNode, PreemptedPod
from kubesched.answers.room import Room, StoppingReason
from kubesched.answers.top import PendingRequests, ResourceRequests, TopGroup, TopReport, TopRow
from kubesched.answers.trial import ChangeKind, SuggestedChange
from kubesched.answers.whatif import MovedPod, WhatIfReport
from kubesched.answers.why import Cause, CauseExample, LastAttempt, PodState, WhyReport
from kubesched.api.field_errors import camel_case
from kubesched.api.go_text import go_duration
from kubesched.config.decoding import DURATION_FORMAT
from kubesched.explain.decision_records import (
    DecisionRecord,
    DecisionRecords,
    EvictedPod,
    QueuePart,
    QueueState,
    RecordedOutcome,
)
from kubesched.explain.document import API_VERSION, Document
from kubesched.explain.report import (
    Answer,
    NodeScore,
    NodeVerdict,
    NotHelped,
    PluginScore,
    PodExplanation,
    PodOutcome,
    PostFilterStep,
    PreemptionCandidate,
    PreemptionExplanation,
    PreFilterStep,
    RetryEvents,
    Unknown,
    Victim,
)
from kubesched.explain.shadow_report import (
    Disagreement,
    ReplayReport,
    ScoreDifference,
    ShadowReport,
    ShadowVerdict,
)
from kubesched.framework.plugin import Decides
from kubesched.simulator.playback import (
    NodeChanges,
    Playback,
    PlaybackNodes,
    PlaybackPods,
    PodReasons,
    WorkloadOnNodes,
)
from kubesched.simulator.report import (
    Eviction,
    Gated,
    Ignored,
    NodeUse,
    PodPlacement,
    ResourceUse,
    SimulationReport,
    Summary,
    Unplaced,
    ZoneUse,
)
from kubesched.simulator.series import SeriesValues
from kubesched.simulator.timeline_report import (
    Histogram,
    Measure,
    MoveCount,
    RequestCount,
    ResourceReport,
    Series,
    TimelineComparison,
    TimelineReport,
    Totals,
    WaitReport,
)

__all__ = [
    "DOCUMENTS",
    "Answer",
    "Cause",
    "CauseExample",
    "ChangeKind",
    "ClusterComparison",
    "ClusterDifference",
    "ClusterUse",
    "ClusterView",
    "CompactReport",
    "ComparedCluster",
    "Decides",
    "DecisionRecord",
    "DecisionRecords",
    "Disagreement",
    "Document",
    "DrainReport",
    "DrainedPod",
    "EvictedPod",
    "Eviction",
    "FitReport",
    "Gated",
    "Histogram",
    "Ignored",
    "LastAttempt",
    "Measure",
    "MissingNodes",
    "MorePods",
    "MoveCount",
    "MovedPod",
    "NodeChanges",
    "NodeScore",
    "NodeThatBlocks",
    "NodeUse",
    "NodeVerdict",
    "NodesAtOnce",
    "NodesOfShape",
    "NotHelped",
    "PendingGroup",
    "PendingRequests",
    "Playback",
    "PlaybackNodes",
    "PlaybackPods",
    "PluginScore",
    "PodDifference",
    "PodExplanation",
    "PodFate",
    "PodOutcome",
    "PodPlacement",
    "PodReasons",
    "PodState",
    "PodsOnNode",
    "PodsWithoutNode",
    "PostFilterStep",
    "PreFilterStep",
    "PreemptedPod",
    "PreemptionCandidate",
    "PreemptionExplanation",
    "QueuePart",
    "QueueState",
    "RecordedOutcome",
    "ReplayReport",
    "RequestCount",
    "ResourceReport",
    "ResourceRequests",
    "ResourceUse",
    "RetryEvents",
    "Room",
    "ScoreDifference",
    "Series",
    "SeriesValues",
    "ShadowReport",
    "ShadowVerdict",
    "SimulationReport",
    "StoppingReason",
    "SuggestedChange",
    "Summary",
    "TimelineComparison",
    "TimelineReport",
    "TopGroup",
    "TopReport",
    "TopRow",
    "Totals",
    "Unknown",
    "Unplaced",
    "UpgradeReport",
    "Victim",
    "ViewedNodes",
    "WaitReport",
    "WhatIfReport",
    "WhyReport",
    "WorkloadDifference",
    "WorkloadFit",
    "WorkloadOnNodes",
    "ZoneUse",
    "schema_of",
]

DOCUMENTS: Final[Mapping[str, type[Document]]] = {
    document.__name__: document
    for document in (
        WhyReport,
        FitReport,
        DrainReport,
        WhatIfReport,
        UpgradeReport,
        CompactReport,
        PodExplanation,
        TopReport,
        ClusterView,
        SimulationReport,
        TimelineReport,
        TimelineComparison,
        Playback,
        ClusterComparison,
        DecisionRecords,
        ShadowReport,
        ReplayReport,
    )
}
"""The class of each kind of document."""

_DIALECT: Final = "https://json-schema.org/draft/2020-12/schema"
_ATTRIBUTE: Final = re.compile(
    r"^    (?P<names>\w+(?:, \w+)*): (?P<text>.*(?:\n        .*)*)", re.MULTILINE
)


def schema_of(kind: str) -> dict[str, Any]:
    """Return the JSON Schema of a kind of document; raises KeyError for an unknown kind."""
    parts = _parts_of(DOCUMENTS[kind])
    whole = parts.pop(kind)
    identity = {"apiVersion": {"const": API_VERSION}, "kind": {"const": kind}}
    schema = {
        "$schema": _DIALECT,
        "$id": f"{API_VERSION}/{kind}",
        **whole,
        "properties": {**identity, **whole["properties"]},
        "required": [*identity, *whole.get("required", ())],
    }
    return _plain({**schema, "$defs": parts} if parts else schema)


def schema_of_input(struct: type[msgspec.Struct], name: str) -> dict[str, Any]:
    """Return the JSON Schema of a file that people write, in which unknown fields are errors."""
    parts = _parts_of(struct)
    for part in parts.values():
        part["additionalProperties"] = False
    whole = parts.pop(struct.__name__)
    schema = {"$schema": _DIALECT, "$id": f"{API_VERSION}/{name}", **whole, "$defs": parts}
    found: dict[str, Any] = _with_durations(_plain(schema))
    return found


def _with_durations(schema: Any) -> Any:
    """Return a schema in which durations are texts, as they are written, and not seconds."""
    if isinstance(schema, list):
        return [_with_durations(each) for each in schema]
    if not isinstance(schema, dict):
        return schema
    found = {key: _with_durations(value) for key, value in schema.items()}
    if found.get("format") == DURATION_FORMAT:
        found["type"] = "string"
    if isinstance(found.get("default"), float) and DURATION_FORMAT in str(found):
        found["default"] = go_duration(found["default"])
    return found


def _parts_of(struct: type[msgspec.Struct]) -> dict[str, dict[str, Any]]:
    """Return the schemas of a struct and those that it contains, with descriptions."""
    _, parts = msgspec.json.schema_components([struct], ref_template="#/$defs/{name}")
    for part in parts.values():
        _describe(part)
    return parts


def _plain(schema: dict[str, Any]) -> dict[str, Any]:
    """Return a schema without tuples, which JSON does not have."""
    plain: dict[str, Any] = msgspec.json.decode(msgspec.json.encode(schema))
    return plain


def _describe(part: dict[str, Any]) -> None:
    """Move the descriptions of attributes from the docstring to their properties."""
    summary, attributes = described(part.pop("description", ""))
    part["description"] = summary
    texts = {camel_case(name): text for name, text in attributes.items()}
    for name, schema in part.get("properties", {}).items():
        if name in texts:
            # A reference may stand beside other keywords since draft 2019-09.
            schema["description"] = texts[name]


def described(docstring: str) -> tuple[str, dict[str, str]]:
    """Return the summary of a class's docstring, and the text of each attribute."""
    summary, _, attributes = inspect.cleandoc(docstring).partition("\nAttributes:\n")
    return _one_line(summary), {
        name: _one_line(found["text"])
        for found in _ATTRIBUTE.finditer(attributes)
        for name in found["names"].split(", ")
    }


def _one_line(text: str) -> str:
    return " ".join(text.split())
