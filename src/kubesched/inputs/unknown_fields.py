"""Warnings about unknown fields of manifests, such as `nodeSelecter`.

Objects with a uid come from an API server and are not checked.

Upstream: staging/src/k8s.io/apiserver/pkg/endpoints/handlers/rest.go, field validation (v1.36)
Differs:  large files, standard input and repeated fields are not checked; warnings, not errors.
"""

from __future__ import annotations

import gzip
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, Final

import msgspec
import yaml

from kubesched.api.decode import files_in

# Larger files are dumps, not manifests, and are not read twice.
_BYTES_MAX: Final = 256 << 10
_WARNINGS_MAX: Final = 10
_Loader: Final = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


def unknown_fields(paths: Iterable[Path]) -> list[str]:
    """Return a line for each unknown field of objects without a uid.

    Args:
        paths: Files and directories; errors in reading them are ignored here.
    """
    found = [
        f"{file}: {kind} {name}: unknown field {field}"
        for path in paths
        for file in files_in(path)
        for item in _items(file)
        for kind, name, field in _of_object(item)
    ]
    more = len(found) - _WARNINGS_MAX
    return [*found[:_WARNINGS_MAX], *([f"and {more} more unknown fields"] if more > 0 else [])]


def _items(file: Path) -> Iterator[dict[str, Any]]:
    """Yield the objects of a small file; nothing if it cannot be parsed."""
    try:
        if not file.is_file() or file.stat().st_size > _BYTES_MAX:
            return
        data = file.read_bytes()
        text = gzip.decompress(data) if file.name.endswith(".gz") else data
        if text.lstrip()[:1] in (b"{", b"["):
            documents: list[Any] = [msgspec.json.decode(text)]
        else:
            documents = list(yaml.load_all(text, _Loader))
    except (OSError, EOFError, ValueError, RecursionError, yaml.YAMLError):
        return
    for document in documents:
        for item in document if isinstance(document, list) else [document]:
            if isinstance(item, dict):
                yield from _listed(item)


def _listed(item: dict[str, Any]) -> Iterator[dict[str, Any]]:
    items = item.get("items")
    if not str(item.get("kind", "")).endswith("List") or not isinstance(items, list):
        yield item
        return
    for each in items:
        if isinstance(each, dict):
            yield each


def _of_object(item: dict[str, Any]) -> Iterator[tuple[str, str, str]]:
    kind, version, metadata = item.get("kind"), item.get("apiVersion"), item.get("metadata")
    if not (isinstance(kind, str) and isinstance(version, str) and isinstance(metadata, dict)):
        return
    if metadata.get("uid"):
        return
    # Imported late: dumps do not need the schema tables.
    from kubesched.apiserver.schema import unknown_field_paths

    group, _, number = version.rpartition("/")
    place = "/".join(str(metadata[part]) for part in ("namespace", "name") if metadata.get(part))
    for path in unknown_field_paths(group, number, kind, item):
        yield kind, place, path
