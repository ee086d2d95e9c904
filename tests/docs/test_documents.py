"""The documents: commands, programs, links and generated pages."""

from __future__ import annotations

import gzip
import re
import subprocess
import sys
from pathlib import Path

import pytest

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


def _check(tool: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(  # noqa: S603 - our own tools
        [sys.executable, ROOT / "tools" / tool, "--check", *arguments],
        capture_output=True,
        encoding="utf-8",
        check=False,
    )


@pytest.mark.slow
@pytest.mark.parametrize("page", [page for page in PAGES if _runs_something(page)], ids=_name)
def test_a_page_shows_what_its_commands_print(page: Path) -> None:
    """Each command and program, run again, prints what the page shows; files are shown as is."""
    found = _check("documents.py", str(page))
    assert ("", 0) == (found.stderr, found.returncode)


def test_blocks_that_run_are_not_indented() -> None:
    """The tool that runs them would pass over a block inside a list."""
    indented = re.compile(r"^ +```(?:console|python|text)$", re.MULTILINE)
    assert [] == [_name(page) for page in PAGES if indented.search(page.read_text("utf-8"))]


HOWTOS = [page for page in PAGES if page.parent.name == "howto"]


@pytest.mark.parametrize("page", HOWTOS, ids=_name)
def test_a_howto_says_why_a_command_is_not_run(page: Path) -> None:
    """Commands are run as in a fresh clone, or their block begins with what they need."""
    reason = re.compile(r"# (?:Needs \w.*|Runs until Ctrl-C)\.\n")
    assert [] == [block for block in _blocks(page, "sh") if not reason.match(block)]


@pytest.mark.parametrize("page", HOWTOS, ids=_name)
def test_a_howto_has_no_commands_in_other_blocks(page: Path) -> None:
    """A block without a language, or of another shell, would be neither run nor marked."""
    kinds = {kind for kind, _ in _BLOCK.findall(page.read_text(encoding="utf-8"))}
    assert set() == kinds - {"console", "sh", "python", "text", "yaml", "toml", "dockerfile"}


@pytest.mark.slow
def test_commands_that_complain_are_found(tmp_path: Path) -> None:
    """What a reader would see on stderr is an error, and so is a program that fails."""
    for block in ("console\n$ kubesched simulate nobody.json\n", "python\nraise SystemExit(1)\n"):
        page = tmp_path / "page.md"
        page.write_text(f"```{block}```\n", encoding="utf-8")
        assert 1 == _check("documents.py", str(page)).returncode


@pytest.mark.slow
def test_the_picture_shows_what_the_command_prints() -> None:
    """The picture in the README is what a terminal shows."""
    found = _check("picture.py")
    assert ("", 0) == (found.stderr, found.returncode)


def test_divergences_are_those_of_the_modules() -> None:
    """The page of differences is what the heads of the modules say."""
    found = _check("divergences.py")
    assert ("", 0) == (found.stderr, found.returncode)


def test_the_configuration_reference_is_that_of_the_code() -> None:
    """The page of fields, plugins and feature gates is generated."""
    found = _check("configuration.py")
    assert ("", 0) == (found.stderr, found.returncode)


def test_the_reference_of_scenarios_is_that_of_the_code() -> None:
    """The page of the fields of scenarios and sweeps is generated."""
    found = _check("scenarios.py")
    assert ("", 0) == (found.stderr, found.returncode)


@pytest.mark.parametrize("page", PAGES, ids=_name)
def test_links_lead_to_files(page: Path) -> None:
    """A link to a file of this repository leads to one."""
    links = _LINK.findall(_BLOCK.sub("", page.read_text(encoding="utf-8")))
    inside = [link.partition("#")[0] for link in links if "://" not in link]
    missing = [link for link in inside if link and not (page.parent / link).exists()]
    assert [] == missing


def _anchors(page: Path) -> set[str]:
    """Return what links to a page's headings end with: their words in lower case, hyphenated."""
    text = _BLOCK.sub("", page.read_text(encoding="utf-8"))
    headings = re.findall(r"^#+ (.*)$", _LINK.sub("]", text), re.MULTILINE)
    return {re.sub(r"[^\w -]", "", each).lower().replace(" ", "-") for each in headings}


@pytest.mark.parametrize("page", PAGES, ids=_name)
def test_links_lead_to_headings(page: Path) -> None:
    """A link to a part of a page leads to a heading that is there."""
    links = _LINK.findall(_BLOCK.sub("", page.read_text(encoding="utf-8")))
    parts = [link.partition("#") for link in links if "://" not in link and "#" in link]
    missing = [
        f"{file}#{anchor}"
        for file, _, anchor in parts
        if anchor not in _anchors(page.parent / file if file else page)
    ]
    assert [] == missing


def test_pages_are_in_the_index() -> None:
    """Every page below docs is linked from the index."""
    docs = ROOT / "docs"
    linked = set(_LINK.findall((docs / "README.md").read_text(encoding="utf-8")))
    pages = {str(page.relative_to(docs)) for page in docs.glob("**/*.md")} - {"README.md"}
    assert set() == pages - linked


def test_targets_of_make_exist() -> None:
    """What a page asks people to make can be made."""
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


def test_the_conformance_families_are_counted() -> None:
    """The README says how many cases each family has; tests/conformance says that all are equal."""
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


def test_decisions_have_the_three_parts() -> None:
    """A decision record says the context, the decision, and what follows."""
    records = sorted((ROOT / "docs" / "decisions").glob("*.md"))
    headings = {
        record.name: re.findall(r"^## (.*)$", record.read_text(encoding="utf-8"), re.MULTILINE)
        for record in records
    }
    expected = ["Context", "Decision", "Consequences"]
    assert dict.fromkeys(headings, expected) == headings
