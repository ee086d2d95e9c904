"""The explanation of a preemption."""

from __future__ import annotations

from kubesched.explain.explain import explain_decision, explain_preemption
from kubesched.explain.report import PreemptionCandidate, PreemptionExplanation, Victim
from kubesched.framework.plugin import PostFilterResult
from kubesched.framework.preemption.report import Candidate, PreemptionReport
from kubesched.framework.status import SUCCESS, NodeToStatus, unresolvable, unschedulable
from kubesched.scheduler.trace import Trace
from kubesched.testing.builders import make_pod_info
from tests.framework.preemption.cluster import report_of
from tests.scheduler.toys import cluster, cycle_of, toy

FULL = unschedulable("Insufficient cpu")
NEVER = unresolvable("taint")


def test_not_eligible() -> None:
    """A pod that may not preempt has the reason and nothing else."""
    report = PreemptionReport(reason="because")
    found = explain_preemption(report, NodeToStatus.passing(0))
    assert found == PreemptionExplanation(eligible=False, reason="because")


def test_candidates_and_choice() -> None:
    """Candidates are sorted by name, victims by importance, with the deciding criterion."""
    victims = tuple(
        make_pod_info(name, priority=priority) for name, priority in (("v1", 5), ("v2", 1))
    )
    candidates = [Candidate("b", victims[1:]), Candidate("a", victims, 1)]
    report = report_of(candidates, {"d": FULL, "c": FULL})
    statuses = NodeToStatus.of([FULL, FULL, FULL, FULL, NEVER])
    found = explain_preemption(report, statuses)
    assert found.candidates == (
        PreemptionCandidate("a", (Victim("default/v1", 5), Victim("default/v2", 1)), 1),
        PreemptionCandidate("b", (Victim("default/v2", 1),)),
    )
    assert found.chosen == "b"
    assert found.decided_by == "fewest PodDisruptionBudget violations"
    assert found.ties == ()
    assert [node.node for node in found.not_helped] == ["c", "d"]
    assert found.not_tried == 1


def test_ties() -> None:
    """Candidates that tie are named."""
    victim = make_pod_info("v", start_time="2026-01-01T00:00:00Z")
    report = report_of([Candidate(name, (victim,)) for name in "ba"], {})
    found = explain_preemption(report, NodeToStatus.of([FULL, FULL]))
    assert found.ties == ("a", "b")
    assert found.chosen == "a"


def test_a_plugin_without_a_report() -> None:
    """Its victims are shown on the node that it nominates, the most important first."""
    victims = tuple(make_pod_info(name, priority=at) for at, name in enumerate(("v0", "v1")))
    quota = toy(
        "Quota",
        filter={"a": FULL},
        post_filter=PostFilterResult(SUCCESS, "a", victims),
    )
    cycle, snapshot, trace = cycle_of(quota), cluster("a"), Trace()
    decision = cycle.schedule_one(make_pod_info(), snapshot, trace)
    found = explain_decision(cycle.profile, snapshot, trace, decision).preemption
    assert found == PreemptionExplanation(
        eligible=True,
        candidates=(
            PreemptionCandidate("a", (Victim("default/v1", 1), Victim("default/v0", 0)), None),
        ),
        chosen="a",
    )
