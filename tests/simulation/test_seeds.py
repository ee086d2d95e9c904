"""The first seeds of `make sim`, and that it finds and tells violations."""

from __future__ import annotations

from contextlib import suppress
from unittest.mock import patch

import pytest

from kubesched.simulator.checkers import Checkers, InvariantError

from . import playing
from .__main__ import told
from .playing import ThoroughCheckers, play, violation
from .scenarios import PLANS, scenario


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(20))
def test_nothing_is_violated(seed: int) -> None:
    """Each seed under one plan in turn; `make sim` plays each under all."""
    plans = list(PLANS)
    assert play(seed, plans[seed % len(plans)]).checks > 0


def test_plans_share_the_scenario() -> None:
    """Only name, faults and extenders differ between the plans of a seed, and only seeds draw."""
    first, second = scenario(3, "none"), scenario(3, "all")
    assert {"name", "faults", "scheduler"} == {key for key in first if first[key] != second[key]}
    assert first == scenario(3, "none")


def test_violations_are_told() -> None:
    """What is raised in a run comes back with seed, plan, commit and the command for it."""

    def broken(self: Checkers, now: float) -> None:
        raise InvariantError("node early-0 is promised too much")

    with patch.object(ThoroughCheckers, "check", broken):
        problem = violation(1, "none")
    assert "InvariantError: node early-0 is promised too much" == problem
    text = told((1, "none"), problem)
    assert "seed 1, plan none, commit " in text
    assert "-m tests.simulation --seed 1 --plan none" in text


@pytest.mark.slow
def test_runs_that_do_not_end_are_violations() -> None:
    """Not even code that catches every exception keeps a run from being given up."""

    def stuck(self: Checkers, now: float) -> None:
        while True:
            with suppress(Exception):
                sum(range(1000))

    with (
        patch.object(ThoroughCheckers, "check", stuck),
        patch.object(playing, "_PATIENCE_SECONDS", 0.25),
    ):
        problem = violation(1, "none")
    assert "OutOfPatience: not at its end after 0.25 s of CPU time" == problem
