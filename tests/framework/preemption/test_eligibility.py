"""Tests of which pods may preempt others, and which are kept first."""

from __future__ import annotations

import pytest

from kubesched.framework.preemption.eligibility import (
    by_importance,
    has_lower_priority_pods,
    is_terminating_by_preemption,
    why_not_eligible,
)
from kubesched.framework.status import NodeToStatus, Status
from kubesched.testing.builders import PodFields, make_node, make_pod, make_pod_info, make_snapshot

from .cluster import NEVER, NO_CPU, Json, time

TERMINATING: PodFields = {"metadata": {"deletionTimestamp": time(1)}}
PREEMPTED = {"type": "DisruptionTarget", "status": "True", "reason": "PreemptionByScheduler"}
TERMINATING_VICTIM: PodFields = {**TERMINATING, "status": {"conditions": [PREEMPTED]}}
NOMINATED_REASON = "not eligible due to a terminating pod on the nominated node."
NOMINATED: PodFields = {"nominated_node_name": "n1"}
NEVER_REASON = "not eligible due to preemptionPolicy=Never."


@pytest.mark.parametrize(
    ("metadata", "condition", "expected"),
    [
        pytest.param({"deletionTimestamp": time(1)}, {}, True, id="preempted"),
        pytest.param({}, {}, False, id="not-deleted-yet"),
        pytest.param({"deletionTimestamp": time(1)}, {"status": "False"}, False, id="false"),
        pytest.param(
            {"deletionTimestamp": time(1)}, {"reason": "EvictionByEvictionAPI"}, False, id="evicted"
        ),
        pytest.param({"deletionTimestamp": time(1)}, {"type": "Ready"}, False, id="another-type"),
    ],
)
def test_is_terminating_by_preemption(metadata: Json, condition: Json, expected: bool) -> None:
    """Only a pod that a scheduler preempted, and that is being deleted, counts."""
    pod = make_pod("p", metadata=metadata, status={"conditions": [{**PREEMPTED, **condition}]})
    assert expected == is_terminating_by_preemption(pod)


@pytest.mark.parametrize(
    ("preemptor", "status", "victim", "expected"),
    [
        pytest.param({}, NO_CPU, TERMINATING_VICTIM, "", id="not-nominated"),
        pytest.param(NOMINATED, NO_CPU, TERMINATING_VICTIM, NOMINATED_REASON, id="waits"),
        pytest.param(NOMINATED, NEVER, TERMINATING_VICTIM, "", id="eviction-does-not-help"),
        pytest.param({"nominated_node_name": "n2"}, NO_CPU, TERMINATING_VICTIM, "", id="elsewhere"),
        pytest.param({"nominated_node_name": "x"}, NO_CPU, TERMINATING_VICTIM, "", id="node-gone"),
        pytest.param(NOMINATED, NO_CPU, {}, "", id="no-victim-terminates"),
        pytest.param(NOMINATED, NO_CPU, TERMINATING, "", id="terminates-for-another-reason"),
        pytest.param(
            {**NOMINATED, "priority": 5},
            NO_CPU,
            TERMINATING_VICTIM,
            "",
            id="terminating-pod-is-not-of-lower-priority",
        ),
        pytest.param(
            {"spec": {"preemptionPolicy": "Never"}}, NO_CPU, {}, NEVER_REASON, id="policy-never"
        ),
        pytest.param(
            {"spec": {"preemptionPolicy": "PreemptLowerPriority"}}, NO_CPU, {}, "", id="policy"
        ),
    ],
)
def test_eligibility(
    preemptor: PodFields, status: Status, victim: PodFields, expected: str
) -> None:
    """A pod may not preempt if its policy forbids it or while its victims terminate."""
    fields: PodFields = {"priority": 10, **preemptor}
    pod = make_pod_info("p", **fields)
    bound: PodFields = {"node_name": "n1", "priority": 5, **victim}
    snapshot = make_snapshot([make_node("n1"), make_node("n2")], [make_pod("v", **bound)])
    statuses = NodeToStatus.of([status, NO_CPU])
    assert expected == why_not_eligible(pod, snapshot.nodes, statuses)


def test_has_lower_priority_pods() -> None:
    """The lowest priority shows whether any pod can be a victim."""
    nodes = make_snapshot([make_node("n1")], [make_pod("v", node_name="n1", priority=5)]).nodes
    assert has_lower_priority_pods(make_pod_info("p", priority=6), nodes)
    assert not has_lower_priority_pods(make_pod_info("p", priority=5), nodes)


def test_importance() -> None:
    """Higher priority first, then older; pods that have not started last, the latest first."""
    pods = [
        make_pod_info("unstarted-1", priority=1),
        make_pod_info("young", priority=1, start_time=time(9)),
        make_pod_info("unstarted-2", priority=1),
        make_pod_info("old", priority=1, start_time=time(3)),
        make_pod_info("high", priority=2, start_time=time(9)),
        make_pod_info("none"),
        make_pod_info("negative", priority=-1, start_time=time(1)),
    ]
    expected = ["high", "old", "young", "unstarted-2", "unstarted-1", "none", "negative"]
    assert expected == [pod.name for pod in by_importance(pods)]
