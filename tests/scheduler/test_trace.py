"""The trace of a cycle."""

from __future__ import annotations

from kubesched.framework.plugin import PreFilterResult, PreScoreResult
from kubesched.framework.status import SKIP, SUCCESS, failure, unschedulable
from kubesched.scheduler.trace import Trace
from kubesched.testing.builders import make_pod_info
from tests.scheduler.toys import cluster, cycle_of, failed, placed, rejected, toy

POD = make_pod_info("pod")
NO = unschedulable("no")


def test_trace_of_a_placement() -> None:
    """Every step: PreFilter, restrictions, rows, scores, totals."""
    snapshot = cluster(*"abcd")
    only = PreFilterResult[None](node_names=frozenset("abc"))
    plugins = [
        toy("Skips", pre_filter=PreFilterResult[None](status=SKIP), filter={}),
        toy("Picks", pre_filter=only, filter={"a": NO}),
        toy("Quiet", pre_score=PreScoreResult[None](status=SKIP), score={}),
        toy("Rates", score={"b": 2, "c": 4}, normalize=lambda raw: raw * 10, weight=3),
    ]
    trace = Trace()
    decision = placed(cycle_of(*plugins).schedule_one(POD, snapshot, trace))
    assert {"Skips": SKIP.by("Skips"), "Picks": SUCCESS} == trace.pre_filter
    assert SUCCESS == trace.pre_filter_status
    assert (frozenset("abc"), ("Picks",)) == (trace.restricted_to, trace.restricting_plugins)
    assert [0, 1, 2] == trace.tried_rows.tolist()
    assert [1, 2] == trace.feasible_rows.tolist()
    assert [NO.by("Picks"), SUCCESS, SUCCESS, SUCCESS] == [trace.statuses[row] for row in range(4)]
    assert {"Quiet": SKIP} == trace.pre_score
    (scored,) = trace.scores
    assert ("Rates", 3) == (scored.plugin, scored.weight)
    assert [2, 4] == scored.raw.tolist()
    assert [20, 40] == scored.normalized.tolist()
    assert [60, 120] == scored.weighted.tolist()
    assert trace.totals is not None
    assert [60, 120] == trace.totals.tolist()
    assert decision.cycle is trace.cycle
    assert not trace.nominated_hit


def test_trace_of_a_nominated_node_that_fits() -> None:
    """It says that no other node was evaluated."""
    pod = make_pod_info("pod", nominated_node_name="b")
    trace = Trace()
    cycle = cycle_of(toy("P", filter={}))
    placed(cycle.schedule_one(pod, cluster(), trace))
    assert trace.nominated_hit
    assert ([1], [1]) == (trace.tried_rows.tolist(), trace.feasible_rows.tolist())
    assert trace.totals is None


def test_trace_of_a_rejection_by_pre_filter() -> None:
    """It has the combined status, and no later step."""
    trace = Trace()
    cycle = cycle_of(toy("P", pre_filter=PreFilterResult[None](status=NO)))
    rejected(cycle.schedule_one(POD, cluster(), trace))
    assert NO.by("P") == trace.pre_filter_status
    assert (0, 0, 0) == (len(trace.tried_rows), len(trace.feasible_rows), len(trace.statuses))


def test_trace_of_a_failure() -> None:
    """It ends at the failing step."""
    trace = Trace()
    plugins = [
        toy("First", filter={"a": NO}, pre_score=PreScoreResult()),
        toy("Second", pre_score=PreScoreResult[None](status=failure("x")), score={}),
    ]
    snapshot = cluster()
    failed(cycle_of(*plugins).schedule_one(POD, snapshot, trace))
    assert [1, 2] == trace.feasible_rows.tolist()
    assert ["First", "Second"] == list(trace.pre_score)
    assert [] == trace.scores
