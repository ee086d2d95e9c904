"""Conditions of pods and their transition times."""

from __future__ import annotations

from kubesched.api.conditions import ConditionPatch
from kubesched.simulator.object_server import with_condition
from kubesched.testing.builders import make_pod

NO = ConditionPatch("PodScheduled", "False", "Unschedulable", "no room")


def test_an_equal_condition_changes_nothing() -> None:
    """The pod is the same object."""
    pod = with_condition(make_pod(), NO, 0.0)
    assert pod is with_condition(pod, NO, 5.0)


def test_the_transition_time_changes_with_the_status_only() -> None:
    """Not with reason and message."""
    pod = with_condition(make_pod(), NO, 1.0)
    pod = with_condition(pod, ConditionPatch("PodScheduled", "False", "Other", "x"), 5.0)
    (condition,) = pod.status.conditions
    assert (condition.reason, condition.last_transition_time) == ("Other", "2026-01-01T00:00:01Z")
    pod = with_condition(pod, ConditionPatch("PodScheduled", "True", "", ""), 9.0)
    (condition,) = pod.status.conditions
    assert condition.last_transition_time == "2026-01-01T00:00:09Z"


def test_each_type_has_one_condition() -> None:
    """In the order of their first writes."""
    pod = with_condition(make_pod(), NO, 0.0)
    pod = with_condition(pod, ConditionPatch("Ready", "False", "", ""), 0.0)
    pod = with_condition(pod, ConditionPatch("PodScheduled", "True", "", ""), 0.0)
    assert [(c.type, c.status) for c in pod.status.conditions] == [
        ("PodScheduled", "True"),
        ("Ready", "False"),
    ]
