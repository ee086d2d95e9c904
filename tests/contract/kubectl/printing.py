"""The output of kubectl for a server's answers, as far as the server determines it.

Upstream: staging/src/k8s.io/kubectl/pkg/cmd/get, cli-runtime/pkg/printers (v1.36)
Differs:  rows are lists of cells, not lines; templates are not printed.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from itertools import groupby
from typing import Any, Final

Plain = dict[str, Any]
Rows = list[list[str]]

_PART_OF_AGE: Final = re.compile(r"\d+<age>")
_GAP: Final = re.compile(r"\s{2,}")
_GET: Final = re.compile(r"kubectl get (?!--raw)")


def prints_tables(command: str) -> bool:
    """Whether a command prints server-side tables."""
    if not _GET.match(command):
        return False
    return " -o " not in command.replace(" -o wide", "") and "--output" not in command


def rows_of_text(text: str) -> Rows:
    """Return the cells of printed rows that are not empty."""
    # Of some ages only the end was made a placeholder.
    calm = _PART_OF_AGE.sub("<age>", text)
    return [_GAP.split(line.strip()) for line in calm.splitlines() if line.strip()]


class Printed:
    """The printed rows of one command.

    Args:
        command: As it was typed.
        tables: Path and table of each answer, in order.
    """

    def __init__(self, command: str, tables: Sequence[tuple[str, Plain]]) -> None:
        self._command = command
        self._tables = [(path, table) for path, table in tables if table.get("kind") == "Table"]
        kinds = {_resource(path) for path, table in self._tables if table.get("rows")}
        self._names_kinds = len(kinds) > 1 or "--show-kind" in command or " all" in command

    def rows(self) -> Rows:
        """Return header and rows; objects of one kind have one header."""
        printed: Rows = []
        for kind, tables in groupby(self._tables, lambda one: _resource(one[0])):
            printed += self._block(kind, [table for _, table in tables])
        return [[cell for cell in row if cell] for row in printed]

    def _block(self, kind: str, tables: Sequence[Plain]) -> Rows:
        rows = [row for table in tables for row in table.get("rows", ())]
        if not rows:
            return []
        columns = next(table["columnDefinitions"] for table in tables)
        shown = [
            at
            for at, column in enumerate(columns)
            if not column["priority"] or "-o wide" in self._command
        ]
        header = self._around("NAMESPACE", [columns[at]["name"].upper() for at in shown], "LABELS")
        told = [self._row(kind, row, shown) for row in rows]
        return told if "--no-headers" in self._command else [header, *told]

    def _row(self, kind: str, row: Plain, shown: Iterable[int]) -> list[str]:
        cells = [_text(row["cells"][at]) for at in shown]
        if self._names_kinds:
            cells[0] = f"{kind}/{cells[0]}"
        metadata = row.get("object", {}).get("metadata", {})
        labels = ",".join(f"{name}={value}" for name, value in metadata.get("labels", {}).items())
        return self._around(metadata.get("namespace", ""), cells, labels or "<none>")

    def _around(self, namespace: str, cells: list[str], labels: str) -> list[str]:
        first = [namespace] if " -A" in self._command else []
        last = [labels] if "--show-labels" in self._command else []
        return [*first, *cells, *last]


def _resource(path: str) -> str:
    """Return kubectl's name of a resource: singular, with its group."""
    parts = path.split("/")
    group = parts[2] if parts[1] == "apis" else ""
    after = parts[parts.index("namespaces") + 2 :] if "namespaces" in parts else parts[3:]
    plural = after[0] if "namespaces" in parts or not group else parts[4]
    singular = plural.removesuffix("s")
    return f"{singular}.{group}" if group else singular


def _text(cell: object) -> str:
    if isinstance(cell, bool):
        return str(cell).lower()
    return "<none>" if cell is None else str(cell)


def names_of(answers: Sequence[tuple[str, Plain]]) -> list[str]:
    """Return the output of `-o name`."""
    return [
        f"{_resource(path)}/{item['metadata']['name']}"
        for path, answer in answers
        for item in answer.get("items", [answer])
    ]


def as_list(answer: Plain) -> Plain:
    """Return an answer as kubectl shows it: as a List without a kind of its own."""
    if "items" not in answer:
        return answer
    of = answer["kind"].removesuffix("List")
    items = [{"apiVersion": answer["apiVersion"], "kind": of, **item} for item in answer["items"]]
    return {"apiVersion": "v1", "kind": "List", "metadata": {"resourceVersion": ""}, "items": items}


def without_managers(value: Any) -> Any:
    """Return objects without managedFields."""
    if isinstance(value, dict):
        return {k: without_managers(v) for k, v in value.items() if k != "managedFields"}
    return [without_managers(one) for one in value] if isinstance(value, list) else value
