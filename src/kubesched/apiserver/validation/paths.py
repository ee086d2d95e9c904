"""Paths of files: whether they stay below where they begin.

Upstream: pkg/apis/core/validation/validation.go (validateLocalDescendingPath and around, v1.36)
Differs:  nothing.
"""

from __future__ import annotations

from collections.abc import Iterator

from kubesched.apiserver.field_fault import FieldFault, invalid


def backstep_faults(text: str, path: str) -> Iterator[FieldFault]:
    """Yield whether a path climbs."""
    if ".." in text.split("/"):
        yield invalid(path, text, "must not contain '..'")


def descending_path_faults(text: str, path: str) -> Iterator[FieldFault]:
    """Yield whether a path begins at the root, or climbs."""
    if text.startswith("/"):
        yield invalid(path, text, "must be a relative path")
    yield from backstep_faults(text, path)


def local_path_faults(text: str, path: str) -> Iterator[FieldFault]:
    """Yield whether a path leaves its directory, or has a name that is reserved."""
    yield from descending_path_faults(text, path)
    if text.startswith("..") and not text.startswith("../"):
        yield invalid(path, text, "must not start with '..'")
