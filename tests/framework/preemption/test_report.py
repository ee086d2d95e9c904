"""Tests of the report and of the result of post_filter."""

from __future__ import annotations

import pytest

from kubesched.framework.preemption.report import Criterion, PreemptionReport
from kubesched.framework.preemption.victims import NO_VICTIMS
from kubesched.framework.status import SUCCESS, Status, failure, unschedulable

from .cluster import NO_CPU, candidate, report_of

LOW, HIGH = 0, 1000
NEVER_REASON = "not eligible due to preemptionPolicy=Never."


def test_report_of_candidates() -> None:
    """The result nominates the chosen node and names its victims."""
    one, two = candidate("n1", HIGH), candidate("n2", LOW)
    report = report_of([one, two], {"n3": NO_CPU})
    assert (True, ("n2",), "n2", Criterion.HIGHEST_PRIORITY) == (
        report.eligible,
        report.best,
        report.chosen,
        report.decided_by,
    )
    result = report.result(3)
    assert (SUCCESS, "n2", two.victims, report) == (
        result.status,
        result.nominated_node_name,
        result.victims,
        result.details,
    )


def test_report_after_extenders() -> None:
    """The choice is repeated among the candidates that extenders return."""
    one, two = candidate("n1", HIGH), candidate("n2", LOW)
    report = report_of([one, two], {}).narrowed_to([one])
    assert ((one,), "n1", Criterion.ONLY_CANDIDATE) == (
        report.candidates,
        report.chosen,
        report.decided_by,
    )
    nothing = report.narrowed_to([])
    assert ((), (), "", None) == (
        nothing.candidates,
        nothing.best,
        nothing.chosen,
        nothing.decided_by,
    )


def test_extenders_may_allow_no_candidate() -> None:
    """If extenders leave no candidate, the nomination stays as it is."""
    report = report_of([candidate("n1", LOW)], {"n2": failure("a")})
    result = report.narrowed_to([]).result(2)
    expected = unschedulable("preemption: no candidate node for preemption")
    assert (expected, None, ()) == (result.status, result.nominated_node_name, result.victims)


@pytest.mark.parametrize(
    ("statuses", "status", "nominated_node_name"),
    [
        pytest.param(
            {"n1": NO_VICTIMS, "n2": NO_CPU},
            unschedulable(
                "preemption: 0/4 nodes are available: 1 Insufficient cpu, "
                "1 No preemption victims found for incoming pod, "
                "2 Preemption is not helpful for scheduling."
            ),
            "",
            id="no-candidate-clears-the-nomination",
        ),
        pytest.param(
            {},
            unschedulable(
                "preemption: 0/4 nodes are available: 4 Preemption is not helpful for scheduling."
            ),
            "",
            id="nothing-to-try",
        ),
        pytest.param(
            {"n1": failure("a"), "n2": NO_CPU},
            failure("preemption: a"),
            None,
            id="an-error-is-an-error",
        ),
        pytest.param(
            {"n1": failure("a"), "n2": failure("a")}, failure("preemption: a"), None, id="said-once"
        ),
        pytest.param(
            {"n1": failure("b"), "n2": failure("a"), "n3": failure("b")},
            failure("preemption: [b, a]"),
            None,
            id="several-errors",
        ),
    ],
)
def test_result_without_candidates(
    statuses: dict[str, Status], status: Status, nominated_node_name: str | None
) -> None:
    """Without candidates, the result has the reason."""
    report = report_of([], statuses)
    result = report.result(4)
    assert (status, nominated_node_name, ()) == (
        result.status,
        result.nominated_node_name,
        result.victims,
    )


def test_errors_are_forgotten_when_there_is_a_candidate() -> None:
    """An error on one node does not prevent preemption on another."""
    one = candidate("n1", LOW)
    result = report_of([one], {"n2": failure("a")}).result(2)
    assert (SUCCESS, "n1") == (result.status, result.nominated_node_name)


def test_result_of_a_pod_that_may_not_preempt() -> None:
    """The nomination of a pod that may not preempt stays as it is."""
    result = PreemptionReport(reason=NEVER_REASON).result(2)
    expected = unschedulable(f"preemption: {NEVER_REASON}")
    assert (expected, None) == (result.status, result.nominated_node_name)


def test_text_of_many_equal_statuses() -> None:
    """Thousands of equal statuses are one entry."""
    text = (
        "preemption: 0/3001 nodes are available: 1 Preemption is not helpful for scheduling, "
        "3000 No preemption victims found for incoming pod."
    )
    report = report_of([], {f"n{at}": NO_VICTIMS for at in range(3000)})
    assert unschedulable(text) == report.result(3001).status
