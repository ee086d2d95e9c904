"""The recorded conversations of kube-scheduler 1.36 with its API server.

The files are as recorded, only that the exchanges of the secure port (`http` of
`metrics-and-health`), which are compared elsewhere, are left out.
"""

from __future__ import annotations

import gzip
import json
import re
from pathlib import Path
from typing import Final

from .in_process_connection import Plain

_DATA: Final = Path(__file__).parent / "data"
_TIME: Final = re.compile(r'"<time(\+\d+s)?>"')
_MICROTIME: Final = "<microtime>"


def recorded_names() -> list[str]:
    """Return the names of the scenarios in this directory."""
    return sorted(path.name.removesuffix(".json.gz") for path in _DATA.glob("*.json.gz"))


def read_record(name: str) -> Plain:
    """Return a record; a fixed time replaces current ones, so that objects can be decoded."""
    text = gzip.decompress((_DATA / f"{name}.json.gz").read_bytes()).decode()
    text = _TIME.sub('"2026-01-01T00:00:00Z"', text)
    record: Plain = json.loads(text.replace(_MICROTIME, "2026-01-01T00:00:00.000000Z"))
    return record
