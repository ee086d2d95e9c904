"""Rows of a table in a file, CSV or Parquet, by column; errors name file, line and column.

CSV may be compressed; its line of columns comes first, and blank lines are skipped.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

from kubesched.api.codec import DecodeError, Source
from kubesched.api.decode import decompressed

_AMOUNT_MAX: Final = 10**15
# RFC 3339 times end with the year 9999.
_SECONDS_MAX: Final = 200_000_000_000


def read_file(path: str) -> bytes:
    """Return the content of a file; raises DecodeError if it cannot be read."""
    try:
        return Path(path).read_bytes()
    except OSError as error:
        raise DecodeError(Source(path, 0), f"it cannot be read: {error.strerror}") from None
    except ValueError as error:
        raise DecodeError(Source(path, 0), f"it is no file name: {error}") from None


def rows_of(data: bytes, file: str) -> Iterator[tuple[int, list[str]]]:
    """Yield the line number and values of each row; the first has the columns' names.

    Raises:
        DecodeError: if `data` is no such table.
    """
    if data.startswith(b"PAR1"):
        yield from _parquet_rows(data, file)
        return
    try:
        text = decompressed(data, file).decode("utf-8-sig")
    except UnicodeDecodeError as error:
        problem = f"it is no UTF-8: {error.reason} (byte {error.start})"
        raise DecodeError(Source(file, 0), problem) from None
    reader = csv.reader(io.StringIO(text, newline=""), strict=True)
    try:
        for values in reader:
            if values:
                yield reader.line_num, [value.strip() for value in values]
    except csv.Error as error:
        raise DecodeError(LineSource(file, reader.line_num), str(error)) from None


def _parquet_rows(data: bytes, file: str) -> Iterator[tuple[int, list[str]]]:
    """Yield the columns' names, then the rows, with the values as they are written in CSV."""
    try:
        import polars  # noqa: ICN001, PLC0415 - optional, and only for these files
    except ImportError:
        words = "Parquet needs polars; run: pip install 'kubesched[sweep]', or write CSV"
        raise DecodeError(Source(file, 0), words) from None
    try:
        table = polars.read_parquet(io.BytesIO(data))
    except (polars.exceptions.PolarsError, OSError) as error:
        raise DecodeError(Source(file, 0), f"it is no Parquet file: {error}") from None
    yield 1, table.columns
    for line, values in enumerate(table.iter_rows(), 2):
        yield line, [_value_text(value) for value in values]


def _value_text(value: object) -> str:
    if value is None:
        return ""
    return str(int(value)) if isinstance(value, float) and value.is_integer() else str(value)


def check_columns(
    header: Sequence[str], required: Sequence[str], known: Sequence[str], file: str, expected: str
) -> None:
    """Check the names of columns; `expected` tells which there are.

    Raises:
        DecodeError: if columns are missing, unknown or there twice.
    """
    missing = [name for name in required if name not in header]
    unknown = [repr(name[:40]) for name in header if name not in known]
    twice = sorted({name for name in header if header.count(name) > 1})
    for names, words in ((missing, "missing"), (unknown, "unknown"), (twice, "there twice")):
        if names:
            problem = f"column {', '.join(names[:5])} is {words}; {expected}"
            raise DecodeError(LineSource(file, 1), problem)


class LineSource(Source, frozen=True):
    """A line of a file; the document number is the line number."""

    def __str__(self) -> str:
        return f"{self.file}: line {self.document}"


class TraceRecord:
    """One row by column; errors name file, line and column."""

    def __init__(self, file: str, line: int, columns: Sequence[str], values: Sequence[str]) -> None:
        self.source = LineSource(file, line)
        if len(values) != len(columns):
            problem = f"{len(values)} values for {len(columns)} columns"
            raise DecodeError(self.source, problem)
        self._columns = columns
        self.values: Mapping[str, str] = dict(zip(columns, values, strict=True))

    def text(self, column: str) -> str:
        """Return a value; empty if the column is missing."""
        return self.values.get(column, "")

    def name(self, column: str) -> str:
        """Return a name, which must not be empty."""
        found = self.values[column]
        if not found:
            raise self.error(column, "a name is required")
        return found

    def amount(self, column: str) -> int:
        """Return a non-negative integer."""
        text = self.values[column]
        if not (text.isascii() and text.isdigit()) or len(text) > 20:
            raise self.error(column, f"a whole number is required, not {text[:40]!r}")
        found = int(text)
        if found > _AMOUNT_MAX:
            raise self.error(column, f"{text} is more than anything has")
        return found

    def seconds(self, column: str) -> int:
        """Return a time in seconds; 0 if the column is missing or empty."""
        if not self.text(column):
            return 0
        found = self.amount(column)
        if found > _SECONDS_MAX:
            raise self.error(column, f"{found} seconds are too many")
        return found

    def error(self, column: str, problem: str) -> DecodeError:
        """Return the error of a value."""
        at = self._columns.index(column) + 1
        return DecodeError(self.source, problem, path=f"column {at} ({column})")


def checked_once(records: Iterable[TraceRecord], column: str) -> Iterator[TraceRecord]:
    """Yield the records.

    Raises:
        DecodeError: if two have the same name.
    """
    lines: dict[str, Source] = {}
    for record in records:
        name = record.name(column)
        if name in lines:
            raise record.error(column, f"{name!r} is in {lines[name]} already; remove one")
        lines[name] = record.source
        yield record
