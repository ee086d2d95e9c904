"""The columns of each kind's table.

Upstream: pkg/printers/internalversion/printers.go, apiserver/pkg/registry/rest/table.go (v1.36)
Differs:  kinds that scheduling has little to do with describe some columns in other words.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import cache
from importlib.resources import files
from typing import Any

from kubesched.apiserver.plain import Plain

__all__ = ["columns_of", "kinds_with_columns"]

_DEFAULT = "@default"


@cache
def _tables() -> dict[str, tuple[Plain, ...]]:
    text = files(__package__).joinpath("columns.txt").read_text(encoding="utf-8")
    shared: dict[str, str] = {}
    tables: dict[str, tuple[Plain, ...]] = {}
    kind = ""
    for line in text.splitlines():
        if line.startswith("  "):
            tables[kind] += (_column(line, shared),)
        elif line.startswith("@") and " = " in line:
            name, _, description = line.partition(" = ")
            shared[name] = description
        elif line and not line.startswith("#"):
            kind = line
            tables[kind] = ()
    return tables


def _column(line: str, shared: dict[str, str]) -> Plain:
    name, type_and_format, priority, *rest = line.strip().split(" |", maxsplit=3)
    description = "".join(rest).strip()
    kind, _, shown_as = type_and_format.strip().partition("/")
    return {
        "name": name,
        "type": kind,
        "format": shown_as,
        "description": json.loads(f'"{shared.get(description, description)}"'),
        "priority": int(priority),
    }


def columns_of(group: str, kind: str) -> list[dict[str, Any]]:
    """Return the columns of a kind; kinds that have none of their own show their creation."""
    qualified = f"{kind}.{group}" if group else kind
    tables = _tables()
    return [dict(column) for column in tables.get(qualified, tables[_DEFAULT])]


def kinds_with_columns() -> Iterator[tuple[str, str]]:
    """Yield group and kind of all that have columns of their own."""
    for qualified in _tables():
        if qualified != _DEFAULT:
            kind, _, group = qualified.partition(".")
            yield group, kind
