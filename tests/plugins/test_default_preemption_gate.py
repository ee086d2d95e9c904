"""Tests of DefaultPreemption's gate before the queue, of its events and of its arguments."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from kubesched.api.field_errors import ConfigError
from kubesched.framework.cluster_event import POD, Action, ClusterEvent
from kubesched.framework.status import SUCCESS, Status, unresolvable
from kubesched.plugins.default_preemption import DefaultPreemption, DefaultPreemptionArgs
from kubesched.testing.builders import make_pod, make_pod_info, make_snapshot
from kubesched.testing.handle import FakeHandle
from tests.scheduler.running import make_group

# The gate before the queue.


WAITING = unresolvable("waiting for the preemption for this pod to be finished")
GROUP_WAITING = unresolvable("waiting for the preemption for this pod group to be finished")
GROUP_GATES = {"GenericWorkload": True, "GangScheduling": True, "WorkloadAwarePreemption": True}


@pytest.mark.parametrize(
    ("gates", "running", "group_name", "expected"),
    [
        pytest.param({}, "p", None, WAITING, id="same-pod"),
        pytest.param({}, "other", None, SUCCESS, id="another-pod"),
        pytest.param({"SchedulerAsyncPreemption": False}, "p", None, SUCCESS, id="gate-off"),
        pytest.param({}, "uid-g", "g", SUCCESS, id="groups-do-not-preempt"),
        pytest.param(GROUP_GATES, "uid-g", "g", GROUP_WAITING, id="same-group"),
        pytest.param(GROUP_GATES, "uid-other", "g", SUCCESS, id="another-group"),
        pytest.param(GROUP_GATES, "p", "g", SUCCESS, id="the-group-counts-not-the-pod"),
        pytest.param(GROUP_GATES, "p", "missing", SUCCESS, id="no-group"),
        pytest.param(GROUP_GATES, "p", None, WAITING, id="pod-without-group"),
    ],
)
def test_pre_enqueue(
    gates: Mapping[str, bool], running: str, group_name: str | None, expected: Status
) -> None:
    """The preemptor waits while its victims are being evicted."""
    handle = FakeHandle(gates)
    handle.provide(is_preempting=running.__eq__)
    plugin = DefaultPreemption(DefaultPreemptionArgs(), handle)
    spec = {"schedulingGroup": {"podGroupName": group_name}} if group_name else {}
    snapshot = make_snapshot(objects=[make_group("g")])
    pod = make_pod_info("p", uid="p", spec=spec)
    assert expected == plugin.pre_enqueue(pod, snapshot)
    if plugin.events_to_register():
        assert [not expected.is_success] * 2 == plugin.still_gates([pod, pod], snapshot)


def test_pre_enqueue_without_evictions() -> None:
    """A handle without evictions rejects no pod."""
    plugin = DefaultPreemption(DefaultPreemptionArgs(), FakeHandle())
    assert plugin.pre_enqueue(make_pod_info("p"), make_snapshot()).is_success


def test_events() -> None:
    """A pod deletion evaluates the gate again, but does not cause a retry."""
    (registration,) = DefaultPreemption(DefaultPreemptionArgs(), FakeHandle()).events_to_register()
    assert ClusterEvent(POD, Action.DELETE) == registration.event
    assert registration.hint is not None
    assert not registration.hint(make_pod("p"), make_pod("gone"), None)
    without = FakeHandle({"SchedulerAsyncPreemption": False})
    assert not DefaultPreemption(DefaultPreemptionArgs(), without).events_to_register()


# Arguments.

ZERO = "Invalid value: 0: cannot be zero at the same time as"
BOTH_ZERO = [
    f"args.minCandidateNodesPercentage: {ZERO} minCandidateNodesAbsolute",
    f"args.minCandidateNodesAbsolute: {ZERO} minCandidateNodesPercentage",
]


@pytest.mark.parametrize(
    ("raw", "expected"),
    [
        pytest.param(None, DefaultPreemptionArgs(), id="defaults"),
        pytest.param({}, DefaultPreemptionArgs(), id="empty"),
        pytest.param(
            {
                "apiVersion": "kubescheduler.config.k8s.io/v1",
                "kind": "DefaultPreemptionArgs",
                "minCandidateNodesPercentage": 0,
            },
            DefaultPreemptionArgs(min_candidate_nodes_percentage=0),
            id="absolute-alone",
        ),
        pytest.param(
            {"minCandidateNodesPercentage": 100, "minCandidateNodesAbsolute": 0},
            DefaultPreemptionArgs(
                min_candidate_nodes_percentage=100, min_candidate_nodes_absolute=0
            ),
            id="percentage-alone",
        ),
    ],
)
def test_args(raw: dict[str, object] | None, expected: DefaultPreemptionArgs) -> None:
    """Absent arguments have defaults."""
    assert expected == DefaultPreemption.decode_args(raw, FakeHandle(), "args")


@pytest.mark.parametrize(
    ("percentage", "absolute", "potential", "wanted"),
    [
        pytest.param(10, 100, 5, 5, id="never-more-than-there-are"),
        pytest.param(10, 100, 500, 100, id="the-absolute-number"),
        pytest.param(10, 100, 5000, 500, id="the-percentage"),
        pytest.param(10, 1, 19, 1, id="percentage-rounds-down"),
        pytest.param(40, 1, 5, 2, id="two-of-five"),
        pytest.param(100, 0, 7, 7, id="all"),
        pytest.param(10, 0, 9, 0, id="none"),
    ],
)
def test_candidates_wanted(percentage: int, absolute: int, potential: int, wanted: int) -> None:
    """The larger of percentage and absolute number applies."""
    args = DefaultPreemptionArgs(
        min_candidate_nodes_percentage=percentage, min_candidate_nodes_absolute=absolute
    )
    assert wanted == args.wanted_among(potential)


@pytest.mark.parametrize(
    ("raw", "errors"),
    [
        pytest.param(
            {"minCandidateNodesPercentage": -1, "minCandidateNodesAbsolute": -1},
            [
                "args.minCandidateNodesPercentage: Invalid value: -1: not in valid range [0, 100]",
                "args.minCandidateNodesAbsolute: Invalid value: -1: not in valid range [0, inf)",
            ],
            id="negative",
        ),
        pytest.param(
            {"minCandidateNodesPercentage": 101},
            ["args.minCandidateNodesPercentage: Invalid value: 101: not in valid range [0, 100]"],
            id="more-than-all",
        ),
        pytest.param(
            {"minCandidateNodesPercentage": 0, "minCandidateNodesAbsolute": 0},
            BOTH_ZERO,
            id="both-zero",
        ),
    ],
)
def test_faulty_args(raw: dict[str, object], errors: list[str]) -> None:
    """All field errors are found, with their fields."""
    with pytest.raises(ConfigError) as raised:
        DefaultPreemption.decode_args(raw, FakeHandle(), "args")
    assert errors == [str(field_error) for field_error in raised.value.errors]
