"""Conditions of pod groups in the simulated API server."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from kubesched.api.conditions import ConditionPatch
from kubesched.api.errors import NotFoundError
from kubesched.api.meta import ObjectMeta
from kubesched.api.scheduling import PodGroup
from kubesched.simulator.object_server import ObjectServer, with_group_condition

NAME = "PodGroupScheduled"
REJECTED = ConditionPatch(NAME, "False", "Unschedulable", "no")
GROUP = PodGroup(metadata=ObjectMeta(name="gang", namespace="default"))


def test_a_new_condition_has_a_transition_time() -> None:
    """And all fields of the patch."""
    (condition,) = with_group_condition(GROUP, REJECTED, 1, 5.0).status.conditions
    assert (NAME, "False", "Unschedulable", "no", 1) == (
        condition.type,
        condition.status,
        condition.reason,
        condition.message,
        condition.observed_generation,
    )
    assert condition.last_transition_time is not None


def test_an_equal_condition_changes_nothing() -> None:
    """The group is the same object."""
    group = with_group_condition(GROUP, REJECTED, 1, 5.0)
    assert group is with_group_condition(group, REJECTED, 1, 9.0)


@pytest.mark.parametrize(
    ("patch", "generation", "moves"),
    [
        pytest.param(ConditionPatch(NAME, "False", "Unschedulable", "still"), 1, False, id="words"),
        pytest.param(REJECTED, 2, False, id="generation"),
        pytest.param(ConditionPatch(NAME, "True", "Scheduled", ""), 1, True, id="status"),
    ],
)
def test_the_transition_time_changes_with_the_status_only(
    patch: ConditionPatch, generation: int, moves: bool
) -> None:
    """Not with other fields."""
    before = with_group_condition(GROUP, REJECTED, 1, 5.0)
    after = with_group_condition(before, patch, generation, 9.0)
    (old,), (new,) = before.status.conditions, after.status.conditions
    assert old != new
    assert moves == (old.last_transition_time != new.last_transition_time)


def test_the_server_writes_changes_only() -> None:
    """The first write makes a new version, the second does not."""
    server = ObjectServer(lambda: 0.0)
    group = server.create(GROUP)
    first = server.patch_pod_group_status(group, REJECTED)
    again = server.patch_pod_group_status(group, REJECTED)
    assert first.metadata.resource_version == again.metadata.resource_version
    with pytest.raises(NotFoundError):
        server.patch_pod_group_status(replace(group, metadata=ObjectMeta(name="other")), REJECTED)
