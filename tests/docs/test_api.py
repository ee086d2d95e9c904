"""The reference of the Python API builds without a warning, and examples use its names."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import msgspec
import pytest

import kubesched.reports
from tests.docs.test_claims import PUBLIC_PACKAGES

ROOT = Path(__file__).resolve().parents[2]
PAGES = ROOT / "docs" / "api"
INSIDE = ("docs/howto/add-an-in-tree-plugin.md", "docs/howto/gang-scheduling.md")
"""Pages about parts of kubesched that are private."""
_BLOCK = re.compile(r"^```python\n(.*?)^```", re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize("package", PUBLIC_PACKAGES)
def test_public_names_exist(package: str) -> None:
    """Also those that are imported late."""
    module = import_module(package)
    assert all(hasattr(module, name) for name in module.__all__)


def test_public_records_are_frozen() -> None:
    """Callers cannot change a report."""
    names = kubesched.reports.__all__
    found = [getattr(kubesched.reports, name) for name in names]
    structs = [one for one in found if isinstance(one, type) and issubclass(one, msgspec.Struct)]
    assert [] == [one.__name__ for one in structs if not one.__struct_config__.frozen]


def _imported(text: str) -> set[tuple[str, str]]:
    return {
        (node.module, name.name)
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("kubesched")
        for name in node.names
        if node.module
    }


def _shown() -> dict[str, str]:
    """Return the Python code in the documents for authors of plugins and users of the API."""
    files = sorted((ROOT / "examples" / "plugins").glob("*.py"))
    pages = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
    shown = {str(file.relative_to(ROOT)): file.read_text(encoding="utf-8") for file in files}
    for page in pages:
        for number, block in enumerate(_BLOCK.findall(page.read_text(encoding="utf-8"))):
            shown[f"{page.relative_to(ROOT)}[{number}]"] = block
    return shown


def test_examples_import_public_names_only() -> None:
    """So they keep working."""
    private = {
        f"{place}: {module}.{name}"
        for place, text in _shown().items()
        if not place.startswith(INSIDE)
        for module, name in _imported(text)
        if module not in PUBLIC_PACKAGES or name not in import_module(module).__all__
    }
    assert set() == private


@pytest.mark.slow
def test_the_reference_builds_strictly(tmp_path: Path) -> None:
    """Every reference resolves, and every docstring is valid."""
    command = ["sphinx", "-q", "-n", "-W", "--keep-going", str(PAGES), str(tmp_path / "api")]
    done = subprocess.run(  # noqa: S603 - our own words
        [sys.executable, "-m", *command, "-d", str(tmp_path / "doctrees")],
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    page = (tmp_path / "api" / "kubesched.html").read_text(encoding="utf-8")
    assert 'id="kubesched.Cluster.why"' in page
