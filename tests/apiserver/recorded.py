"""Recorded exchanges with kube-apiserver 1.36, and how results are compared with them."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

_DATA = Path(__file__).parent / "data"
_SERVERS_OWN = frozenset(("resourceVersion", "generation", "creationTimestamp", "managedFields"))
_EMPTY: tuple[Any, ...] = ({}, [], None, "", False, 0)


def read(name: str) -> Any:
    """Return the decoded data of a file."""
    return json.loads(gzip.decompress((_DATA / f"{name}.json.gz").read_bytes()))


def differences(recorded: Any, actual: Any, path: str = "") -> Iterator[str]:
    """Yield the differences between a patched object and the one that the server stored.

    The server adds defaults and leaves out what is empty, so neither counts.
    """
    if isinstance(recorded, dict) and isinstance(actual, dict):
        for name, value in actual.items():
            if path == ".metadata" and name in _SERVERS_OWN:
                continue
            if name in recorded:
                yield from differences(recorded[name], value, f"{path}.{name}")
            elif value not in _EMPTY:
                yield f"{path}.{name} is {value!r}, recorded nothing"
    elif isinstance(recorded, list) and isinstance(actual, list) and len(recorded) == len(actual):
        for at, (one, other) in enumerate(zip(recorded, actual, strict=True)):
            yield from differences(one, other, f"{path}[{at}]")
    elif recorded != actual:
        yield f"{path} is {actual!r}, recorded {recorded!r}"


def lost(before: Any, patch: Any, actual: Any, path: str = "") -> Iterator[str]:
    """Yield fields of an object that were removed although no patch mentions them."""
    if isinstance(before, dict) and isinstance(actual, dict):
        for name, value in before.items():
            inner = patch.get(name, {}) if isinstance(patch, dict) else None
            if inner is None:
                continue
            if name not in actual:
                yield f"{path}.{name}"
            elif isinstance(inner, dict) and not any(key.startswith("$") for key in inner):
                yield from lost(value, inner, actual[name], f"{path}.{name}")
