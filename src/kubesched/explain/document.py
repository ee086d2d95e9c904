"""Document is what commands print with `-o json`, and what the Python API returns.

Its fields are published as JSON Schema (`kubesched schema`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from html import escape
from importlib import import_module
from types import ModuleType
from typing import Any, Final

import msgspec

API_VERSION: Final = "kubesched.dev/v1"
"""Of all documents."""

_ROWS_SHOWN: Final = 20
_EMPTY: Final[tuple[object, ...]] = (None, "", [], {})
"""Values that are left out of HTML."""
_RESOURCE: Final = "resource"
"""The field that names the resource of a record."""


class DocumentPart(msgspec.Struct, frozen=True, rename="camel", gc=False):
    """The base class of documents and of the records in them: JSON names are in camelCase."""


class Document(DocumentPart, frozen=True):
    """The base class of documents; `apiVersion` and `kind` follow from the class."""

    def to_dict(self) -> dict[str, Any]:
        """Return the document as plain values, as its JSON Schema describes it."""
        # Through JSON, which has lists only.
        fields: dict[str, Any] = msgspec.json.decode(msgspec.json.encode(self))
        return {"apiVersion": API_VERSION, "kind": type(self).__name__, **fields}

    def table(self, field: str) -> list[dict[str, Any]]:
        """Return a field that is a list of records, such as `placements`, as flat rows.

        Columns are named by their path: `resources.cpu.share`.

        Raises:
            KeyError: There is no such field.
            ValueError: It is not a list of records.
        """
        fields = self.to_dict()
        if field not in fields:
            known = ", ".join(name for name, value in fields.items() if isinstance(value, list))
            raise KeyError(f"{type(self).__name__} has no field {field}; its lists are {known}")
        records = fields[field]
        if not isinstance(records, list) or not all(isinstance(one, dict) for one in records):
            raise ValueError(f"{type(self).__name__}.{field} is not a list of records")
        return [dict(flat(one)) for one in records]

    def to_pandas(self, field: str) -> Any:
        """Return `table(field)` as a pandas DataFrame. Raises ImportError without pandas."""
        return _library("pandas").DataFrame(self.table(field))

    def to_polars(self, field: str) -> Any:
        """Return `table(field)` as a polars DataFrame. Raises ImportError without polars."""
        # Any row may be the first with a value or a fraction.
        return _library("polars").DataFrame(self.table(field), infer_schema_length=None)

    def _repr_html_(self) -> str:
        """Return the document as HTML, for notebooks: single values, then a table per list."""
        fields = self.to_dict()
        title = fields.pop("sentence", None) or fields["kind"]
        rows, tables = "", ""
        for name, value in fields.items():
            if _is_records(value):
                tables += f"<h5>{escape(name)} ({len(value)})</h5>{_table(self.table(name))}"
            elif isinstance(value, dict) and value:
                tables += f"<h5>{escape(name)}</h5>{_table([dict(flat(value))])}"
            elif value not in _EMPTY and name not in ("apiVersion", "kind"):
                rows += f"<tr><th>{escape(name)}</th><td>{escape(_text(value))}</td></tr>"
        return f"<h4>{escape(str(title))}</h4><table>{rows}</table>{tables}"


def _library(name: str) -> ModuleType:
    try:
        return import_module(name)
    except ImportError as error:
        raise ImportError(f"{name} is not installed; pip install {name}") from error


def _is_records(value: object) -> bool:
    return isinstance(value, list) and bool(value) and isinstance(value[0], dict)


def flat(
    record: Mapping[str, Any], names: Sequence[str] = (_RESOURCE,), prefix: str = ""
) -> Iterator[tuple[str, Any]]:
    """Yield the values of a record by path, with lists as they are.

    A list of records that all have one of the fields `names` is a record by that field's value.
    """
    for field, value in record.items():
        path = f"{prefix}{field}"
        if isinstance(value, dict):
            yield from flat(value, names, f"{path}.")
        elif _is_records(value) and (name := _naming_field(value, names)):
            for one in value:
                rest = {key: below for key, below in one.items() if key != name}
                yield from flat(rest, names, f"{path}.{one[name]}.")
        else:
            yield path, value


def _naming_field(records: Sequence[Mapping[str, Any]], names: Iterable[str]) -> str:
    return next((name for name in names if all(name in one for one in records)), "")


def _table(rows: Sequence[Mapping[str, Any]]) -> str:
    names = dict.fromkeys(
        name for row in rows for name, value in row.items() if value not in _EMPTY
    )
    # Long names are broken at their dots.
    heads = "".join(f"<th>{escape(name).replace('.', '.<wbr>')}</th>" for name in names)
    shown = "".join(
        f"<tr>{''.join(f'<td>{escape(_text(row.get(name)))}</td>' for name in names)}</tr>"
        for row in rows[:_ROWS_SHOWN]
    )
    left = len(rows) - _ROWS_SHOWN
    more = f"<p>and {left:,} more</p>" if left > 0 else ""
    return f"<table><tr>{heads}</tr>{shown}</table>{more}"


def _text(value: object) -> str:
    if value is None:
        return ""
    if isinstance(value, float):
        return f"{value:.0f}" if abs(value) >= 1000 else f"{value:.4g}"
    if isinstance(value, list):
        return ", ".join(map(_text, value))
    if isinstance(value, dict):
        return ", ".join(f"{name}: {_text(part)}" for name, part in value.items())
    return str(value)
