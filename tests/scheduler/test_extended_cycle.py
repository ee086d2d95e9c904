"""The cycle with extenders: their requests, and the effect of their answers."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Mapping, Sequence
from random import Random
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubesched.api.core import Node, Pod
from kubesched.framework.plugin import PostFilterResult, PreScoreResult
from kubesched.framework.status import SUCCESS, Status, failure, unresolvable, unschedulable
from kubesched.plugins.default_preemption import DefaultPreemption
from kubesched.plugins.node_resources import NodeResourcesFit
from kubesched.scheduler.decision import Decision
from kubesched.scheduler.extended_cycle import ExtendedCycle, select_scored_host
from kubesched.scheduler.sampling import NodeSampler
from kubesched.scheduler.trace import Trace
from kubesched.snapshot.pod_info import PodInfo
from kubesched.snapshot.snapshot import Snapshot
from kubesched.testing.builders import make_node, make_pod, make_snapshot
from tests.scheduler.fake_extender import FakeExtender, extenders_of, keep, nodes, rate
from tests.scheduler.toys import (
    Toy,
    comparable,
    cycle_of,
    failed,
    placed,
    points_asked,
    profile_of,
    rejected,
    rejections,
    toy,
)

POD = PodInfo(make_pod("p", uid="u-p"))
NODES = [make_node(name) for name in "abcd"]
SNAPSHOT = make_snapshot(NODES)
FULL = unschedulable("full")


def extended(
    plugins: Sequence[type[Toy]],
    *fakes: FakeExtender,
    seed: int = 0,
    sampler: NodeSampler | None = None,
    percentage: int = 0,
    **fields: Any,
) -> ExtendedCycle:
    """Make a cycle with extenders that have the verbs of their scripts."""
    extenders = extenders_of(*((fake, fields) for fake in fakes))
    profile = profile_of(*plugins, seed=seed, percentage=percentage)
    return ExtendedCycle(profile, sampler or NodeSampler(), extenders)


def decide(cycle: ExtendedCycle, pod: PodInfo = POD, snapshot: Snapshot = SNAPSHOT) -> Decision:
    """Run one cycle."""
    return asyncio.run(cycle.schedule_with_extenders(pod, snapshot))


# Without a say.


@given(
    st.lists(st.sampled_from([SUCCESS, FULL, unresolvable("never"), failure("x")]), max_size=6),
    st.lists(st.integers(0, 2), min_size=6, max_size=6),
    st.integers(0, 3),
    st.sampled_from(["", "n0", "n3", "gone"]),
)
def test_an_extender_without_verbs_changes_no_decision(
    statuses: list[Status], marks: list[int], seed: int, nominated: str
) -> None:
    """Decisions equal those without extenders."""
    names = [f"n{at}" for at in range(len(statuses))]
    script: dict[str, Any] = {
        "filter": dict(zip(names, statuses, strict=True)),
        "score": dict(zip(names, marks, strict=False)),
        "post_filter": PostFilterResult(unschedulable("sorry")),
    }
    snapshot = make_snapshot([make_node(name) for name in names])
    pod = PodInfo(make_pod("p", nominated_node_name=nominated))
    alone = cycle_of(toy("Toy", **script), seed=seed).schedule_one(pod, snapshot)
    with_extender = decide(
        extended([toy("Toy", **script)], FakeExtender({}), seed=seed), pod, snapshot
    )
    assert comparable(alone) == comparable(with_extender)


# Filter.


def test_extenders_filter_after_the_plugins() -> None:
    """The pod is placed on a node that both accept."""
    fake = FakeExtender({"filter": keep("c", b="hot")})
    cycle = extended([toy("Toy", filter={"a": FULL}, score={"b": 100})], fake)
    decision = placed(decide(cycle))
    assert ["b", "c", "d"] == fake.asked[0].question["NodeNames"]
    # Node d got no message, so it does not count as looked at.
    assert ("c", 1, 3) == (decision.node_name, decision.feasible, decision.evaluated)


def test_extenders_that_reject_all_nodes() -> None:
    """Their reasons are in the diagnosis, and Extender is a rejecting plugin."""
    answer = {**keep(b="hot", c="x"), "FailedAndUnresolvableNodes": {"c": "never"}}
    decision = rejected(
        decide(extended([toy("Toy", filter={"a": FULL})], FakeExtender({"filter": answer})))
    )
    expected = "0/4 nodes are available: 1 full, 1 hot, 1 never."
    assert expected == decision.message
    assert {"Toy", "Extender"} == decision.diagnosis.unschedulable_plugins
    assert {"a": ("Toy", "full"), "b": ("", "hot"), "c": ("", "never")} == rejections(decision)
    assert "" == decision.nominated_node_name


def test_extenders_are_not_called_without_feasible_nodes() -> None:
    """They are not among the rejecting plugins."""
    fake = FakeExtender({"filter": keep()})
    decision = rejected(decide(extended([toy("Toy", filter=dict.fromkeys("abcd", FULL))], fake)))
    assert {"Toy"} == decision.diagnosis.unschedulable_plugins
    assert [] == fake.asked


def test_an_extender_may_reject_a_node_it_did_not_get() -> None:
    """The plugin that rejected the node stays a rejecting plugin."""
    answer = {"NodeNames": [], "FailedAndUnresolvableNodes": {"a": "never"}}
    decision = rejected(
        decide(extended([toy("Toy", filter={"a": FULL})], FakeExtender({"filter": answer})))
    )
    assert {"a": ("", "never")} == rejections(decision)
    assert {"Toy", "Extender"} == decision.diagnosis.unschedulable_plugins
    assert "0/4 nodes are available: 1 never." == decision.message


def test_post_filter_gets_the_codes_of_extenders() -> None:
    """Nodes that an extender left out without a reason are unresolvable."""
    answer = {**keep(b="hot"), "FailedAndUnresolvableNodes": {"c": "never"}}
    plugin = toy("Toy", filter={"a": FULL}, post_filter=PostFilterResult(unschedulable("no")))
    decide(extended([plugin], FakeExtender({"filter": answer})))
    never = "UnschedulableAndUnresolvable"
    assert ("post_filter", ("Unschedulable", "Unschedulable", never, never)) == plugin.asked[-1]


def test_a_failing_extender_fails_the_cycle() -> None:
    """The failure has its message, and PostFilter does not run."""
    plugin = toy("Toy", filter={}, post_filter=PostFilterResult(SUCCESS))
    decision = decide(extended([plugin], FakeExtender({"filter": {"Error": "out of order"}})))
    assert failure("out of order") == failed(decision)
    assert "post_filter" not in points_asked(plugin)


def test_a_failing_ignorable_extender_is_left_out() -> None:
    """The cycle continues without it."""
    cycle = extended([toy("Toy", score={"d": 9})], FakeExtender({"filter": 500}), ignorable=True)
    assert "d" == placed(decide(cycle)).node_name


def test_extenders_are_not_called_without_nodes() -> None:
    """The cycle fails as without extenders."""
    fake = FakeExtender({"filter": keep()})
    decision = decide(extended([toy("Toy")], fake), snapshot=make_snapshot([]))
    assert unresolvable("no nodes available to schedule pods") == failed(decision)
    assert [] == fake.asked


def test_extenders_are_not_called_after_a_failing_filter() -> None:
    """The cycle ends with the failure."""
    fake = FakeExtender({"filter": keep()})
    assert failed(decide(extended([toy("Toy", filter=ValueError("x"))], fake)))
    assert [] == fake.asked


# The nominated node.

NOMINATED = PodInfo(make_pod("p", uid="u-p", nominated_node_name="b"))


def test_a_nominated_node_that_extenders_accept() -> None:
    """No other node is searched."""
    fake = FakeExtender({"filter": lambda asked: keep(*asked["NodeNames"]), "prioritize": []})
    decision = placed(decide(extended([toy("Toy", filter={}, score={"a": 9})], fake), NOMINATED))
    assert ("b", 1, 1) == (decision.node_name, decision.feasible, decision.evaluated)
    assert [["b"]] == [asked.question["NodeNames"] for asked in fake.asked]


@pytest.mark.parametrize(
    "answer", [pytest.param(keep(b="hot"), id="refused"), pytest.param(500, id="failed")]
)
def test_a_nominated_node_that_extenders_reject(answer: object) -> None:
    """All nodes are searched, the nominated one again."""

    def script(asked: dict[str, Any]) -> object:
        return answer if asked["NodeNames"] == ["b"] else keep("c")

    fake = FakeExtender({"filter": script})
    decision = placed(decide(extended([toy("Toy", filter={})], fake), NOMINATED))
    assert "c" == decision.node_name
    expected = [["b"], ["a", "b", "c", "d"]]
    assert expected == [asked.question["NodeNames"] for asked in fake.asked]


def test_a_rejected_nominated_node_is_evaluated_twice() -> None:
    """The next search starts one node further."""
    sampler = NodeSampler()
    snapshot = make_snapshot(make_node(f"n{at:03}") for at in range(300))
    pod = PodInfo(make_pod("p", nominated_node_name="n299"))

    def script(asked: dict[str, Any]) -> object:
        names = asked["NodeNames"]
        return keep(n299="hot") if names == ["n299"] else keep(*names)

    fake = FakeExtender({"filter": script})
    cycle = extended([toy("Toy", filter={})], fake, sampler=sampler, percentage=50)
    decision = placed(decide(cycle, pod, snapshot))
    # 150 feasible nodes are enough; the 151st is looked at to know that.
    without = NodeSampler()
    cycle_of_plain = extended([toy("Toy", filter={})], sampler=without, percentage=50)
    decide(cycle_of_plain, POD, snapshot)
    assert without.next_start + 1 == sampler.next_start
    assert decision.feasible == 150


# Scores.


@pytest.mark.parametrize(
    ("mark", "weight", "expected"),
    [
        pytest.param(10, 1, "b", id="100 more"),
        pytest.param(4, 1, "a", id="40 more"),
        pytest.param(3, 2, "b", id="weighed"),
    ],
)
def test_scores_of_extenders_are_added(mark: int, weight: int, expected: str) -> None:
    """Ten times score and weight is added to the plugins' totals."""
    fake = FakeExtender({"prioritize": rate(b=mark)})
    cycle = extended([toy("Toy", score={"a": 50})], fake, weight=weight)
    assert expected == placed(decide(cycle)).node_name
    assert ["a", "b", "c", "d"] == fake.asked[0].question["NodeNames"]


def test_a_trace_has_the_scores_of_plugins_and_the_totals_of_all() -> None:
    """They are those of the nodes that the extender keeps."""
    fake = FakeExtender({"filter": keep("a", "c"), "prioritize": rate(c=3)})
    cycle, trace = extended([toy("Toy", score={"a": 50})], fake), Trace()
    placed(asyncio.run(cycle.schedule_with_extenders(POD, SNAPSHOT, trace)))
    assert [0, 2] == trace.feasible_rows.tolist()
    assert [("Toy", [50, 0])] == [(one.plugin, one.weighted.tolist()) for one in trace.scores]
    assert trace.totals is not None
    assert [50, 30] == trace.totals.tolist()


def test_scores_of_extenders_without_score_plugins() -> None:
    """The totals are the extenders' alone; PreScore runs."""
    plugin = toy("Toy", pre_score=PreScoreResult())
    fake = FakeExtender({"prioritize": rate(a=-1, b=-1, c=-1)})
    assert "d" == placed(decide(extended([plugin], fake))).node_name
    assert ["pre_score"] == points_asked(plugin)


def test_extenders_do_not_score_a_single_feasible_node() -> None:
    """Plugins do not score it, either."""
    plugin = toy("Toy", score={})
    fake = FakeExtender({"filter": keep("c"), "prioritize": rate(c=1)})
    assert "c" == placed(decide(extended([plugin], fake))).node_name
    assert ["filter"] == fake.verbs
    assert [] == plugin.asked


def test_extenders_are_not_called_after_a_failing_score_plugin() -> None:
    """The cycle ends with the failure."""
    fake = FakeExtender({"prioritize": rate(a=1)})
    assert failed(decide(extended([toy("Toy", score=ValueError("x"))], fake)))
    assert [] == fake.asked


@given(
    st.lists(st.tuples(st.integers(0, 2), st.booleans()), min_size=1, max_size=6),
    st.integers(0, 9),
)
def test_nodes_scored_by_extenders_win_ties(rows: list[tuple[int, bool]], seed: int) -> None:
    """If any of the best nodes has an extender's score."""
    totals = np.array([total for total, _ in rows], np.int64)
    scored = np.array([is_scored for _, is_scored in rows], np.bool_)
    at = select_scored_host(totals, scored, Random(seed))
    best = max(total for total, _ in rows)
    may_win = {is_scored for total, is_scored in rows if total == best}
    assert (best, max(may_win)) == rows[at]


def test_ties_among_scored_nodes_are_drawn() -> None:
    """Nodes without an extender's score are not chosen."""
    fake = FakeExtender({"prioritize": rate(a=0, b=0, d=0)})
    drawn = Counter(
        placed(decide(extended([toy("Toy", score={})], fake, seed=seed))).node_name
        for seed in range(60)
    )
    assert {"a", "b", "d"} == set(drawn)


# Nodes sent back whole.


def test_returned_node_objects_are_scored_without_pods() -> None:
    """Upstream scores them so, too."""
    seen: list[dict[str, int]] = []

    class Watching(toy("Toy", score={})):  # type: ignore[misc]  # made by a function
        """Records the number of pods on each node."""

        def score(self, state: Any, pod: PodInfo, nodes: Any) -> Any:
            """Record it."""
            seen.append({name: len(nodes.pods[row]) for row, name in enumerate(nodes.names)})
            is_bare = len(nodes) < 4
            assert is_bare == (int(nodes.requested.sum()) == 0)
            assert is_bare == (nodes.images.get("image:latest") is None)
            return super().score(state, pod, nodes)

    pods = [make_pod(f"on-{name}", node_name=name, requests={"cpu": 1}) for name in "abcd"]
    with_images = (make_node(name, images={"image:latest": 1}) for name in "abcd")
    snapshot = make_snapshot(with_images, pods)
    decide(
        extended([Watching], FakeExtender({"filter": nodes("a", "c")}), node_cache_capable=False),
        POD,
        snapshot,
    )
    decide(extended([Watching], FakeExtender({"filter": keep(*"abcd")})), POD, snapshot)
    assert [{"a": 0, "c": 0}, {"a": 1, "b": 1, "c": 1, "d": 1}] == seen
    assert 4000 == int(snapshot.nodes.requested[0].sum())


# Preemption.


def preempting(*fakes: FakeExtender, **fields: Any) -> ExtendedCycle:
    """Make a cycle with NodeResourcesFit and DefaultPreemption."""
    plugins: Any = [
        _at(NodeResourcesFit, "pre_filter", "filter"),
        _at(DefaultPreemption, "post_filter"),
    ]
    return extended(plugins, *fakes, **fields)


def _at(plugin: type[Any], *points: str) -> type[Any]:
    """Return the class with the points at which it runs, like a toy."""
    return type(plugin.__name__, (plugin,), {"points": points, "weight": 0})


BIG: Mapping[str, str] = {"cpu": "3"}
BUSY: list[Node] = [make_node(name) for name in "ab"]
VICTIMS: list[Pod] = [
    make_pod("cheap", uid="u-cheap", node_name="a", requests=BIG, priority=1),
    make_pod("dear", uid="u-dear", node_name="b", requests=BIG, priority=5),
]
PREEMPTOR = PodInfo(make_pod("p", uid="u-p", requests=BIG, priority=100))


def preempt(answer: object, **fields: Any) -> Decision:
    """Answer preempt requests."""
    cycle = preempting(FakeExtender({"preempt": answer}), **fields)
    return decide(cycle, PREEMPTOR, make_snapshot(BUSY, VICTIMS))


def test_extenders_narrow_the_candidates() -> None:
    """The best of the remaining candidates is chosen."""
    answer = {"NodeNameToMetaVictims": {"b": {"Pods": [{"UID": "u-dear"}]}}}
    decision = rejected(preempt(answer))
    assert "b" == decision.nominated_node_name
    assert ["dear"] == [victim.name for victim in decision.victims]
    assert "0/2 nodes are available: 2 Insufficient cpu." == decision.message


def test_extenders_without_a_preempt_verb_are_not_called() -> None:
    """The candidates stay as they are."""
    cycle = preempting(FakeExtender({"bind": {}}))
    decision = rejected(decide(cycle, PREEMPTOR, make_snapshot(BUSY, VICTIMS)))
    assert "a" == decision.nominated_node_name


@pytest.mark.parametrize(
    ("answer", "ignorable", "nominated", "message"),
    [
        pytest.param(
            {}, False, None, "preemption: no candidate node for preemption", id="none left"
        ),
        pytest.param(
            {"NodeNameToMetaVictims": {"a": {}}},
            False,
            None,
            'preemption: expected at least one victim pod on node "a"',
            id="no victims",
        ),
        pytest.param(
            {"NodeNameToMetaVictims": {"a": {}}},
            True,
            None,
            "preemption: no candidate node for preemption",
            id="no victims, ignorable",
        ),
        pytest.param(
            500,
            False,
            None,
            "preemption: failed preempt with extender at URL http://0/preempt, code 500",
            id="failed",
        ),
        pytest.param(500, True, "a", "", id="failed, ignorable"),
    ],
)
def test_preemption_errors_of_extenders(
    answer: object, ignorable: bool, nominated: str | None, message: str
) -> None:
    """They are in the message; the nomination stays."""
    decision = rejected(preempt(answer, ignorable=ignorable))
    assert nominated == decision.nominated_node_name
    expected = f"0/2 nodes are available: 2 Insufficient cpu. {message}".rstrip()
    assert expected == decision.message


def test_extenders_are_not_called_without_candidates() -> None:
    """Evictions would not help on any node."""
    fake = FakeExtender({"preempt": {}})
    pod = PodInfo(make_pod("p", requests={"cpu": "40"}, priority=100))
    decision = rejected(decide(preempting(fake), pod, make_snapshot(BUSY, VICTIMS)))
    assert "" == decision.nominated_node_name
    assert [] == fake.asked
