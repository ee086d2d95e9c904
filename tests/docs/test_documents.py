"""The documents: commands, programs, links and generated pages."""

from __future__ import annotations

import gzip
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.docs.commands import forked_commands

ROOT = Path(__file__).resolve().parents[2]
PAGES = sorted(
    page
    for place in ("*.md", "docs/**/*.md", "examples/**/*.md", "benchmarks/*.md")
    for page in ROOT.glob(place)
)

_BLOCK = re.compile(r"^ *```(\w*)\n(.*?)^ *```$", re.DOTALL | re.MULTILINE)
_LINK = re.compile(r"\]\(([^)\s]+)\)")


def _name(page: Path) -> str:
    return str(page.relative_to(ROOT))


def _blocks(page: Path, kind: str) -> list[str]:
    text = page.read_text(encoding="utf-8")
    return [body for found, body in _BLOCK.findall(text) if found == kind]


def _runs_something(page: Path) -> bool:
    return any(_blocks(page, kind) for kind in ("console", "python"))


def _check(tool: str, *arguments: str, commands: Path | str = "") -> tuple[str, int]:
    """Return what a tool writes to stderr, and its exit code."""
    found = subprocess.run(  # noqa: S603 - our own tools
        [sys.executable, ROOT / "tools" / tool, "--check", *arguments],
        env={**os.environ, "COMMANDS_FIRST": str(commands)},
        capture_output=True,
        encoding="utf-8",
        check=False,
    )
    return found.stderr, found.returncode


@pytest.fixture(scope="module")
def commands(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A directory with the command `kubesched`, for tests that run it many times."""
    with forked_commands(tmp_path_factory.mktemp("commands")) as found:
        yield found


@pytest.mark.slow
@pytest.mark.parametrize("page", [page for page in PAGES if _runs_something(page)], ids=_name)
def test_a_page_shows_what_its_commands_print(page: Path, commands: Path) -> None:
    """Commands and programs are run again; copied files are compared."""
    assert ("", 0) == _check("documents.py", str(page), commands=commands)


def test_blocks_that_run_are_not_indented() -> None:
    """The tool would not find a block inside a list."""
    indented = re.compile(r"^ +```(?:console|python|text)$", re.MULTILINE)
    assert [] == [_name(page) for page in PAGES if indented.search(page.read_text("utf-8"))]


HOWTOS = [page for page in PAGES if page.parent.name == "howto"]


@pytest.mark.parametrize("page", HOWTOS, ids=_name)
def test_commands_that_are_not_run_name_what_they_need(page: Path) -> None:
    """Others run as in a fresh clone."""
    reason = re.compile(r"# (?:Needs \w.*|Runs until Ctrl-C)\.\n")
    assert [] == [block for block in _blocks(page, "sh") if not reason.match(block)]


@pytest.mark.parametrize("page", HOWTOS, ids=_name)
def test_commands_are_in_console_or_sh_blocks(page: Path) -> None:
    """In other blocks they would be neither run nor marked."""
    kinds = {kind for kind, _ in _BLOCK.findall(page.read_text(encoding="utf-8"))}
    assert set() == kinds - {"console", "sh", "python", "text", "yaml", "toml", "dockerfile"}


@pytest.mark.slow
def test_output_on_stderr_and_failures_are_errors(tmp_path: Path) -> None:
    """Readers would see them."""
    for block in ("console\n$ kubesched simulate nobody.json\n", "python\nraise SystemExit(1)\n"):
        page = tmp_path / "page.md"
        page.write_text(f"```{block}```\n", encoding="utf-8")
        _, code = _check("documents.py", str(page))
        assert 1 == code


@pytest.mark.slow
def test_the_picture_in_the_readme_is_current() -> None:
    """It shows what the command prints."""
    assert ("", 0) == _check("picture.py")


def test_the_page_of_divergences_is_current() -> None:
    """It is generated from the modules' heads."""
    assert ("", 0) == _check("divergences.py")


def test_the_configuration_reference_is_current() -> None:
    """Fields, plugins and feature gates."""
    assert ("", 0) == _check("configuration.py")


def test_the_reference_of_scenarios_is_current() -> None:
    """Fields of scenarios and sweeps."""
    assert ("", 0) == _check("scenarios.py")


@pytest.mark.parametrize("page", PAGES, ids=_name)
def test_linked_files_exist(page: Path) -> None:
    """In this repository."""
    links = _LINK.findall(_BLOCK.sub("", page.read_text(encoding="utf-8")))
    inside = [link.partition("#")[0] for link in links if "://" not in link]
    missing = [link for link in inside if link and not (page.parent / link).exists()]
    assert [] == missing


def _anchors(page: Path) -> set[str]:
    """Return the anchors of a page's headings: lower case, hyphenated."""
    text = _BLOCK.sub("", page.read_text(encoding="utf-8"))
    headings = re.findall(r"^#+ (.*)$", _LINK.sub("]", text), re.MULTILINE)
    return {re.sub(r"[^\w -]", "", each).lower().replace(" ", "-") for each in headings}


@pytest.mark.parametrize("page", PAGES, ids=_name)
def test_linked_headings_exist(page: Path) -> None:
    """In the linked page."""
    links = _LINK.findall(_BLOCK.sub("", page.read_text(encoding="utf-8")))
    parts = [link.partition("#") for link in links if "://" not in link and "#" in link]
    missing = [
        f"{file}#{anchor}"
        for file, _, anchor in parts
        if anchor not in _anchors(page.parent / file if file else page)
    ]
    assert [] == missing


def test_pages_are_in_the_index() -> None:
    """Every page below docs is linked from it."""
    docs = ROOT / "docs"
    linked = set(_LINK.findall((docs / "README.md").read_text(encoding="utf-8")))
    pages = {str(page.relative_to(docs)) for page in docs.glob("**/*.md")} - {"README.md"}
    assert set() == pages - linked


def test_named_make_targets_exist() -> None:
    """In every page."""
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    targets = set(re.findall(r"^(\w+):", makefile, re.MULTILINE))
    asked = {
        target
        for page in PAGES
        for block in _blocks(page, "sh")
        for target in re.findall(r"^ *make (\w+)", block, re.MULTILINE)
    }
    assert {"demo", "test"} <= asked
    assert set() == asked - targets


def test_the_readme_has_the_cases_of_each_family() -> None:
    """tests/conformance compares them."""
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    files = sorted((ROOT / "tests" / "conformance" / "data").glob("*.jsonl.gz"))
    counts: dict[str, int] = {}
    for file in files:
        with gzip.open(file) as lines:
            counts[file.name.removesuffix(".jsonl.gz")] = sum(1 for line in lines if line.strip())
    said = re.search(r"By family:\n(.*?)\.\n", readme, re.DOTALL)
    assert said is not None
    assert ", ".join(f"`{name}` {n}" for name, n in counts.items()) == said[1].replace("\n", " ")
    assert f"{sum(counts.values()):,} situations" in readme


def test_decisions_have_three_sections() -> None:
    """Context, Decision, Consequences."""
    records = sorted((ROOT / "docs" / "decisions").glob("*.md"))
    headings = {
        record.name: re.findall(r"^## (.*)$", record.read_text(encoding="utf-8"), re.MULTILINE)
        for record in records
    }
    expected = ["Context", "Decision", "Consequences"]
    assert dict.fromkeys(headings, expected) == headings
