"""The recorded exchanges with the secure port of kube-scheduler 1.36."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

_FILE = Path(__file__).parent / "data" / "metrics-and-health.json.gz"


def recorded() -> dict[str, Any]:
    """Return the whole record."""
    found: dict[str, Any] = json.loads(gzip.decompress(_FILE.read_bytes()))
    return found


def exchanges() -> list[dict[str, Any]]:
    """Return the recorded requests and responses."""
    found: list[dict[str, Any]] = recorded()["http"]
    return found


def reviews(kind: str) -> list[dict[str, Any]]:
    """Return the requests that created reviews of a kind, such as `tokenreviews`."""
    return [entry for entry in recorded()["requests"] if entry["path"].endswith(kind)]
