"""Every transcript equals what the running scheduler does."""

from __future__ import annotations

from pathlib import Path

import pytest

from .__main__ import HERE, transcripts
from .running import played
from .transcript import rewritten, steps_of


@pytest.mark.parametrize(
    "path", [pytest.param(path, id=f"{path.parent.name}/{path.stem}") for path in transcripts()]
)
def test_transcript_is_current(path: Path) -> None:
    """Step by step; `make rewrite` renews it."""
    text = path.read_text()
    steps = steps_of(text)
    outcomes = iter(played(steps))
    assert text == rewritten(steps, lambda _: next(outcomes)), path.relative_to(HERE)
