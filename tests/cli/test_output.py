"""What is written: aligned text for pipes, colours for terminals, JSON and YAML for programs."""

from __future__ import annotations

import io
import re
import sys

import pytest
from rich.cells import cell_len

from kubesched.cli.output import (
    OutputFormat,
    RichWriter,
    TextTable,
    Writer,
    aligned,
    is_colourful,
    page_width,
    split_camel_case,
    table_width,
    write_document,
    writer,
)
from kubesched.explain.document import Document

TABLE = TextTable(
    ["node", "PodTopologySpread", "who"],
    [["a", "10", "x"], ["much-longer", "7", ""], ["日本", "100", "z"]],
    ["PodTopologySpread"],
)


class Terminal(io.StringIO):
    """A stream that is a terminal."""

    def isatty(self) -> bool:
        """Say so."""
        return True


def terminal_of(monkeypatch: pytest.MonkeyPatch) -> Terminal:
    """Have stdout and stderr be terminals of 60 columns.

    No fixture, because pytest sets up its own stdout between fixtures and test.
    """
    found = Terminal()
    monkeypatch.setattr(sys, "stdout", found)
    monkeypatch.setattr(sys, "stderr", found)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "60")
    monkeypatch.delenv("NO_COLOR", raising=False)
    return found


def test_the_width_of_a_table(monkeypatch: pytest.MonkeyPatch) -> None:
    """The width is that of the drawn table, on a terminal and elsewhere."""
    assert table_width(TABLE) == max(map(cell_len, aligned(TABLE))) == 35
    terminal = terminal_of(monkeypatch)
    assert page_width() == 60
    writer().table(TABLE, indent=0)
    plain = re.sub(r"\x1b\[[0-9;]*m", "", terminal.getvalue())
    assert table_width(TABLE) == max(cell_len(line.rstrip()) for line in plain.splitlines())


@pytest.mark.parametrize(("columns", "width"), [("100", 100), ("", 80), ("0", 80), ("wide", 80)])
def test_the_width_of_a_pipe(monkeypatch: pytest.MonkeyPatch, columns: str, width: int) -> None:
    """COLUMNS if it is a number, else 80."""
    monkeypatch.setattr(sys, "stdout", io.StringIO())
    monkeypatch.setenv("COLUMNS", columns)
    assert page_width() == width


@pytest.mark.parametrize(("columns", "lines"), [("", 1), ("0", 1), ("40", 4)])
def test_sentences_in_a_pipe(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], columns: str, lines: int
) -> None:
    """A sentence is one line, which grep finds, unless COLUMNS asks for a width."""
    monkeypatch.setenv("COLUMNS", columns)
    Writer().headline("a sentence that is long " * 6)
    assert lines == len(capsys.readouterr().out.splitlines())


def test_aligned() -> None:
    """Columns are as wide as their widest cell, wide characters counting twice; numbers align."""
    assert list(aligned(TABLE)) == [
        "NODE         PodTopologySpread  WHO",
        "a                           10  x",
        "much-longer                  7",
        "日本                       100  z",
    ]


@pytest.mark.parametrize(
    ("name", "value"), [pytest.param("NO_COLOR", "1", id="no-color"), ("TERM", "dumb")]
)
def test_no_colours_on_demand(monkeypatch: pytest.MonkeyPatch, name: str, value: str) -> None:
    """NO_COLOR and a dumb terminal get plain text."""
    terminal_of(monkeypatch)
    assert is_colourful()
    assert isinstance(writer(), RichWriter)
    monkeypatch.setenv(name, value)
    assert not is_colourful()
    assert type(writer()) is Writer


def test_pipes_get_plain_text(capsys: pytest.CaptureFixture[str]) -> None:
    """Output that is not a terminal gets plain text."""
    assert type(writer()) is Writer
    writer().line("x" * 500)
    assert capsys.readouterr().out == "x" * 500 + "\n"


@pytest.mark.parametrize("is_terminal", [False, True])
def test_paragraphs_fit_the_width(monkeypatch: pytest.MonkeyPatch, *, is_terminal: bool) -> None:
    """What is indented hangs; words stay whole."""
    stdout = terminal_of(monkeypatch)
    if not is_terminal:
        monkeypatch.setenv("NO_COLOR", "1")
    long = "x" * 60
    writer().line(f"one two {long} three")
    writer().item("four " * 13)
    text = re.sub(r"\x1b\[[0-9;]*m", "", stdout.getvalue())
    fours = " ".join(["four"] * 11)
    assert f"one two\n{long}\nthree\n  {fours}\n    four four\n" == text


def write_all(out: Writer) -> None:
    """Write one of each."""
    out.headline("Pod a/b goes [bold]nowhere[/bold]")
    out.heading("Why \x1b[31m")
    out.line("because", indent=2, dim=True)
    out.table(TABLE, indent=2)


def test_rich_text_is_no_markup(monkeypatch: pytest.MonkeyPatch) -> None:
    """Names that look like markup or escapes are written as they are."""
    terminal = terminal_of(monkeypatch)
    write_all(writer())
    text = terminal.getvalue()
    assert "[bold]nowhere[/bold]" in text
    assert "\\x1b[31m" in text
    for word in ("because", "much-longer", "100"):
        assert word in text


def test_wide_tables_fit_the_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where a table is too wide, headings in camel case are stacked."""
    terminal = terminal_of(monkeypatch)
    names = [f"NodeResourcesPlugin{letter}" for letter in "ABCD"]
    writer().table(TextTable(names, [["1", "2", "3", "4"]], names), indent=0)
    lines = terminal.getvalue().splitlines()
    assert any("Resources" in line and "Node" not in line for line in lines)


def test_tables_that_rich_draws_wider_are_wide(monkeypatch: pytest.MonkeyPatch) -> None:
    """Gaps are three columns on a terminal, and letters may take two."""
    for cell in ("x" * 39, "日" * 19):
        terminal = terminal_of(monkeypatch)
        writer().table(TextTable(["NodeResourcesFit", "a", "b"], [["7", "1", cell]]), indent=0)
        assert "Resources\n" in re.sub(r"\x1b\[[0-9;]*m| +", "", terminal.getvalue())


def test_a_command_is_not_wrapped(monkeypatch: pytest.MonkeyPatch) -> None:
    """The terminal wraps it, so that it can be copied."""
    terminal = terminal_of(monkeypatch)
    text = f"kubectl get {'x' * 200} -o json"
    writer().command(text)
    assert f"  {text}\n" == terminal.getvalue()


class Thing(Document, frozen=True):
    """A result."""

    pod_name: str
    is_there: bool = True
    missing: str | None = None


@pytest.mark.parametrize(
    ("output", "text"),
    [
        pytest.param(
            "json",
            '{\n  "apiVersion": "kubesched.dev/v1",\n  "kind": "Thing",\n  "podName": "ü",\n'
            '  "isThere": true,\n  "missing": null\n}\n',
            id="json",
        ),
        pytest.param(
            "yaml",
            "apiVersion: kubesched.dev/v1\nkind: Thing\npodName: ü\nisThere: true\nmissing: null\n",
            id="yaml",
        ),
    ],
)
def test_documents(capsys: pytest.CaptureFixture[str], output: OutputFormat, text: str) -> None:
    """Documents begin with apiVersion and kind and keep the order of their fields."""
    write_document(Thing("ü"), output)
    assert text == capsys.readouterr().out


def test_a_name_that_yaml_parses_as_a_number_is_quoted(capsys: pytest.CaptureFixture[str]) -> None:
    """Parsers of Go take 1e3 for a number."""
    write_document(Thing("1e3"), "yaml")
    assert "podName: '1e3'\n" in capsys.readouterr().out


def test_wide_tables_are_not_truncated(monkeypatch: pytest.MonkeyPatch) -> None:
    """A table that is too wide still shows every character."""
    terminal = terminal_of(monkeypatch)
    detail = "abcdefghijklmnopqrstuvwxyz0123456789" * 3
    row = ["node-0001", "TaintToleration", "UnschedulableAndUnresolvable", detail]
    writer().table(TextTable(["node", "plugin", "code", "detail"], [row]), indent=2)
    lines = re.sub(r"\x1b\[[0-9;]*m", "", terminal.getvalue()).splitlines()
    assert detail == "".join(line.split()[-1] for line in lines[2:] if line.split())


@pytest.mark.parametrize(
    ("name", "width", "text"),
    [
        pytest.param("NodeResourcesFit", 10, "Node\nResources\nFit", id="one-part-a-line"),
        pytest.param("NodePorts", 10, "NodePorts", id="fits"),
        pytest.param(
            "UnschedulableAndUnresolvable", 16, "UnschedulableAnd\nUnresolvable", id="two"
        ),
        pytest.param("BUDGETS VIOLATED", 10, "BUDGETS\nVIOLATED", id="words"),
        pytest.param("RANK", 10, "RANK", id="word"),
        pytest.param("PodTopologySpread *2", 10, "Pod\nTopology\nSpread *2", id="weight"),
        pytest.param("", 10, "", id="empty"),
    ],
)
def test_broken_names(name: str, width: int, text: str) -> None:
    """Names are broken between their words, so that a column becomes narrow."""
    assert text == split_camel_case(name, width)
