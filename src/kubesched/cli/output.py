"""Results on stdout: JSON, YAML, or text with tables, in colour on a terminal only."""

from __future__ import annotations

import os
import re
import shutil
import sys
import textwrap
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Final, Literal, NamedTuple, TypeAlias, TypeVar

import click
import msgspec
from rich.cells import cell_len

from kubesched.api.yaml_syntax import dump
from kubesched.cli.errors import naming, printable
from kubesched.cli.files import write_file
from kubesched.cli.streams import stdout
from kubesched.explain.document import Document

D = TypeVar("D", bound=Document)

OutputFormat: TypeAlias = Literal["table", "json", "yaml"]

ITEM: Final = 2
DETAIL: Final = 6
"""Indents of the items of a section, and of details about them."""
_GAP: Final = "  "
_TERMINAL_GAP: Final = 3
_PAGE_WIDTH: Final = 80
_HEADING_WIDTH: Final = 10
_NAME_WIDTH: Final = 13
"""Letters in a line of a heading, and of a name in a cell, of a table that is too wide."""


def write_document(document: Document, output: OutputFormat) -> None:
    """Write a result as JSON or YAML; keys are in the order of its fields."""
    whole = document.to_dict()
    if output == "yaml":
        _write(dump(whole, sort_keys=False))
    else:
        write_line(msgspec.json.format(msgspec.json.encode(whole).decode(), indent=2))


def write_answer(
    document: D,
    output: OutputFormat,
    write: Callable[[Writer, D], object],
    html: Path | None = None,
) -> None:
    """Write a result in the chosen format, where `write` writes text, and as a page if asked to."""
    write_page(html, document)
    if output == "table":
        write(writer(), document)
    else:
        write_document(document, output)


def write_page(file: Path | None, *documents: Document) -> None:
    """Write documents as one HTML page, if there is a file for it.

    Raises OSError if it cannot be written; then it is as before.
    """
    if file is None:
        return
    from kubesched.page.render import render

    page = render(documents, f"kubesched {click.get_current_context().info_name}")
    write_file(file, page.encode())


def write_line(text: str) -> None:
    """Write a line to stdout. Raises BrokenPipeError if the reader closed the pipe."""
    _write(f"{text}\n")


def _write(text: str) -> None:
    with naming("stdout"):
        stdout().write(text)


class TextTable(NamedTuple):
    """Headings, rows of cells, and the headings of numbers, which are aligned to the right."""

    headings: Sequence[str]
    rows: Sequence[Sequence[str]]
    numbers: Collection[str] = ()


class Writer:
    """Writes a report as aligned text without colours.

    Paragraphs fit a terminal, or COLUMNS; in other pipes and files each is one line, so that grep
    finds whole sentences. Words are not broken, and tables are as wide as they are.
    """

    def headline(self, text: str) -> None:
        """Write the summary sentence."""
        self._wrap(text, style="bold")

    def heading(self, text: str) -> None:
        """Write the heading of a section."""
        self.line()
        self._wrap(text, style="bold cyan")

    def line(self, text: str = "", *, indent: int = 0, dim: bool = False) -> None:
        """Write a paragraph."""
        self._wrap(text, indent, "dim" if dim else "")

    def item(self, text: str, *, dim: bool = False) -> None:
        """Write an item of a section."""
        self.line(text, indent=ITEM, dim=dim)

    def command(self, text: str) -> None:
        """Write an item that is to be copied: it is not wrapped."""
        self._write(" " * ITEM + printable(text), "")

    def detail(self, text: str) -> None:
        """Write a paragraph about the item above it."""
        self.line(text, indent=DETAIL, dim=True)

    def _wrap(self, text: str, indent: int = 0, style: str = "") -> None:
        """Write a paragraph; what is indented hangs, so that items are told apart."""
        lines = textwrap.wrap(
            printable(text),
            page_width() if stdout().isatty() or _columns() else sys.maxsize,
            initial_indent=" " * indent,
            subsequent_indent=" " * (indent + ITEM if indent else 0),
            break_long_words=False,
            break_on_hyphens=False,
        )
        for line in lines or [""]:
            self._write(line, style)

    def _write(self, line: str, style: str) -> None:
        """Write a line; `style` is for terminals."""
        write_line(line)

    def section(
        self, heading: str, items: Sequence[str], most: int | None = None, remedy: str = ""
    ) -> None:
        """Write the first items below a heading, and how many more there are; nothing for none."""
        if not items:
            return
        self.heading(heading)
        for text in items[:most]:
            self.item(text)
        if most is not None:
            self.rest(len(items) - most, remedy)

    def notes(self, notes: Iterable[str]) -> None:
        """Write what was assumed."""
        for note in notes:
            self.line(f"Note: {note}", dim=True)

    def rest(self, left: int, remedy: str = "", *, indent: int = ITEM, dim: bool = False) -> None:
        """Write how many more there are, and how to see them; nothing if there are none."""
        if left > 0:
            self.line(f"and {left:,} more{f'; {remedy}' if remedy else ''}", indent=indent, dim=dim)

    def table(self, table: TextTable, *, indent: int = ITEM) -> None:
        """Write a table."""
        for line in aligned(table):
            self._write((" " * indent + line).rstrip(), "")


class RichWriter(Writer):
    """Writes to a terminal with colours, and tables that fit its width.

    Text is never interpreted as markup.
    """

    def __init__(self) -> None:
        from rich.console import Console

        self._console = Console(file=stdout(), highlight=False)

    def table(self, table: TextTable, *, indent: int = ITEM) -> None:
        """Write a table."""
        from rich import box
        from rich.padding import Padding
        from rich.table import Table
        from rich.text import Text

        drawn = Table(box=box.SIMPLE_HEAD, pad_edge=False, header_style="bold", show_edge=False)
        is_wide = table_width(table) + indent > self._console.width
        rows = [[_cell(cell) if is_wide else printable(cell) for cell in row] for row in table.rows]
        for at, heading in enumerate(table.headings):
            shown = heading_of(heading)
            drawn.add_column(
                Text(split_camel_case(shown, _HEADING_WIDTH) if is_wide else shown),
                justify="right" if heading in table.numbers else "left",
                overflow="fold",
                no_wrap=all(_is_name(row[at]) for row in rows),
            )
        for row in rows:
            drawn.add_row(*map(Text, row))
        self._console.print(Padding(drawn, (0, 0, 0, indent), expand=False))

    def _write(self, line: str, style: str) -> None:
        from rich.text import Text

        # The terminal wraps what is too long for it, so that it is copied as one line.
        self._console.print(Text(line, style=style), soft_wrap=True)


def _cell(cell: str) -> str:
    """Break a name, which has no spaces to wrap at; other text is wrapped by rich."""
    text = printable(cell)
    return split_camel_case(text, _NAME_WIDTH) if text.isalpha() else text


def _is_name(cell: str) -> bool:
    """Whether the cell is a name, whose lines must not be wrapped further."""
    return all(line.isalpha() or not line for line in cell.split("\n"))


def split_camel_case(name: str, width: int) -> str:
    """Return a name in camel case on lines of about `width` letters."""
    lines: list[str] = []
    for part in re.findall(r" ?[A-Z]*[^A-Z ]*", name):
        if lines and len(lines[-1]) + len(part) <= width:
            lines[-1] += part
        elif part:
            lines.append(part.strip())
    return "\n".join(lines)


def writer() -> Writer:
    """Return a writer with colours if stdout is a terminal, else a plain one."""
    return RichWriter() if is_colourful() else Writer()


def is_colourful() -> bool:
    """Whether stdout is a terminal with colours."""
    if os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb":
        return False
    return stdout().isatty()


def page_width() -> int:
    """Return the columns of the terminal; elsewhere those of COLUMNS, or 80."""
    if stdout().isatty():
        return shutil.get_terminal_size().columns
    return _columns() or _PAGE_WIDTH


def _columns() -> int:
    """Return the number in COLUMNS; 0 for none."""
    wanted = os.environ.get("COLUMNS", "")
    return int(wanted) if wanted.isdecimal() else 0


def column_gap() -> int:
    """Return the number of columns between two cells of a table."""
    return _TERMINAL_GAP if is_colourful() else len(_GAP)


def table_width(table: TextTable) -> int:
    """Return the columns that a table takes, where they suffice."""
    gaps = len(table.headings) - 1
    return max(map(cell_len, aligned(table))) + gaps * (column_gap() - len(_GAP))


def in_parts(table: TextTable, heads: int) -> Iterator[TextTable]:
    """Yield a table, or parts of it that fit the page; each begins with the first columns."""
    first, count = heads, len(table.headings)
    while first < count:
        ends = range(count, first, -1)
        parts = (_part(table, [*range(heads), *range(first, end)]) for end in ends)
        part = next((each for each in parts if table_width(each) <= page_width()), None)
        part = part or _part(table, [*range(heads), first])
        yield part
        first += len(part.headings) - heads


def _part(table: TextTable, columns: Sequence[int]) -> TextTable:
    return TextTable(
        [table.headings[at] for at in columns],
        [[row[at] for at in columns] for row in table.rows],
        table.numbers,
    )


def aligned(table: TextTable) -> Iterator[str]:
    """Yield the lines of a table with aligned columns."""
    headings = [heading_of(heading) for heading in table.headings]
    rows = [headings, *([printable(cell) for cell in row] for row in table.rows)]
    widths = [max(map(cell_len, cells)) for cells in zip(*rows, strict=True)]
    for row in rows:
        cells = []
        for cell, width, heading in zip(row, widths, table.headings, strict=True):
            space = " " * (width - cell_len(cell))
            cells.append(space + cell if heading in table.numbers else cell + space)
        yield _GAP.join(cells).rstrip()


def heading_of(heading: str) -> str:
    """Return a heading in upper case, unless it has capitals of its own."""
    text = printable(heading)
    return text.upper() if text.islower() else text


# Amounts.

_BYTES: Final = ("memory", "ephemeral-storage")
_UNITS: Final = ("", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei")


def amount(resource: str, number: int) -> str:
    """Return an amount in readable units: CPUs, or bytes with a binary suffix."""
    if resource == "cpu":
        return f"{number / 1000:.10g}" if abs(number) < 10**15 else str(number // 1000)
    if resource in _BYTES:
        return _bytes(number)
    return str(number)


def _bytes(number: int) -> str:
    size, power = float(number), 0
    while abs(size) >= 1024 and power < len(_UNITS) - 1:
        size /= 1024
        power += 1
    text = f"{size:.1f}".removesuffix(".0")
    return f"{text}{_UNITS[power]}"
