"""Tables: objects as rows of cells, which is what `kubectl get` prints.

The columns of built-in kinds are in `columns.txt`, those of custom resources in their definitions;
other kinds have a name and an age.

Upstream: pkg/printers, apiserver/pkg/registry/rest/table.go (v1.36)
Differs:  columns of kinds that scheduling does not read have other descriptions. An event whose
          series has no time or no count shows the event's own; upstream shows <unknown> and 0.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from functools import cache
from importlib.resources import files
from typing import Any, Final, NamedTuple, TypeAlias

import msgspec

from kubesched.api.meta import LabelSelector
from kubesched.api.requirements import SelectorError
from kubesched.api.selectors import compile_label_selector
from kubesched.apiserver.plain import Plain, get
from kubesched.apiserver.resources import Resource
from kubesched.apiserver.stored_object import EVENTS_GROUP, to_core
from kubesched.apiserver.tables.cells import (
    CELLS,
    NONE,
    UNKNOWN,
    join,
    modes_text,
    pod_row_conditions,
    since,
)

__all__ = ["columns_of", "table_of"]

Cell: TypeAlias = Callable[[Plain, datetime], Any]
_DEFAULT: Final = "@default"


class TableColumn(NamedTuple):
    """A column: its definition, as tables show it, and what returns the cell of an object."""

    definition: Plain
    cell: Cell


def table_of(
    resource: Resource,
    objects: Sequence[Plain],
    list_metadata: Plain,
    now: datetime,
    include_object: str = "Metadata",
    version: str = "v1",
) -> Plain:
    """Return a table with a row for each object.

    `now` is needed for ages. Rows carry `Metadata`, the `Object` or `None`. `version` is that of
    the group `meta.k8s.io`.
    """
    api_version = f"meta.k8s.io/{version}"
    columns = columns_of(resource)
    rows = []
    for value in objects:
        shown = to_core(value) if resource.group == EVENTS_GROUP else value
        row: Plain = {"cells": [column.cell(shown, now) for column in columns]}
        if resource.group_resource == "pods" and (ends := pod_row_conditions(value)):
            row["conditions"] = ends
        row["object"] = _included(value, include_object, api_version)
        rows.append(row)
    return {
        "kind": "Table",
        "apiVersion": api_version,
        "metadata": list_metadata,
        "columnDefinitions": [column.definition for column in columns],
        "rows": rows,
    }


def _included(value: Plain, include_object: str, api_version: str) -> Plain | None:
    if include_object == "None":
        return None
    if include_object == "Object":
        return value
    metadata = value.get("metadata", {})
    return {"kind": "PartialObjectMetadata", "apiVersion": api_version, "metadata": metadata}


def columns_of(resource: Resource) -> tuple[TableColumn, ...]:
    """Return the columns of a kind."""
    if resource.definition is not None:
        return _defined_columns(resource)
    group = "" if resource.group == EVENTS_GROUP else resource.group
    qualified = f"{resource.kind}.{group}" if group else resource.kind
    tables = _tables()
    return tables.get(qualified, tables[_DEFAULT])


@cache
def _tables() -> Mapping[str, tuple[TableColumn, ...]]:
    text = files(__package__).joinpath("columns.txt").read_text(encoding="utf-8")
    shared: dict[str, str] = {}
    tables: dict[str, tuple[TableColumn, ...]] = {}
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
    first = tables[_DEFAULT][:1]
    return {
        kind: columns if _is_named(columns) else first + columns for kind, columns in tables.items()
    }


def _is_named(columns: Sequence[TableColumn]) -> bool:
    return any(column.definition["name"] == "Name" for column in columns)


def _column(line: str, shared: Mapping[str, str]) -> TableColumn:
    name, form, priority, cell, description = (
        part.strip() for part in line.split(" |", maxsplit=4)
    )
    kind, _, shown_as = form.partition("/")
    definition = {
        "name": name,
        "type": kind,
        "format": shown_as,
        "description": json.loads(f'"{shared.get(description, description)}"'),
        "priority": int(priority),
    }
    return TableColumn(definition, _cell(cell, kind))


@cache
def _defined_columns(resource: Resource) -> tuple[TableColumn, ...]:
    """Return the columns that a CustomResourceDefinition lists, or the age."""
    assert resource.definition is not None, "asked before"
    name = _tables()[_DEFAULT][0]
    listed = next(
        version.get("additionalPrinterColumns") or ()
        for version in resource.definition["spec"]["versions"]
        if version["name"] == resource.version
    )
    age = {"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"}
    columns = [name]
    for one in listed or (age,):
        definition = {
            "name": one["name"],
            "type": one["type"],
            "format": one.get("format", ""),
            "description": one.get("description", ""),
            "priority": one.get("priority", 0),
        }
        word = "age " if one["type"] == "date" else ""
        columns.append(TableColumn(definition, _cell(word + one["jsonPath"], one["type"])))
    return tuple(columns)


# Cells.

_ZEROS: Final[Mapping[str, Any]] = {"boolean": False, "integer": 0}


def _cell(text: str, kind: str) -> Cell:
    """Return the function of a cell in `columns.txt`."""
    if text.startswith("@"):
        return CELLS[text[1:]]
    if text.startswith("."):
        path, _, default = text.partition(" or ")
        return _at(_parts(path), "string" if default else kind, default or _ZEROS.get(kind, ""))
    word, _, paths = text.partition(" ")
    if word == "age":
        path, has_default, default = paths.partition(" or")
        times = [_parts(one) for one in path.split()]
        return _age(times, default.strip() if has_default else UNKNOWN)
    show, found_at = _WORDS[word], [_parts(path) for path in paths.split()]
    return lambda value, _now: show(*(get(value, *path) for path in found_at))


def _parts(path: str) -> tuple[str, ...]:
    r"""Return the names in a path such as `.metadata.labels.example\.com/team`."""
    parts = path.replace("\\.", "\0").split(".")
    return tuple(part.replace("\0", ".") for part in parts if part)


def _at(path: tuple[str, ...], kind: str, default: Any) -> Cell:
    def cell(value: Plain, _now: datetime) -> Any:
        found = get(value, *path)
        if found is None or found == "":
            return default
        return str(found) if kind == "string" else found

    return cell


def _age(paths: Sequence[tuple[str, ...]], default: str) -> Cell:
    def cell(value: Plain, now: datetime) -> str:
        time = next(filter(None, (get(value, *path) for path in paths)), None)
        return since(time, now) if time else default

    return cell


def _selector(selector: Plain | None) -> str:
    if selector is None:
        return NONE
    try:
        return str(compile_label_selector(msgspec.convert(selector, LabelSelector))) or NONE
    except SelectorError:
        return "<error>"


def _of_containers(containers: Sequence[Plain] | None, name: str) -> str:
    return ",".join(container.get(name, "") for container in containers or ())


_WORDS: Final[Mapping[str, Callable[..., Any]]] = {
    "count": lambda *found: sum(len(one or ()) for one in found),
    "flag": bool,
    "images": lambda found: _of_containers(found, "image"),
    "join": lambda found: ",".join(found or ()) or NONE,
    "labels": join,
    "modes": modes_text,
    "names": lambda found: _of_containers(found, "name"),
    "number": lambda found: found or 0,
    "ratio": lambda one, other: f"{one or 0}/{other or 0}",
    "selector": _selector,
    "times": lambda *found: next(filter(None, found), 1),
}
"""What cells show of the values at their paths."""
