"""The live demo ends by itself and shows all of its parts."""

from __future__ import annotations

import re
import subprocess
import sys

import pytest

from .running import EXAMPLES


def _command() -> list[str]:
    """Return the command of `make demo` from the Makefile."""
    text = (EXAMPLES.parent / "Makefile").read_text(encoding="utf-8")
    recipe = text.partition("\ndemo:")[2].partition("\n\n")[0].replace("\\\n", " ")
    words = recipe.partition("@")[2].split()
    assert "$(BIN)/kubesched" == words[0]
    command = [sys.executable, "-m", "kubesched", *words[1:]]
    return [sys.executable if word == "$(BIN)/python" else word for word in command]


@pytest.mark.slow
def test_the_demo_shows_placement_preemption_failover_and_an_explanation() -> None:
    """In under a minute, and its cluster is gone afterwards."""
    found = subprocess.run(  # noqa: S603 - our own demo
        _command(),
        cwd=EXAMPLES.parent,
        capture_output=True,
        encoding="utf-8",
        timeout=60,
        check=False,
    )
    assert ("", 0) == (found.stderr, found.returncode)
    # What happens to different pods at about the same time is seen in any order.
    chapters = (
        (r"replica A leads",),
        (r"web-\S+ goes to node-\d in zone [abc]", r"batch-\S+ goes to node-\d"),
        (
            r"checkout is nominated to node-\d",
            r"batch-\S+ has to leave node-\d: default-scheduler: preempting to accommodate",
        ),
        (r"checkout goes to node-\d",),
        (r"Pod default/batch-\S+ fits none of 6 nodes\.",),
        (r"replica A is killed",),
        (r"replica B leads",),
        (r"late goes to node-\d",),
    )
    position = 0
    for chapter in chapters:
        matches = [re.compile(pattern).search(found.stdout, position) for pattern in chapter]
        told = [match.start() for match in matches if match is not None]
        assert len(chapter) == len(told), f"{chapter} is not told in {found.stdout[position:]}"
        position = max(told)
