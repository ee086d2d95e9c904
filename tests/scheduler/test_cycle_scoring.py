"""PreScore, Score, normalizing, weights, and the choice of a node."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from kubesched.framework.plugin import PreScoreResult, Scope
from kubesched.framework.status import SKIP, Code, Status, failure, unschedulable
from kubesched.scheduler.trace import Trace
from kubesched.testing.builders import make_pod_info
from tests.scheduler.toys import (
    NODES,
    alike,
    cluster,
    cycle_of,
    decide,
    failed,
    placed,
    points_asked,
    toy,
)

POD = make_pod_info("pod")
BROKEN = failure("broken")


def _says(status: Status) -> PreScoreResult[None]:
    return PreScoreResult(status=status)


def test_the_node_with_the_largest_weighted_sum_is_chosen() -> None:
    """The default weight is 1."""
    plugins = [
        toy("One", score={"a": 90, "b": 80, "c": 10}),
        toy("Three", score={"a": 10, "b": 20, "c": 40}, weight=3),
    ]
    trace = Trace()
    decision = placed(decide(plugins, POD, cluster(), trace=trace))
    assert trace.totals is not None
    assert ([120, 140, 130], "b") == (trace.totals.tolist(), decision.node_name)
    weighted = {scored.plugin: scored.weighted.tolist() for scored in trace.scores}
    assert {"One": [90, 80, 10], "Three": [30, 60, 120]} == weighted


@pytest.mark.parametrize("scope", list(Scope))
def test_a_single_feasible_node_is_not_scored(scope: Scope) -> None:
    """No PreScore or Score plugin is called, not even one that would fail."""
    plugin = toy(
        "P",
        filter={"a": unschedulable("no"), "c": unschedulable("no")},
        pre_score=_says(BROKEN),
        score=RuntimeError("broken"),
        scope=scope,
        sign=alike,
    )
    assert "b" == placed(decide([plugin], POD, cluster())).node_name
    plain = cycle_of(plugin)
    plugin.asked.clear()
    placed(plain.schedule_one(POD, cluster()))
    assert ["filter"] == points_asked(plugin)


def test_without_score_plugins_every_total_is_one() -> None:
    """PreScore is not called."""
    plugin = toy("P", pre_score=RuntimeError("broken"))
    trace = Trace()
    placed(decide([plugin], POD, cluster(), trace=trace))
    assert trace.totals is not None
    assert [1, 1, 1] == trace.totals.tolist()
    assert [] == plugin.asked


def test_if_all_score_plugins_skip_every_total_is_zero() -> None:
    """They skip at PreScore."""
    trace = Trace()
    placed(decide([toy("P", pre_score=_says(SKIP), score={"a": 5})], POD, cluster(), trace=trace))
    assert trace.totals is not None
    assert ([0, 0, 0], []) == (trace.totals.tolist(), trace.scores)


def test_pre_score_gets_the_feasible_nodes() -> None:
    """Rejected ones are left out."""
    plugin = toy("P", filter={"b": unschedulable("no")}, pre_score=PreScoreResult(), score={})
    placed(cycle_of(plugin).schedule_one(POD, cluster()))
    assert ("pre_score", ("a", "c")) in plugin.asked
    assert ("score", ("a", "c")) in plugin.asked


@pytest.mark.parametrize("scope", list(Scope))
@pytest.mark.parametrize(
    ("answer", "text"),
    [
        pytest.param(_says(BROKEN), "broken", id="error"),
        pytest.param(_says(unschedulable("odd")), "odd", id="rejection"),
        pytest.param(ValueError("bad"), "ValueError: bad", id="exception"),
    ],
)
def test_other_codes_of_pre_score_fail_the_cycle(answer: object, text: str, scope: Scope) -> None:
    """Only success and Skip are allowed."""
    plugin = toy("P", pre_score=answer, score={}, scope=scope, sign=alike)
    expected = Status(Code.ERROR, plugin="P", error=f'running PreScore plugin "P": {text}')
    assert expected == failed(decide([plugin], POD, cluster()))


@pytest.mark.parametrize("scope", list(Scope))
def test_a_score_plugin_that_raises_fails_the_cycle(scope: Scope) -> None:
    """The message has the exception."""
    plugin = toy("P", score=ValueError("bad"), scope=scope, sign=alike)
    text = 'running Score plugins: plugin "P" failed with: ValueError: bad'
    assert text == failed(decide([plugin], POD, cluster())).message


@pytest.mark.parametrize("scope", list(Scope))
def test_normalizing_that_raises_fails_the_cycle(scope: Scope) -> None:
    """The message has the exception."""
    plugin = toy("P", score={}, normalize=ValueError("bad"), scope=scope, sign=alike)
    text = 'running Normalize on Score plugins: plugin "P" failed with: ValueError: bad'
    assert text == failed(decide([plugin], POD, cluster())).message


@pytest.mark.parametrize("scope", list(Scope))
@pytest.mark.parametrize("score", [-1, 101])
@pytest.mark.parametrize("normalizes", [False, True])
def test_a_normalized_score_out_of_bounds_fails_the_cycle(
    score: int, normalizes: bool, scope: Scope
) -> None:
    """The bounds are 0 and 100, the message upstream's."""
    normalize = (lambda scores: scores) if normalizes else None
    plugin = toy("P", score={"b": score}, normalize=normalize, scope=scope, sign=alike)
    text = (
        'applying score defaultWeights on Score plugins: plugin "P" returns an invalid score '
        f"{score}, it should in the range of [0, 100] after normalizing"
    )
    assert text == failed(decide([plugin], POD, cluster())).message


@pytest.mark.parametrize(
    ("normalize", "words"),
    [
        (None, "in Score for pod default/pod: score must"),
        (lambda scores: scores, "in NormalizeScore for pod default/pod: normalize_score must"),
    ],
)
def test_a_score_out_of_bounds_is_the_plugin_s_error(
    normalize: Callable[[object], object] | None, words: str, caplog: pytest.LogCaptureFixture
) -> None:
    """Commands that are not live end with it."""
    plugin = toy("P", score={"a": -5, "b": 700}, normalize=normalize, scope=Scope.NODE, sign=alike)
    failed(decide([plugin], POD, cluster()))
    text = f"plugin P answered wrongly {words} give scores from 0 to 100, not -5 to 700; scale them"
    assert {text} == {vars(record)["fields"]["err"] for record in caplog.records}


@pytest.mark.parametrize("scope", list(Scope))
def test_scores_of_infeasible_nodes_are_not_checked(scope: Scope) -> None:
    """Such scores may be anything."""
    plugin = toy(
        "P",
        filter={"b": unschedulable("no")},
        score={"b": 1000, "c": 3},
        scope=scope,
        sign=alike,
    )
    assert "c" == placed(decide([plugin], POD, cluster())).node_name


def test_raw_scores_have_no_bounds() -> None:
    """Only normalized scores have bounds."""
    plugin = toy("P", score={"a": -50, "b": 5000, "c": 7}, normalize=lambda raw: (raw == 7) * 9)
    trace = Trace()
    decision = placed(decide([plugin], POD, cluster(), trace=trace))
    (scored,) = trace.scores
    assert ("c", [-50, 5000, 7]) == (decision.node_name, scored.raw.tolist())
    assert [0, 0, 9] == scored.normalized.tolist()


def test_normalize_gets_the_scores_of_feasible_rows() -> None:
    """The scores are in row order."""
    seen: list[list[int]] = []

    def normalize(raw: np.ndarray[tuple[int], np.dtype[np.int64]]) -> object:
        seen.append(raw.tolist())
        return raw * 0

    plugin = toy(
        "P", filter={"b": unschedulable("no")}, score={"a": 1, "b": 2, "c": 3}, normalize=normalize
    )
    placed(decide([plugin], POD, cluster()))
    assert [[1, 3]] * 4 == seen
    assert ("normalize", ("0", "2")) == plugin.asked[-1]


@pytest.mark.parametrize("remembers", [False, True])
def test_equal_seeds_choose_equal_nodes(remembers: bool) -> None:
    """Other seeds choose other nodes."""

    def run(seed: int) -> list[str]:
        cycle = cycle_of(toy("P", score={}), seed=seed, remembers=remembers)
        return [placed(cycle.schedule_one(POD, cluster())).node_name for _ in range(20)]

    assert run(1) == run(1)
    assert len({tuple(run(seed)) for seed in range(5)}) > 1
    assert set(NODES) == set(run(1))
