"""The documents that commands print with `-o json` or a port serves, and their JSON Schemas.

The fields of a document are those of its class; the docstrings describe them. Within `v1` fields
are added, never removed or renamed, so readers should ignore what they do not know.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Final

import msgspec

from kubesched.answers.cluster_comparison import ClusterComparison
from kubesched.answers.cluster_view import ClusterView
from kubesched.answers.drain import CompactReport, DrainReport, UpgradeReport
from kubesched.answers.fit import FitReport
from kubesched.answers.top import TopReport
from kubesched.answers.whatif import WhatIfReport
from kubesched.answers.why import WhyReport
from kubesched.api.go_text import go_duration
from kubesched.config.decoding import DURATION_FORMAT
from kubesched.explain.decision_records import DecisionRecords
from kubesched.explain.document import API_VERSION, Document
from kubesched.explain.report import PodExplanation
from kubesched.explain.shadow_report import ReplayReport, ShadowReport
from kubesched.simulator.playback import Playback
from kubesched.simulator.report import SimulationReport
from kubesched.simulator.timeline_report import TimelineComparison, TimelineReport

DOCUMENTS: Final[Mapping[str, type[Document]]] = MappingProxyType(
    {
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
)
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
    texts = {_camel(name): text for name, text in attributes.items()}
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


def _camel(name: str) -> str:
    first, *others = name.split("_")
    return "".join([first, *(word.title() for word in others)])
