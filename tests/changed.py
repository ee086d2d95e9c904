"""Print the arguments with which pytest checks a change quickly: `python -m tests.changed`.

The tests of modules that differ from the branch main, found by their names; if nothing differs, or
a file has no such tests, or there are many, all tests that are not slow.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path, PurePosixPath
from typing import Final

ROOT: Final = Path(__file__).resolve().parents[1]
FAST: Final = ("-m", "not(slow)")
"""Without a space, so that a shell passes it on as one word."""

_BASE: Final = "main"
_MODULES_MAX: Final = 10


def selection(changed: Iterable[str], root: Path = ROOT) -> Sequence[str]:
    """Return the arguments for changed files, given as paths from the root."""
    found: set[str] = set()
    for name in changed:
        tests = _tests_of(PurePosixPath(name), root)
        if not tests:
            return FAST
        found |= tests
    return sorted(found) if 0 < len(found) <= _MODULES_MAX else FAST


def _tests_of(path: PurePosixPath, root: Path) -> set[str]:
    """Return the modules that test a file, by its name."""
    match path.parts:
        case ("tests", *_) if path.match("test_*.py"):
            tests = [root / path]
        case ("src", "kubesched", *folders, _) if path.suffix == ".py":
            if path.stem == "__init__" and folders:
                *folders, name = folders
            else:
                name = path.stem
            folder = root.joinpath("tests", *folders)
            tests = [folder / f"test_{name}.py", *folder.glob(f"test_{name}_*.py")]
        case _:
            tests = []
    return {test.relative_to(root).as_posix() for test in tests if test.is_file()}


def _git(*words: str) -> str:
    done = subprocess.run(  # noqa: S603 - our own words
        ["git", *words],  # noqa: S607 - whichever git is installed
        cwd=ROOT,
        capture_output=True,
        encoding="utf-8",
        check=False,
    )
    return done.stdout


def _changed() -> list[str]:
    """Return the files that differ from where this branch left main; none without git or main."""
    base = _git("merge-base", "HEAD", _BASE).strip()
    changed = _git("diff", "--name-only", base or "HEAD").splitlines()
    return changed + _git("ls-files", "--others", "--exclude-standard").splitlines()


def main() -> None:
    """Print the arguments."""
    sys.stdout.write(" ".join(selection(_changed())) + "\n")


if __name__ == "__main__":
    main()
