"""RichWriter writes reports to a terminal: with colours, and tables that fit its width.

Invariants: text is never interpreted as markup.
"""

from __future__ import annotations

import re
from typing import Final

from rich import box
from rich.console import Console
from rich.padding import Padding
from rich.table import Table as RichTable
from rich.text import Text

from kubesched.cli.errors import printable
from kubesched.cli.output import ITEM, Writer, aligned, heading_of
from kubesched.explain.tables import TextTable

_HEADING_WIDTH: Final = 10
_NAME_WIDTH: Final = 13


class RichWriter(Writer):
    """Writes colours, and lines that fit the terminal."""

    def __init__(self) -> None:
        self._console = Console(highlight=False)

    def table(self, table: TextTable, *, indent: int = ITEM) -> None:
        """Write a table."""
        drawn = RichTable(box=box.SIMPLE_HEAD, pad_edge=False, header_style="bold", show_edge=False)
        is_wide = max(map(len, aligned(table))) + indent > self._console.width
        rows = [[_cell(cell) if is_wide else printable(cell) for cell in row] for row in table.rows]
        for at, column in enumerate(table.columns):
            heading = heading_of(column)
            drawn.add_column(
                Text(split_camel_case(heading, _HEADING_WIDTH) if is_wide else heading),
                justify="right" if column.is_number else "left",
                overflow="fold",
                no_wrap=all(_is_name(row[at]) for row in rows),
            )
        for row in rows:
            drawn.add_row(*map(Text, row))
        self._console.print(Padding(drawn, (0, 0, 0, indent), expand=False))

    def _write(self, line: str, style: str) -> None:
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
