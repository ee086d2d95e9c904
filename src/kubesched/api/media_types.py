"""Media types of requests and answers, and those that a client accepts.

Upstream: Go's package mime; staging/src/k8s.io/apimachinery/pkg/types/patch.go (v1.36)
Differs:  nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

JSON: Final = "application/json"
YAML: Final = "application/yaml"
PROTOBUF: Final = "application/vnd.kubernetes.protobuf"
PLAIN_TEXT: Final = "text/plain; charset=utf-8"
JSON_PATCH: Final = "application/json-patch+json"
MERGE_PATCH: Final = "application/merge-patch+json"
STRATEGIC_MERGE_PATCH: Final = "application/strategic-merge-patch+json"


def accepted_types(header: str) -> list[tuple[str, dict[str, str]]]:
    """Return the media types of an `Accept` header, with their parameters, best first."""
    clauses = [_clause(text) for text in header.split(",") if text.strip()]
    # Stable: of equal quality, the first named comes first.
    clauses.sort(key=lambda clause: -_quality(clause[1]))
    return clauses


def _clause(text: str) -> tuple[str, dict[str, str]]:
    media_type, *parameters = (part.strip() for part in text.split(";"))
    named = (parameter.partition("=") for parameter in parameters)
    return media_type.lower(), {name.strip(): value.strip() for name, _, value in named}


def _quality(parameters: Mapping[str, str]) -> float:
    try:
        return float(parameters.get("q", "1"))
    except ValueError:
        return 1.0
