"""Conditions are found by type, and set in place."""

import pytest

from kubesched.api.conditions import conditions_with, find_condition, is_condition_true
from kubesched.api.core import PodCondition

READY = PodCondition(type="Ready", status="True", last_transition_time="2026-01-01T00:00:00Z")
SCHEDULED = PodCondition(type="PodScheduled", status="False")


def test_a_condition_is_found_by_type() -> None:
    """The one of the type, or None."""
    assert (SCHEDULED, None) == (
        find_condition((READY, SCHEDULED), "PodScheduled"),
        find_condition((READY, SCHEDULED), "Initialized"),
    )


@pytest.mark.parametrize(
    ("type_", "expected"), [("Ready", True), ("PodScheduled", False), ("Initialized", False)]
)
def test_only_status_true_is_true(type_: str, *, expected: bool) -> None:
    """False and absent are both not true."""
    assert expected is is_condition_true((READY, SCHEDULED), type_)


@pytest.mark.parametrize(
    ("status", "time"), [("True", "2026-01-01T00:00:00Z"), ("False", "2026-02-02T00:00:00Z")]
)
def test_a_condition_is_set_in_place(status: str, time: str) -> None:
    """An equal status keeps its transition time."""
    new = PodCondition(type="Ready", status=status, last_transition_time="2026-02-02T00:00:00Z")
    first, second = conditions_with((READY, SCHEDULED), new)
    assert (status, time, SCHEDULED) == (first.status, first.last_transition_time, second)


def test_a_new_condition_comes_last() -> None:
    """Those of other types stay as they are."""
    assert (SCHEDULED, READY) == conditions_with((SCHEDULED,), READY)
