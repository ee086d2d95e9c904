"""Collects the `Differs:` lines of all modules into docs/divergences.md.

`--check` only compares and exits 1 if the page is stale.
"""

from __future__ import annotations

import ast
import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "divergences.md"

_HEAD = """# Differences from kube-scheduler

The docstring of every module that mirrors kube-scheduler 1.36 has a line on differences
(`Differs:`). `tools/divergences.py` collects those lines on this page. A module that is not listed
has no differences.

| module | difference |
|---|---|
"""


def differences() -> dict[str, str]:
    """Return module name -> its `Differs:` text, for modules that differ."""
    found: dict[str, str] = {}
    for path in sorted((ROOT / "src").rglob("*.py")):
        text = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or ""
        match = re.search(r"^Differs:\s*(.+?)(?=^\S|\Z)", text, re.DOTALL | re.MULTILINE)
        if match is None:
            continue
        words = " ".join(match.group(1).split())
        if not words.lower().startswith("nothing"):
            module = path.relative_to(ROOT / "src").with_suffix("").as_posix().replace("/", ".")
            found[module.removesuffix(".__init__")] = words
    return found


def page() -> str:
    """Return the page's text."""
    rows = (
        f"| `{module}` | {words.replace('|', chr(92) + '|')} |\n"
        for module, words in differences().items()
    )
    return _HEAD + "".join(rows)


def main() -> int:
    """Write the page, or compare it with `--check`."""
    text = page()
    if "--check" in sys.argv[1:]:
        if PAGE.read_text(encoding="utf-8") == text:
            return 0
        sys.stderr.write(f"{PAGE.relative_to(ROOT)} is stale: run tools/divergences.py\n")
        return 1
    PAGE.write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
