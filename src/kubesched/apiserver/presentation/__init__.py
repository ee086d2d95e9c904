"""Presentation of objects, lists and events: plain, as a table, or metadata only.

Tables are what `kubectl get` prints. The columns of built-in kinds are in `columns.txt`, those of
custom resources in their definitions; other kinds have a name and an age.

Upstream: staging/src/k8s.io/apiserver/pkg/endpoints/handlers/response.go, pkg/printers,
          apiserver/pkg/registry/rest/table.go (v1.36)
Differs:  a list of metadata without items is [], where upstream writes null. Of kinds that
          scheduling does not read, columns have other descriptions, and some are left out. An event
          whose series has no time or no count shows the event's own, where upstream shows <unknown>
          and 0. Reviews of access are sent as they are where a table is asked for; upstream
          refuses that.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from functools import cache
from importlib.resources import files
from typing import Any, Final, NamedTuple, TypeAlias

import msgspec

from kubesched.api.media_types import JSON, YAML, accepted_types
from kubesched.api.meta import LabelSelector
from kubesched.api.requirements import SelectorError
from kubesched.api.selectors import compile_label_selector
from kubesched.apiserver.listing import ObjectList
from kubesched.apiserver.plain import Plain, encode, get, only
from kubesched.apiserver.presentation.cells import (
    CELLS,
    NONE,
    UNKNOWN,
    join,
    modes_text,
    pod_row_conditions,
    since,
)
from kubesched.apiserver.resources import Resource
from kubesched.apiserver.status import StatusError, bad_request, no_representation, not_acceptable
from kubesched.apiserver.stored_object import EVENTS_GROUP, StoredObject, to_core

_META_GROUP: Final = "meta.k8s.io"


class Presentation:
    """The form of the answers to one client; `is_plain` if objects are sent as they are."""

    def __init__(
        self,
        resource: Resource,
        media_type: MediaType,
        include_object: str,
        now: Callable[[], datetime],
    ) -> None:
        """Set up; `include_object` is what rows of a table contain, "" for metadata.

        Raises StatusError if there is no such form.
        """
        if media_type.kind == "Table" and include_object not in ("", "Metadata", "None", "Object"):
            raise bad_request(
                "Unable to convert to Table as requested: includeObject: Invalid value: "
                f"\"{include_object}\": must be 'Metadata', 'Object', 'None', or empty"
            )
        self._resource = resource
        self._kind = media_type.kind
        self._api_version = f"{_META_GROUP}/{media_type.version or 'v1'}"
        self._include = include_object or "Metadata"
        self._now = now
        self.is_plain = not media_type.kind

    def check_single(self) -> None:
        """Raise StatusError if the form is one of lists."""
        if self._kind == "PartialObjectMetadataList":
            raise self._mismatch("not a list", "")

    def one(self, stored: StoredObject) -> bytes:
        """Return an object."""
        if self.is_plain:
            return stored.json(self._resource)
        return encode(self.transformed(stored.form(self._resource)))

    def transformed(self, plain: Plain, *, has_columns: bool = True) -> Plain:
        """Return one object as a table, with or without column definitions, or as its metadata."""
        if self._kind == "PartialObjectMetadata":
            return _metadata_only(plain, self._api_version)
        self.check_single()
        table = self._table([plain], only(plain["metadata"], "resourceVersion"))
        if not has_columns:
            table["columnDefinitions"] = None
        return table

    def many(self, found: ObjectList) -> bytes:
        """Return a list."""
        if self.is_plain:
            return self._plain_list(found)
        items = [stored.form(self._resource) for stored in found.items]
        if self._kind == "Table":
            return encode(self._table(items, found.metadata()))
        if self._kind != "PartialObjectMetadataList":
            raise self._mismatch("a list", "List")
        return encode(
            {
                "kind": "PartialObjectMetadataList",
                "apiVersion": self._api_version,
                "metadata": found.metadata(),
                "items": [_metadata_only(item, self._api_version) for item in items],
            }
        )

    def _mismatch(self, what: str, suffix: str) -> StatusError:
        package = self._resource.group.partition(".")[0] or "core"
        return StatusError(
            406,
            "NotAcceptable",
            f"you requested {self._kind}, but the requested object is {what} "
            f"(*{package}.{self._resource.kind}{suffix})",
        )

    def _plain_list(self, found: ObjectList) -> bytes:
        resource, metadata = self._resource, found.metadata()
        if resource.definition is None:
            items = [stored.item(resource) for stored in found.items]
        else:
            # Custom resources keep their kind, and their lists say that they are whole.
            items = [stored.json(resource) for stored in found.items]
            metadata.setdefault("continue", "")
        return b"".join(
            (
                f'{{"kind":"{resource.kind}List","apiVersion":"{resource.api_version}",'.encode(),
                b'"metadata":',
                encode(metadata),
                b',"items":[',
                b",".join(items),
                b"]}",
            )
        )

    def _table(self, items: Sequence[Plain], metadata: Plain) -> Plain:
        """Return a table with a row for each object; `metadata` is that of the list."""
        columns, now = columns_of(self._resource), self._now()
        return {
            "kind": "Table",
            "apiVersion": self._api_version,
            "metadata": metadata,
            "columnDefinitions": [column.definition for column in columns],
            "rows": [self._row(item, columns, now) for item in items],
        }

    def _row(self, item: Plain, columns: Sequence[TableColumn], now: datetime) -> Plain:
        shown = to_core(item) if self._resource.group == EVENTS_GROUP else item
        row: Plain = {"cells": [column.cell(shown, now) for column in columns]}
        if self._resource.group_resource == "pods" and (ends := pod_row_conditions(item)):
            row["conditions"] = ends
        row["object"] = item if self._include == "Object" else None
        if self._include == "Metadata":
            row["object"] = _metadata_only(item, self._api_version)
        return row


# Media types that clients accept.

_ACCEPTED: Final = (JSON, YAML, "*/*")
_TRANSFORMED: Final = ("Table", "PartialObjectMetadata", "PartialObjectMetadataList")


class MediaType(msgspec.Struct, frozen=True):
    """One form that a client takes, such as `application/json`.

    The answer is turned into an object of the kind, "" for none.
    """

    name: str
    kind: str = ""
    group: str = ""
    version: str = ""


PLAIN: Final = MediaType(JSON)


def parse_accept(header: str) -> list[MediaType]:
    """Return what an `Accept` header names, best first."""
    return [
        MediaType(
            name, kind=values.get("as", ""), group=values.get("g", ""), version=values.get("v", "")
        )
        for name, values in accepted_types(header)
    ]


def prefers_yaml(header: str) -> bool:
    """Return whether a client prefers YAML to JSON."""
    if YAML not in header:
        return False
    best = next((one for one in parse_accept(header) if one.name in _ACCEPTED), PLAIN)
    return best.name == YAML


def negotiate(header: str) -> MediaType:
    """Return the form of an answer; raises StatusError if the client accepts none."""
    if header in {"", "application/json", "*/*"}:
        return PLAIN
    accepted = [one for one in parse_accept(header) if one.name in _ACCEPTED]
    if not accepted:
        raise no_representation()
    for one in accepted:
        if not one.kind:
            return PLAIN
        is_known = one.kind in _TRANSFORMED and one.group == _META_GROUP
        if is_known and one.version in ("v1", "v1beta1"):
            return one
    raise not_acceptable()


# Tables.

Cell: TypeAlias = Callable[[Plain, datetime], Any]
_EVERY: Final = "@every"
_DEFAULT: Final = "@default"


class TableColumn(NamedTuple):
    """A column: its definition, as tables show it, and what returns the cell of an object."""

    definition: Plain
    cell: Cell


def _metadata_only(value: Plain, api_version: str) -> Plain:
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
    ageless = []
    kind = ""
    for line in text.splitlines():
        if line.startswith("  "):
            tables[kind] += (_column(line, shared),)
        elif line.startswith("@") and " = " in line:
            name, _, description = line.partition(" = ")
            shared[name] = description
        elif line and not line.startswith("#"):
            kind, _, flag = line.partition(" ")
            tables[kind] = ()
            ageless += [kind] if flag else []
    of_name, of_age = tables[_EVERY]
    for kind, own in tables.items():
        names = [column.definition["name"] for column in own]
        always = sum(not column.definition["priority"] for column in own)
        tables[kind] = (
            *(() if "Name" in names else (of_name,)),
            *own[:always],
            *(() if "Age" in names or kind in ageless else (of_age,)),
            *own[always:],
        )
    return tables


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
    age = {"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"}
    columns = [_tables()[_EVERY][0]]
    for one in resource.defined_version.get("additionalPrinterColumns") or (age,):
        definition = {
            "name": one["name"],
            "type": one["type"],
            "format": one.get("format", ""),
            "description": one.get("description", ""),
            "priority": one.get("priority", 0),
        }
        columns.append(TableColumn(definition, _defined_cell(one["jsonPath"], one["type"])))
    return tuple(columns)


_STEP: Final = re.compile(
    r"""
    \.(?P<name>(?:\\.|[^.\[\\])+)                 # .spec
    | \[(?P<mark>['"])(?P<quoted>.*?)(?P=mark)\]  # ['example.com/team']
    | \[(?P<position>-?\d+):?\]                   # [0], [-1:]
    | \[\*\]
    | \[\?\(\s*@\.(?P<field>\w+)\s*==             # [?(@.type=="Ready")]
      \s*(?P<quote>['"])(?P<text>.*?)(?P=quote)\s*\)\]
    """,
    re.VERBOSE,
)
"""A step of a JSONPath."""
_TYPES: Final = {"integer": int, "number": int | float, "boolean": bool}


def _defined_cell(path: str, kind: str) -> Cell:
    """Return the function of a cell that shows the first value at a JSONPath.

    The cell stays empty if the path has steps of other kinds than those of `_STEP`.
    """
    steps = list(_STEP.finditer(path))
    if "".join(step[0] for step in steps) != path:
        return lambda _value, _now: None

    def cell(value: Plain, now: datetime) -> Any:
        values: list[Any] = [value]
        for step in steps:
            values = _after(step, values)
        return _shown(kind, values[0], now) if values else None

    return cell


def _after(step: re.Match[str], values: list[Any]) -> list[Any]:
    """Return the values to which a step leads from any of these."""
    if name := step["name"] or step["quoted"]:
        name = name.replace("\\", "")
        return [one[name] for one in values if isinstance(one, dict) and name in one]
    items = [item for one in values if isinstance(one, list) for item in one]
    if step["field"]:
        return [item for item in items if get(item, step["field"]) == step["text"]]
    return items[int(step["position"]) :][:1] if step["position"] else items


def _shown(kind: str, value: Any, now: datetime) -> Any:
    if kind == "string" and not isinstance(value, str):
        return encode(value).decode()
    if kind == "date" and value is not None:
        try:
            return since(value, now)
        except (TypeError, ValueError):
            return "<invalid>"
    return value if isinstance(value, _TYPES.get(kind, object)) else None


# Cells.

_ZEROS: Final[Mapping[str, Any]] = {"boolean": False, "integer": 0}


def _cell(text: str, kind: str) -> Cell:
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
    return tuple(filter(None, path.split(".")))


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
    "path": lambda *names: "/".join(name or "" for name in names) if any(names) else "",
    "ratio": lambda one, other: f"{one or 0}/{other or 0}",
    "selector": _selector,
    "times": lambda *found: next(filter(None, found), 1),
    "trimmed": lambda found: (found or "").strip(),
}
"""What cells show of the values at their paths."""
