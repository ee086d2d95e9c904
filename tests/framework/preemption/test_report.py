"""The report, the result of post_filter, and the choice between candidates."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubesched.framework.preemption.report import Candidate, Criterion, PreemptionReport
from kubesched.framework.preemption.victims import NO_VICTIMS
from kubesched.framework.status import SUCCESS, Status, failure, unschedulable
from kubesched.testing.builders import make_pod_info

from .cluster import NO_CPU, candidate, report_of, time

NEGATIVE, LOW, MIDDLE, HIGH, HUGE = -100, 0, 100, 1000, 1_000_000_000
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


# The choice between candidates.


@pytest.mark.parametrize(
    ("priorities", "best", "decided_by"),
    [
        pytest.param([(LOW,)], ["n0"], Criterion.ONLY_CANDIDATE, id="one"),
        pytest.param([(MIDDLE,), (MIDDLE,)], ["n0", "n1"], Criterion.NAME, id="equal"),
        pytest.param(
            [(MIDDLE, MIDDLE), (MIDDLE, LOW), (LOW, LOW)],
            ["n2"],
            Criterion.HIGHEST_PRIORITY,
            id="lowest-highest-priority",
        ),
        pytest.param(
            [(MIDDLE, MIDDLE), (MIDDLE, LOW), (MIDDLE, MIDDLE)],
            ["n1"],
            Criterion.PRIORITY_SUM,
            id="smallest-sum",
        ),
        pytest.param(
            [(MIDDLE, MIDDLE, NEGATIVE, NEGATIVE), (MIDDLE, NEGATIVE), (MIDDLE, LOW, NEGATIVE)],
            ["n1"],
            Criterion.PRIORITY_SUM,
            id="equal-plain-sums",
        ),
        pytest.param(
            [(MIDDLE, NEGATIVE, NEGATIVE), (MIDDLE, NEGATIVE), (MIDDLE, LOW, NEGATIVE)],
            ["n1"],
            Criterion.PRIORITY_SUM,
            id="negative-priorities-do-not-pay-off",
        ),
        pytest.param(
            [
                (MIDDLE, LOW, LOW),
                (HIGH,),
                (MIDDLE, LOW, LOW, LOW),
                (MIDDLE, MIDDLE, MIDDLE, NEGATIVE),
            ],
            ["n0"],
            Criterion.PRIORITY_SUM,
            id="each-criterion-has-another-favourite",
        ),
        pytest.param(
            [(HUGE, HUGE), (HUGE, -147_483_648, -HUGE)],
            ["n0"],
            Criterion.VICTIM_COUNT,
            id="fewest-victims-of-equal-sums",
        ),
    ],
)
def test_order(priorities: list[tuple[int, ...]], best: list[str], decided_by: Criterion) -> None:
    """The criteria are applied one after another, until one candidate remains."""
    candidates = [candidate(f"n{at}", *each) for at, each in enumerate(priorities)]
    report = report_of(candidates[::-1], {})
    assert (best[0], tuple(best), decided_by) == (report.chosen, report.best, report.decided_by)


def test_violations_of_budgets_count_first() -> None:
    """Two important victims are better than one that a budget protects."""
    report = report_of([candidate("n0", LOW, pdb_violations=1), candidate("n1", HIGH, HIGH)], {})
    assert ("n1", Criterion.PDB_VIOLATIONS) == (report.chosen, report.decided_by)


@pytest.mark.parametrize(
    ("second", "starts", "best"),
    [
        pytest.param(MIDDLE, ["22", "33", "11"], "n1", id="latest-start"),
        pytest.param(MIDDLE, ["24", "15", "36"], "n2", id="latest-earliest-start"),
        pytest.param(LOW, ["24", "61", "53"], "n1", id="only-the-most-important-victims-count"),
    ],
)
def test_start_times_decide_between_equal_priorities(
    second: int, starts: list[str], best: str
) -> None:
    """The victims that started last are evicted."""
    candidates = [
        candidate(f"n{at}", MIDDLE, second, starts=each) for at, each in enumerate(starts)
    ]
    report = report_of(candidates, {})
    assert (best, Criterion.START_TIME) == (report.chosen, report.decided_by)


def test_pods_that_have_not_started_are_the_youngest() -> None:
    """A victim without a start time counts as started after all others."""
    unstarted = Candidate("n1", (make_pod_info("a", priority=1),))
    started = Candidate("n2", (make_pod_info("b", priority=1, start_time=time(59)),))
    report = report_of([started, unstarted], {})
    assert ("n1", Criterion.START_TIME) == (report.chosen, report.decided_by)


@given(
    st.lists(
        st.tuples(
            st.lists(st.tuples(st.sampled_from([1, 2]), st.integers(0, 3)), min_size=1, max_size=3),
            st.integers(0, 1),
        ),
        min_size=1,
        max_size=6,
    )
)
def test_order_equals_its_slow_twin(drawn: list[tuple[list[tuple[int, int]], int]]) -> None:
    """Applying the criteria in order gives the lexicographically smallest key."""
    candidates = []
    keys = {}
    for number, (victims, violations) in enumerate(drawn):
        victims.sort(key=lambda victim: (-victim[0], victim[1]))
        name = f"n{number}"
        priorities = [priority for priority, _ in victims]
        starts = "".join(str(start) for _, start in victims)
        candidates.append(candidate(name, *priorities, pdb_violations=violations, starts=starts))
        keys[name] = (
            violations,
            max(priorities),
            sum(priorities) + len(victims) * 2**31,
            len(victims),
            -min(start for priority, start in victims if priority == max(priorities)),
        )
    expected = tuple(name for name, key in keys.items() if key == min(keys.values()))
    for order in (candidates, candidates[::-1]):
        assert expected == report_of(order, {}).best
