"""Rewrites transcripts with what actually happens: `python -m tests.scenarios [FILE ...]`."""

from __future__ import annotations

import argparse
import logging
import sys
from pathlib import Path

from .running import played
from .transcript import rewritten, steps_of

HERE = Path(__file__).parent


def transcripts() -> list[Path]:
    """Return all transcripts in the order of their names."""
    return sorted(HERE.glob("*/*.txt"))


def rewrite(path: Path) -> bool:
    """Rewrite a transcript; return whether it changed."""
    text = path.read_text()
    steps = steps_of(text)
    outcomes = iter(played(steps))
    new = rewritten(steps, lambda _: next(outcomes))
    path.write_text(new)
    return new != text


def main() -> None:
    """Rewrite the named transcripts, or all."""
    parser = argparse.ArgumentParser(prog="python -m tests.scenarios", description=main.__doc__)
    parser.add_argument("files", nargs="*", metavar="FILE", type=Path)
    files: list[Path] = parser.parse_args().files
    if missing := [str(path) for path in files if not path.is_file()]:
        parser.error(f"there is no file {missing[0]}")
    logging.disable()
    for path in [path.resolve() for path in files] or transcripts():
        if rewrite(path):
            sys.stdout.write(f"{path.relative_to(HERE.parent.parent)}\n")


if __name__ == "__main__":
    main()
