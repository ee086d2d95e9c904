"""Conditions: set once, transition times kept."""

from __future__ import annotations

from kubesched.api.writes import PodConditionPatch
from kubesched.simulator.object_server import with_condition
from kubesched.testing.builders import make_pod

NO = PodConditionPatch("PodScheduled", "False", "Unschedulable", "no room")


def test_same_condition_is_the_same_pod() -> None:
    """Nothing changes, so nothing is to be written."""
    pod = with_condition(make_pod(), NO, 0.0)
    assert pod is with_condition(pod, NO, 5.0)


def test_transition_time_moves_with_the_status_only() -> None:
    """Other words leave the time of the transition."""
    pod = with_condition(make_pod(), NO, 1.0)
    pod = with_condition(pod, PodConditionPatch("PodScheduled", "False", "Other", "x"), 5.0)
    (condition,) = pod.status.conditions
    assert (condition.reason, condition.last_transition_time) == ("Other", "2026-01-01T00:00:01Z")
    pod = with_condition(pod, PodConditionPatch("PodScheduled", "True", "", ""), 9.0)
    (condition,) = pod.status.conditions
    assert condition.last_transition_time == "2026-01-01T00:00:09Z"


def test_conditions_stand_side_by_side() -> None:
    """Another type is another condition; order is that of arrival."""
    pod = with_condition(make_pod(), NO, 0.0)
    pod = with_condition(pod, PodConditionPatch("Ready", "False", "", ""), 0.0)
    pod = with_condition(pod, PodConditionPatch("PodScheduled", "True", "", ""), 0.0)
    assert [(c.type, c.status) for c in pod.status.conditions] == [
        ("PodScheduled", "True"),
        ("Ready", "False"),
    ]
