"""The source stays tidy: names, sizes, small modules, and tests that are found by a module's name.

The lists of exceptions only shrink. A test fails for an exception that is not listed, and for a
listed one that is none any more: remove it from the list then.
"""

from __future__ import annotations

import ast
from collections import defaultdict
from functools import cache
from pathlib import Path
from typing import Final

import grimp

ROOT: Final = Path(__file__).resolve().parents[1]
SOURCE: Final = ROOT / "src" / "kubesched"
TESTS: Final = ROOT / "tests"

LINES_MAX: Final = 600
LONG_MODULES: Final[set[str]] = set()

CRUMB_LINES_MAX: Final = 80
CRUMBS: Final[set[str]] = set()
"""Small modules that one other module of their package imports, and nobody else."""

SHARED_NAMES: Final = {
    "NodeAffinity",
}
"""Public classes of which there are two or more."""

ROOM_LINES_MAX: Final = 12_400
LARGE_ROOMS: Final[set[str]] = set()

ROOMS_WITHOUT_SOURCE: Final = {
    "benchmarks": "the benchmarks, which are not part of the package",
    "conformance": "decisions of kube-scheduler, family by family",
    "contract": "requests and answers of kube-apiserver, kube-scheduler and kubectl",
    "deploy": "manifests, chart, container file and dashboard",
    "docs": "documents",
    "e2e": "whole processes over sockets",
    "examples": "examples",
    "model": "the scheduler against a model of it",
    "scenarios": "transcripts of the whole scheduler",
    "simulation": "random scenarios through the whole scheduler",
}

TESTS_OF_MANY_MODULES: Final = {
    "plugins/test_missing_states.py": "one rule for every plugin",
    "plugins/test_placement_plugins.py": "three plugins that only mean something together",
    "test_bench.py": "what developers run",
    "test_changed.py": "the choice of tests for a change",
    "test_package.py": "the package as a whole",
    "test_tidy.py": "the source as a whole",
}


def _module(file: Path) -> str:
    return ".".join(file.relative_to(SOURCE).with_suffix("").parts)


@cache
def _sources() -> dict[str, str]:
    """Return the text of every module, packages' own included."""
    return {_module(file): file.read_text(encoding="utf-8") for file in SOURCE.rglob("*.py")}


@cache
def _line_counts() -> dict[str, int]:
    return {module: text.count("\n") for module, text in _sources().items()}


def test_public_class_names_are_unique() -> None:
    """So that a search for a name finds one class."""
    modules: dict[str, list[str]] = defaultdict(list)
    for module, text in _sources().items():
        for node in ast.parse(text).body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                modules[node.name].append(module)
    assert SHARED_NAMES == {name for name, places in modules.items() if len(places) > 1}


def test_modules_are_not_too_long() -> None:
    """A longer one is split."""
    counts = _line_counts()
    assert LONG_MODULES == {module for module, lines in counts.items() if lines > LINES_MAX}


def test_small_modules_have_several_importers() -> None:
    """Others are merged into their only importer; plugins are exceptions."""
    graph = grimp.build_graph("kubesched", cache_dir=None)
    crumbs = set()
    for module, lines in _line_counts().items():
        name = f"kubesched.{module}"
        if lines >= CRUMB_LINES_MAX or name not in graph.modules:
            continue
        importers = graph.find_modules_that_directly_import(name)
        package = name.rpartition(".")[0]
        if (
            len(importers) == 1
            and importers != {"kubesched.plugins.registry"}
            and {importer.rpartition(".")[0] for importer in importers} == {package}
        ):
            crumbs.add(module)
    assert CRUMBS == crumbs


def test_rooms_are_not_too_large() -> None:
    """One person can know a room."""
    sizes: dict[str, int] = defaultdict(int)
    for module, lines in _line_counts().items():
        sizes[module.partition(".")[0]] += lines
    assert LARGE_ROOMS == {room for room, lines in sizes.items() if lines > ROOM_LINES_MAX}


def _has_subject(test: Path) -> bool:
    """Return whether a test has the name of a module or package, perhaps with an aspect."""
    name = test.stem.removeprefix("test_")
    folder = SOURCE / test.parent.relative_to(TESTS)
    words = name.split("_")
    names = ("_".join(words[:end]) for end in range(len(words), 0, -1))
    return any(
        (folder / f"{name}.py").is_file() or (folder / name / "__init__.py").is_file()
        for name in names
    )


def test_test_modules_are_named_after_modules() -> None:
    """`tests/queue/test_gates.py` and `test_gates_<aspect>.py` test `queue/gates.py`."""
    without = {
        str(path)
        for test in TESTS.rglob("test_*.py")
        if (path := test.relative_to(TESTS)).parts[0] not in ROOMS_WITHOUT_SOURCE
        and not _has_subject(test)
    }
    assert TESTS_OF_MANY_MODULES.keys() == without


def test_folders_without_a_package_are_listed() -> None:
    """They have tests, and no package of their name."""
    for room in ROOMS_WITHOUT_SOURCE:
        assert any((TESTS / room).rglob("test_*.py"))
        assert not (SOURCE / room).exists()
