"""The pictures of the documents hold the text that their commands print."""

from __future__ import annotations

import shlex
import subprocess
import sys
from collections import Counter, defaultdict
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

ROOT = Path(__file__).resolve().parents[2]
PICTURES = sorted((ROOT / "docs" / "images").glob("*.svg"))
SVG = "{http://www.w3.org/2000/svg}"


def _screen(picture: Path) -> list[str]:
    """Return the text of a terminal's picture, line by line, each part in its columns."""
    lines: dict[float, str] = defaultdict(str)
    for text in ET.parse(picture).getroot().iter(f"{SVG}text"):  # noqa: S314 - our own file
        if "clip-path" in text.attrib and text.text:  # not the title
            column = round(
                float(text.attrib["x"]) * len(text.text) / float(text.attrib["textLength"])
            )
            lines[float(text.attrib["y"])] = (
                lines[float(text.attrib["y"])].ljust(column) + text.text
            )
    return [lines[y].replace("\xa0", " ").rstrip() for y in sorted(lines)]


def _words(text: str) -> Counter[str]:
    return Counter(word for word in text.split() if set(word) != {"─"})


@pytest.mark.slow
@pytest.mark.parametrize("picture", PICTURES, ids=lambda picture: picture.name)
def test_a_picture_holds_every_word_that_its_command_prints(picture: Path) -> None:
    """A terminal breaks lines, also in heads of tables, so words are compared as a bag."""
    prompt, *shown = _screen(picture)
    assert prompt.startswith("$ kubesched ")
    command = shlex.split(prompt)[1:]
    printed = subprocess.run(  # noqa: S603 - our own command
        [Path(sys.executable).parent / command[0], *command[1:]],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        encoding="utf-8",
        check=True,
    ).stdout
    assert _words(printed)
    assert _words(printed) == _words("\n".join(shown))


def test_there_is_a_picture() -> None:
    """The test above has something to look at, and a picture in the README is one of them."""
    assert "docs/images/explain.svg" in (ROOT / "README.md").read_text(encoding="utf-8")
    assert ROOT / "docs" / "images" / "explain.svg" in PICTURES


@pytest.mark.parametrize("picture", PICTURES, ids=lambda picture: picture.name)
def test_a_picture_is_legible_on_80_columns(picture: Path) -> None:
    """No line is wider than a common terminal."""
    assert max(len(line) for line in _screen(picture)) <= 80
