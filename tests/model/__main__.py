"""Runs many long histories of a live cluster against the model: `python -m tests.model`."""

from __future__ import annotations

import argparse
import logging
import sys
from collections.abc import Sequence

from hypothesis import Phase, settings
from hypothesis.stateful import run_state_machine_as_test

from .test_live_histories import LiveHistory


def main(arguments: Sequence[str] | None = None) -> int:
    """Run; a step that the model forbids is raised, with the shortest history that leads to it."""
    parser = argparse.ArgumentParser(prog="python -m tests.model", description=__doc__)
    parser.add_argument("--histories", type=int, default=2000, help="how many (2000)")
    parser.add_argument("--steps", type=int, default=50, help="how long, at most (50)")
    options = parser.parse_args(arguments)
    logging.disable(logging.ERROR)
    run_state_machine_as_test(
        LiveHistory,
        settings=settings(
            max_examples=options.histories,
            stateful_step_count=options.steps,
            deadline=None,
            database=None,
            phases=[Phase.generate, Phase.shrink],
        ),
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
