"""Text for a terminal: colours, and tables that fit its width.

Invariants: what is written is never read as markup.
"""

from __future__ import annotations

import re

from rich import box
from rich.console import Console
from rich.padding import Padding
from rich.table import Table as RichTable
from rich.text import Text

from kubesched.cli.errors import printable
from kubesched.cli.output import aligned, heading_of
from kubesched.explain.tables import Table


class RichWriter:
    """Colours, and lines that fit the terminal."""

    def __init__(self) -> None:
        self._console = Console(highlight=False)

    def headline(self, text: str) -> None:
        """Write the sentence that says it all."""
        self._text(text, "bold")

    def heading(self, text: str) -> None:
        """Begin a section."""
        self._console.print()
        self._text(text, "bold cyan")

    def line(self, text: str = "", *, indent: int = 0, dim: bool = False) -> None:
        """Write a line; what does not fit goes on below its beginning."""
        style = "dim" if dim else ""
        self._console.print(
            Padding(Text(printable(text), style=style), (0, 0, 0, indent), expand=False)
        )

    def table(self, table: Table, *, indent: int = 0) -> None:
        """Write a table."""
        drawn = RichTable(box=box.SIMPLE_HEAD, pad_edge=False, header_style="bold", show_edge=False)
        width = max(map(len, aligned(table))) + indent
        for column in table.columns:
            heading = heading_of(column)
            drawn.add_column(
                Text(heading if width <= self._console.width else _stacked(heading)),
                justify="right" if column.is_number else "left",
                overflow="fold",
            )
        for row in table.rows:
            drawn.add_row(*(Text(printable(cell)) for cell in row))
        self._console.print(Padding(drawn, (0, 0, 0, indent), expand=False))

    def _text(self, text: str, style: str) -> None:
        self._console.print(Text(printable(text), style=style))


def _stacked(heading: str) -> str:
    """Break a name in camel case into lines, so that its column becomes narrow."""
    return re.sub(r"(?<=[a-z])(?=[A-Z])| ", "\n", heading)
