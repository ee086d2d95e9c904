"""The first seeds of `make sim`, and its reports of violations."""

from __future__ import annotations

from contextlib import suppress
from unittest.mock import patch

import pytest

from kubesched.simulator.pod_ledger import Checkers, InvariantError

from . import playing
from .__main__ import violation_text
from .playing import ThoroughCheckers, play, violation
from .scenarios import PLANS, scenario


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(20))
def test_no_invariant_is_violated(seed: int) -> None:
    """Each seed under one plan in turn; `make sim` runs each under all."""
    plans = list(PLANS)
    assert play(seed, plans[seed % len(plans)]).checks > 0


def test_plans_differ_in_failures_only() -> None:
    """Name, faults and extenders."""
    first, second = scenario(3, "none"), scenario(3, "all")
    assert {"name", "faults", "scheduler"} == {key for key in first if first[key] != second[key]}
    assert first == scenario(3, "none")


def test_violations_are_reported() -> None:
    """With seed, plan, commit and the command that repeats them."""

    def broken(self: Checkers, now: float) -> None:
        raise InvariantError("node early-0 is overcommitted")

    with patch.object(ThoroughCheckers, "check", broken):
        problem = violation(1, "none")
    assert "InvariantError: node early-0 is overcommitted" == problem
    text = violation_text((1, "none"), problem)
    assert "seed 1, plan none, commit " in text
    assert "-m tests.simulation --seed 1 --plan none" in text


@pytest.mark.slow
def test_runs_that_do_not_end_are_violations() -> None:
    """Even if their code catches every exception."""

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
