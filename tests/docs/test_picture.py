"""Pictures in the documents show what their commands print."""

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
    """Return the text of a terminal's picture, line by line in columns."""
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
def test_a_picture_has_every_word_of_the_output(picture: Path) -> None:
    """As a bag of words, because terminals break lines."""
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


def test_the_readme_has_a_picture() -> None:
    """It is one of those that are checked."""
    assert "docs/images/explain.svg" in (ROOT / "README.md").read_text(encoding="utf-8")
    assert ROOT / "docs" / "images" / "explain.svg" in PICTURES


@pytest.mark.parametrize("picture", PICTURES, ids=lambda picture: picture.name)
def test_pictures_have_at_most_80_columns(picture: Path) -> None:
    """A common terminal's width."""
    assert max(len(line) for line in _screen(picture)) <= 80
