"""The recorded conversations of kube-scheduler 1.36 with its API server.

The files are as recorded, only that HTTP exchanges (`http`), which are not compared here, are left
out.
"""

from __future__ import annotations

import gzip
import json
import re
from pathlib import Path
from typing import Final

from .requests_on_objects import Plain

_DATA: Final = Path(__file__).parent / "data"
_TIME: Final = re.compile(r'"<time(\+\d+s)?>"')


def recorded_names() -> list[str]:
    """Return the names of the scenarios that are kept here."""
    return sorted(path.name.removesuffix(".json.gz") for path in _DATA.glob("*.json.gz"))


def read_record(name: str) -> Plain:
    """Return a record; its current times are some time, so that objects can be decoded."""
    text = gzip.decompress((_DATA / f"{name}.json.gz").read_bytes()).decode()
    record: Plain = json.loads(_TIME.sub('"2026-01-01T00:00:00Z"', text))
    return record
