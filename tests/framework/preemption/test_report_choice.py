"""Tests of the choice between candidates."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubesched.framework.preemption.report import Candidate, Criterion
from kubesched.testing.builders import make_pod_info

from .cluster import candidate, report_of, time

NEGATIVE, LOW, MIDDLE, HIGH, HUGE = -100, 0, 100, 1000, 1_000_000_000


@pytest.mark.parametrize(
    ("candidates", "best", "decided_by"),
    [
        pytest.param([candidate("n1", LOW)], ["n1"], Criterion.ONLY_CANDIDATE, id="one"),
        pytest.param(
            [candidate("n2", MIDDLE), candidate("n1", MIDDLE)],
            ["n1", "n2"],
            Criterion.NAME,
            id="equal-in-everything",
        ),
        pytest.param(
            [candidate("n1", LOW, pdb_violations=1), candidate("n2", HIGH, HIGH)],
            ["n2"],
            Criterion.PDB_VIOLATIONS,
            id="fewest-violations-first",
        ),
        pytest.param(
            [
                candidate("n1", MIDDLE, MIDDLE),
                candidate("n2", MIDDLE, LOW),
                candidate("n3", LOW, LOW),
            ],
            ["n3"],
            Criterion.HIGHEST_PRIORITY,
            id="lowest-highest-priority",
        ),
        pytest.param(
            [
                candidate("n1", MIDDLE, MIDDLE),
                candidate("n2", MIDDLE, LOW),
                candidate("n3", MIDDLE, MIDDLE),
            ],
            ["n2"],
            Criterion.PRIORITY_SUM,
            id="smallest-sum",
        ),
        pytest.param(
            [
                candidate("n1", MIDDLE, MIDDLE, NEGATIVE, NEGATIVE),
                candidate("n2", MIDDLE, NEGATIVE),
                candidate("n3", MIDDLE, LOW, NEGATIVE),
            ],
            ["n2"],
            Criterion.PRIORITY_SUM,
            id="equal-plain-sums",
        ),
        pytest.param(
            [
                candidate("n1", MIDDLE, NEGATIVE, NEGATIVE),
                candidate("n2", MIDDLE, NEGATIVE),
                candidate("n3", MIDDLE, LOW, NEGATIVE),
            ],
            ["n2"],
            Criterion.PRIORITY_SUM,
            id="negative-priorities-do-not-pay-off",
        ),
        pytest.param(
            [
                candidate("n1", MIDDLE, LOW, LOW),
                candidate("n2", HIGH),
                candidate("n3", MIDDLE, LOW, LOW, LOW),
                candidate("n4", MIDDLE, MIDDLE, MIDDLE, NEGATIVE),
            ],
            ["n1"],
            Criterion.PRIORITY_SUM,
            id="each-criterion-has-another-favourite",
        ),
        pytest.param(
            [
                candidate("n1", HUGE, HUGE),
                candidate("n2", HUGE, -147_483_648, -HUGE),
            ],
            ["n1"],
            Criterion.VICTIM_COUNT,
            id="fewest-victims-of-equal-sums",
        ),
        pytest.param(
            [
                candidate("n1", MIDDLE, MIDDLE, starts="22"),
                candidate("n2", MIDDLE, MIDDLE, starts="33"),
                candidate("n3", MIDDLE, MIDDLE, starts="11"),
            ],
            ["n2"],
            Criterion.START_TIME,
            id="latest-start",
        ),
        pytest.param(
            [
                candidate("n1", MIDDLE, MIDDLE, starts="24"),
                candidate("n2", MIDDLE, MIDDLE, starts="15"),
                candidate("n3", MIDDLE, MIDDLE, starts="36"),
            ],
            ["n3"],
            Criterion.START_TIME,
            id="latest-earliest-start",
        ),
        pytest.param(
            [
                candidate("n1", MIDDLE, LOW, starts="24"),
                candidate("n2", MIDDLE, LOW, starts="61"),
                candidate("n3", MIDDLE, LOW, starts="53"),
            ],
            ["n2"],
            Criterion.START_TIME,
            id="only-the-most-important-victims-start-counts",
        ),
    ],
)
def test_order(candidates: list[Candidate], best: list[str], decided_by: Criterion) -> None:
    """The criteria are applied one after another, until one candidate remains."""
    report = report_of(candidates, {})
    assert (best[0], tuple(best), decided_by) == (report.chosen, report.best, report.decided_by)


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
