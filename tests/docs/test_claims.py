"""Claims of the documents about the code, as far as they can be checked."""

from __future__ import annotations

import ast
import gzip
import re
import subprocess
import sys
import tomllib
from collections import defaultdict
from collections.abc import Iterator
from importlib import import_module
from itertools import chain
from pathlib import Path

import click
import pytest
from benchmarks.__main__ import ON_REQUEST, SUITES

from kubesched import reports
from kubesched.cli.main import kubesched
from kubesched.framework.plugin import Scope
from kubesched.reports import DOCUMENTS, schema_of
from tests.simulation.scenarios import PLANS

ROOT = Path(__file__).resolve().parents[2]
SOURCE = ROOT / "src" / "kubesched"
ROOMS = sorted(path.name for path in SOURCE.iterdir() if (path / "__init__.py").exists())
PAGES = [ROOT / name for name in ("ARCHITECTURE.md", "CONTRIBUTING.md", "benchmarks/README.md")]
PAGES += sorted((ROOT / "docs" / "decisions").glob("*.md"))
"""Pages that name modules."""
PUBLIC_PACKAGES = ["kubesched"] + [
    f"kubesched.{name}" for name in ("reports", "framework", "testing", "rl")
]
"""The packages whose `__all__` is the Python API."""


def _text(name: str) -> str:
    return (ROOT / name).read_text(encoding="utf-8")


def _rows(page: str, heading: str) -> dict[str, list[str]]:
    """Return the first table below a heading: its first column, and the others."""
    below = _text(page).partition(f"\n{heading}\n")[2]
    table = re.search(r"^\|[- |]+\|\n((?:\|.*\|\n)+)", below, re.MULTILINE)
    assert table, f"{page} has no table below {heading}"
    found = [re.split(r" ?(?<!\\)\| ?", line)[1:-1] for line in table[1].splitlines()]
    return {first: others for first, *others in found}


def _names(rows: dict[str, list[str]]) -> set[str]:
    return {name for first in rows for name in re.findall(r"`([^`]*)`", first)}


def _name(page: Path) -> str:
    return str(page.relative_to(ROOT))


# Architecture.


def test_the_table_of_rooms_lists_every_package() -> None:
    """Each once, and no other."""
    assert ROOMS == sorted(_names(_rows("ARCHITECTURE.md", "## The rooms")))


def test_files_to_read_first_are_in_their_room() -> None:
    """The table of rooms names them."""
    for first, (_, files) in _rows("ARCHITECTURE.md", "## The rooms").items():
        for file in re.findall(r"`(\w+\.py)`", files):
            assert (SOURCE / first.strip("`") / file).is_file()


def _resolves(name: str) -> bool:
    """Return whether a dotted name is a module or a name in one."""
    *parents, last = name.split(".")
    module = SOURCE.joinpath(*parents)
    if (module / last).is_dir() or (module / f"{last}.py").is_file():
        return True
    if not module.with_suffix(".py").is_file():
        return bool(parents) and _resolves(".".join(parents)) and not (module / last).suffix
    return re.search(rf"\b{last}\b", module.with_suffix(".py").read_text("utf-8")) is not None


@pytest.mark.parametrize("page", PAGES, ids=_name)
def test_named_modules_exist(page: Path) -> None:
    """`room.module` and `room.module.Name`."""
    text = page.read_text(encoding="utf-8")
    named = re.findall(rf"(?<![\w/])((?:{'|'.join(ROOMS)})\.[a-z]\w*(?:\.\w+)*)", text)
    files = re.findall(rf"(?<![\w/])((?:{'|'.join(ROOMS)})/[\w/]+\.py)\b", text)
    missing = {name for name in named if not name.endswith(".py") and not _resolves(name)}
    assert set() == missing
    assert set() == {file for file in files if not (SOURCE / file).is_file()}


@pytest.mark.parametrize("page", PAGES, ids=_name)
def test_pages_do_not_count_lines(page: Path) -> None:
    """Such numbers go stale."""
    assert None is re.search(r"\b[\d,]+ lines\b", page.read_text(encoding="utf-8"))


# Decisions.


def _imported(file: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name.partition(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            yield node.module.partition(".")[0]
        elif (  # how a package is imported that some platforms do not have
            isinstance(node, ast.Call)
            and isinstance(node.func, ast.Attribute)
            and node.func.attr == "import_module"
            and isinstance(node.args[0], ast.Constant)
        ):
            yield str(node.args[0].value)


DEPENDENCIES = "docs/decisions/0005-dependencies.md"


@pytest.mark.slow
def test_packages_are_imported_in_the_rooms_of_the_decision() -> None:
    """All but numpy and msgspec."""
    rooms: dict[str, set[str]] = defaultdict(set)
    for room in ROOMS:
        for file in (SOURCE / room).rglob("*.py"):
            for name in _imported(file):
                rooms[name].add(room)
    listed = {
        name: set(re.findall(r"`(\w+)`", others[0]))
        for first, others in _rows(DEPENDENCIES, "## Consequences").items()
        for name in re.findall(r"`(\w+)`", first)
    }
    known = {"kubesched", "numpy", "msgspec", "_typeshed"}
    others = set(rooms) - set(sys.stdlib_module_names) - known
    assert {name: rooms[name] for name in others} == listed


def test_every_dependency_has_a_reason_in_the_decision() -> None:
    """Optional ones, too."""
    project = tomllib.loads(_text("pyproject.toml"))["project"]
    needed = [*project["dependencies"], *chain(*project["optional-dependencies"].values())]
    bullets = re.findall(
        r"^- (.*?):", _text(DEPENDENCIES).partition("## Decision")[2], re.MULTILINE
    )
    reasons = {name for bullet in bullets for name in re.findall(r"\*\*([\w-]+)\*\*", bullet)}
    assert {re.match(r"[\w-]+", each)[0] for each in needed} == reasons  # type: ignore[index]  # it has a name


@pytest.mark.slow
def test_help_imports_neither_numpy_nor_rich() -> None:
    """The decision on dependencies says so."""
    code = (
        "import sys\nfrom kubesched.cli.main import main\nsys.argv = ['kubesched', '--help']\n"
        "try:\n    main()\nexcept SystemExit:\n    pass\n"
        "sys.exit(bool({'numpy', 'rich'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], check=False, capture_output=True)  # noqa: S603 - our own code
    assert 0 == done.returncode


# How-tos.


def test_all_scopes_are_explained() -> None:
    """The how-to on plugins has a row for each."""
    heading = "## Scope and sign: what may be remembered"
    rows = _rows("docs/howto/write-a-plugin.md", heading)
    assert {f"Scope.{scope.name}" for scope in Scope} == _names(rows)


OVER_TIME = "docs/howto/simulate-over-time.md"


def test_the_number_of_fault_plans_is_right() -> None:
    """Of `make sim`."""
    words = ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")
    assert f"under each of {words[len(PLANS)]} fault plans" in _text(OVER_TIME)


def _options(command: click.Command) -> set[str]:
    return {
        name for each in command.params for name in (*each.opts, *each.secondary_opts, "--help")
    }


BLOCK = re.compile(r"^```(?:sh|console)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
COMMAND = re.compile(r"^(?:\$ )?kubesched (\w+) ((?:[^\n]*\\\n)*[^\n]*)", re.MULTILINE)


@pytest.mark.parametrize(
    "page", [*sorted((ROOT / "docs" / "howto").glob("*.md")), ROOT / "README.md"], ids=_name
)
def test_options_of_commands_exist(page: Path) -> None:
    """Of commands that no test runs, too."""
    context = click.Context(kubesched)
    blocks = "".join(BLOCK.findall(page.read_text(encoding="utf-8")))
    for name, words in COMMAND.findall(blocks):
        command = kubesched.get_command(context, name)
        assert command is not None
        ours = words.partition(" -- ")[0].partition(" | ")[0]
        assert set() == set(re.findall(r"(?<=\s)--[a-z][\w-]*", f" {ours}")) - _options(command)


def test_messages_of_the_troubleshooting_page_exist() -> None:
    """Each has a part of more than eight characters that the code has."""
    code = "".join(file.read_text(encoding="utf-8") for file in SOURCE.rglob("*.py"))
    rows = re.findall(r"^\| (`.*?) \| ", _text("docs/troubleshooting.md"), re.MULTILINE)
    messages = [one for row in rows for one in re.findall(r"`([^`]+)`", row)]
    parts = {one: re.split(r'…|"[^"]*"|\bN\b|\d+', one) for one in messages}
    assert [] == [
        one
        for one, found in parts.items()
        if not any(len(part) > 8 and part.strip(" ,") in code for part in found)
    ]


# Conformance and model.


def test_the_page_has_the_cases_of_each_family() -> None:
    """The page on conformance."""
    counts = {}
    for file in (ROOT / "tests" / "conformance" / "data").glob("*.jsonl.gz"):
        with gzip.open(file) as lines:
            counts[f"`{file.name.removesuffix('.jsonl.gz')}`"] = sum(
                1 for line in lines if line.strip()
            )
    rows = _rows("docs/conformance.md", "## Families")
    assert counts == {first: int(others[0]) for first, others in rows.items()}
    assert f"in {sum(counts.values()):,} situations" in _text("docs/conformance.md")


def test_tests_named_in_the_model_exist() -> None:
    """Functions and files of tests/model."""
    text = _text("docs/model.md")
    code = {file.name: file.read_text("utf-8") for file in (ROOT / "tests" / "model").glob("*.py")}
    assert set() == set(re.findall(r"`(\w+\.py)`", text)) - set(code)
    functions = set(re.findall(r"`(test_\w+)`", text))
    assert set() == {name for name in functions if f"def {name}(" not in "".join(code.values())}


# Benchmarks.


def test_every_benchmark_file_is_listed() -> None:
    """Each module has its row."""
    files = {file.name for file in (ROOT / "benchmarks").glob("[a-z]*.py")}
    assert files == _names(_rows("benchmarks/README.md", "## Files"))


def test_every_benchmark_suite_is_listed() -> None:
    """Those that run by default, and those that run on request."""
    text = _text("benchmarks/README.md")
    found = re.search(
        r"^((?:`\w+`[, and]*)+) can be run alone; ((?:`\w+`[, and]*)+) run only", text, re.MULTILINE
    )
    assert found
    assert [list(SUITES), list(ON_REQUEST)] == [
        re.findall(r"\w+(?=`)", part) for part in found.groups()
    ]


_CALL_OF_A_PLUGIN = re.compile(
    r"\bplugin\.(?:pre_enqueue|pre_filter|filter|filter_state|add_pod|remove_pod|post_filter|"
    r"pre_score|score|score_state|normalize_score|reserve|unreserve|permit|pre_bind|bind|post_bind|"
    r"pod_group_post_filter|generate_placements|score_placement|normalize_placement_scores)\("
)


def test_only_the_profile_calls_plugins() -> None:
    """Other modules of the scheduler pass a plugin's method to it."""
    callers = {
        path.name
        for path in (ROOT / "src/kubesched/scheduler").glob("*.py")
        if _CALL_OF_A_PLUGIN.search(path.read_text(encoding="utf-8"))
    }
    assert set() == callers


@pytest.mark.parametrize("package", PUBLIC_PACKAGES)
def test_the_reference_lists_the_public_names(package: str) -> None:
    """Every name of `__all__` has an entry, and no other name."""
    page = _text(f"docs/api/{package.rpartition('.')[2]}.rst")
    entries = re.findall(r"^\.\. (?:auto\w+|data):: (\w+)", page, re.MULTILINE)
    assert sorted(set(import_module(package).__all__) - {"__version__"}) == sorted(entries)


def test_types_of_document_fields_are_public() -> None:
    """So annotations can name them."""
    parts = {part for kind in DOCUMENTS for part in (kind, *schema_of(kind).get("$defs", {}))}
    assert set() == parts - set(reports.__all__)
