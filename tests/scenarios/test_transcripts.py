"""Every transcript says what the running scheduler does."""

from __future__ import annotations

from pathlib import Path

import pytest

from .__main__ import HERE, transcripts
from .running import played
from .transcript import rewritten, steps_of


@pytest.mark.parametrize(
    "path", [pytest.param(path, id=f"{path.parent.name}/{path.stem}") for path in transcripts()]
)
def test_transcript(path: Path) -> None:
    """What follows each step is what is written under it; `make rewrite` writes it."""
    text = path.read_text()
    steps = steps_of(text)
    outcomes = iter(played(steps))
    assert text == rewritten(steps, lambda _: next(outcomes)), path.relative_to(HERE)
