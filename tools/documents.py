"""Runs the commands and Python programs in the documents and updates their output there.

A `console` block has commands after `$` and their output. A `python` block is a program, and a
`text` block right below it is its output. A block that begins with `# examples/...` is a copy of
that file. `sh` blocks are not run; their first line states what they need. Commands run in an empty
directory with links to the repository's files, as in a fresh clone. Output on stderr other than
progress is an error unless the page shows it (`2>&1`), because a reader would see it. A command
that fails and prints nothing is an error, too.

Pages show what a terminal of 80 columns does, and for pipes what they print there.

`--check` only compares, and exits 1 if a page is stale. Commands are looked up in the directory
`COMMANDS_FIRST`, if that is set, beside this Python, and on the path.
"""

from __future__ import annotations

import difflib
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PLACES = ("README.md", "docs/**/*.md", "examples/**/*.md")

_BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
_PROGRESS = re.compile(r"[\d,]+ scheduling cycles in ")
_FILE = re.compile(r"^# (examples/\S+\.(?:py|yaml))\n")


def pages() -> list[Path]:
    """Return all pages, sorted by name."""
    return sorted(page for place in PLACES for page in ROOT.glob(place))


def renewed(text: str) -> str:
    """Return a page with all commands run again and their output updated."""
    with tempfile.TemporaryDirectory() as name:
        directory = Path(name)
        for entry in ROOT.iterdir():
            if not entry.name.startswith("."):
                (directory / entry.name).symlink_to(entry)
        return "".join(_renewed_parts(text, directory))


def _renewed_parts(text: str, directory: Path) -> Iterator[str]:
    at = 0
    printed: str | None = None
    for block in _BLOCK.finditer(text):
        between = text[at : block.start()]
        yield between
        kind, body = block.groups()
        shown = printed if kind == "text" and not between.strip() else None
        printed = None
        if (file := _FILE.match(body)) is not None:
            body = _file_block(file.group(1))
        elif kind == "console":
            body = _console(body, directory)
        elif kind == "python":
            printed = _run([sys.executable, "-c", body], directory)
        elif shown is not None:
            body = shown
        yield f"```{kind}\n{body}```"
        at = block.end()
    yield text[at:]


def _file_block(name: str) -> str:
    return f"# {name}\n{(ROOT / name).read_text(encoding='utf-8')}"


def _console(body: str, directory: Path) -> str:
    parts: list[str] = []
    printed = ""
    for command in re.findall(r"^\$ (.*)$", body, re.MULTILINE):
        between = "\n" if printed else ""
        printed = _run(["bash", "-c", command], directory)
        parts.append(f"{between}$ {command}\n{printed}")
    return "".join(parts)


def _run(command: list[str], directory: Path) -> str:
    first = os.environ.get("COMMANDS_FIRST", "")
    places = (first, str(Path(sys.executable).parent), os.environ["PATH"])
    path = os.pathsep.join(filter(None, places))
    found = subprocess.run(  # noqa: S603 - commands of our documents
        command,
        cwd=directory,
        env={
            **os.environ,
            "PATH": path,
            "LC_ALL": "C",
            "PYTHONUTF8": "1",
            "KUBESCHED_DEBUG": "",
            "PYTHONUNBUFFERED": "",
            # Shells do not export it: a pipe has no width.
            "COLUMNS": "" if " | " in command[-1] else "80",
        },
        stdin=subprocess.DEVNULL,
        capture_output=True,
        encoding="utf-8",
        check=False,
    )
    problems = [line for line in found.stderr.splitlines() if not _PROGRESS.match(line)]
    if problems or (found.returncode and not found.stdout):
        sys.exit("\n".join((command[-1], f"exits with {found.returncode}:", *problems)))
    output = "".join(f"{line.rstrip()}\n" for line in found.stdout.splitlines())
    return output.removesuffix("\n\n") + "\n" if output.endswith("\n\n") else output


def main() -> int:
    """Update the pages, or compare them with `--check`."""
    names = [argument for argument in sys.argv[1:] if not argument.startswith("-")]
    stale = False
    for page in [Path(name).resolve() for name in names] or pages():
        old = page.read_text(encoding="utf-8")
        new = renewed(old)
        if new == old:
            continue
        stale = True
        if "--check" in sys.argv[1:]:
            name = str(page.relative_to(ROOT))
            lines = (old.splitlines(keepends=True), new.splitlines(keepends=True))
            sys.stderr.writelines(difflib.unified_diff(*lines, name, f"{name} run again"))
        else:
            page.write_text(new, encoding="utf-8")
    return 1 if stale and "--check" in sys.argv[1:] else 0


if __name__ == "__main__":
    sys.exit(main())
