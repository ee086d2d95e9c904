"""Decisions of another scheduler, compared on a cache that a test fills."""

from __future__ import annotations

import asyncio
from random import Random
from typing import Any

import pytest
from msgspec.structs import replace

from kubesched.api.core import Node, Pod
from kubesched.app import shadow_judge
from kubesched.app.shadow_judge import SETTLE_SECONDS, ShadowJudge
from kubesched.config.args import exhaustive
from kubesched.config.feature_gates import FeatureGates
from kubesched.config.load import default_configuration
from kubesched.explain.shadow_report import Disagreement, ScoreDifference, ShadowVerdict
from kubesched.plugins.registry import in_tree_setup
from kubesched.scheduler.assembly import assemble
from kubesched.scheduler.decision_recorder import RecordedDecision
from kubesched.snapshot.pod_info import PodInfo
from kubesched.testing.builders import make_node, make_pod
from tests.loops import on_virtual_time
from tests.scheduler.running import FakeApi

SMALL = {"cpu": "1", "memory": "1Gi"}
WEB = make_pod("web", requests=SMALL)


class Beside:
    """A judge and the event handlers that feed its cache."""

    def __init__(self, *items: Node | Pod, samples: bool = False, is_live: bool = False) -> None:
        gates = FeatureGates()
        configuration = exhaustive(default_configuration(gates))
        scheduler, self.handlers = assemble(
            in_tree_setup(gates, configuration), FakeApi(), random=Random(0)
        )
        self.judge = ShadowJudge(scheduler, samples=samples, is_live=is_live)
        for item in items:
            self.handlers.added(item)

    def see(self, pod: Pod, node: str = "", *, number: int, message: str = "") -> None:
        """Let the other scheduler decide for a pod that was decided for when it appeared."""
        first = self.judge.choose(PodInfo(pod))
        self.decide(pod, node, number=number, message=message, first=first)

    def decide(
        self, pod: Pod, node: str = "", *, number: int, message: str = "", first: Any
    ) -> None:
        """Let the other scheduler decide."""
        info = PodInfo(pod)
        theirs = RecordedDecision(info.key, info.uid, node, message, version=f"seen-{number}")
        self.judge.judge(info, theirs, first, number)
        if node:
            bound = replace(pod, spec=replace(pod.spec, node_name=node))
            self.handlers.updated(pod, bound)
            self.judge.note_change(pod, bound, number)

    async def judge_one(self, pod: Pod, node: str = "", message: str = "") -> None:
        """Let a pod appear and the other scheduler decide for it, and wait for the verdict."""
        self.handlers.added(pod)
        self.see(pod, node, number=1, message=message)
        await self.settle()

    async def settle(self) -> None:
        """Wait until all is judged."""
        await asyncio.sleep(2 * SETTLE_SECONDS)

    @property
    def verdicts(self) -> dict[str, int]:
        """The number of decisions by verdict."""
        return {verdict.value: number for verdict, number in self.judge.counts.items()}


def pods(*names: str) -> list[Pod]:
    """Return pending pods that ask for a cpu."""
    return [make_pod(name, requests=SMALL) for name in names]


def pending(beside: Beside, *found: Pod) -> None:
    """Let pods appear."""
    for pod in found:
        beside.handlers.added(pod)


def two_nodes(second: str = "8") -> tuple[Node, Node]:
    """Return two nodes, the second of which is larger."""
    amounts = ({"cpu": cpu, "memory": "16Gi"} for cpu in ("4", second))
    small, large = (
        make_node(name, allocatable=given) for name, given in zip("ab", amounts, strict=True)
    )
    return small, large


def only(beside: Beside) -> Disagreement:
    """Return the one disagreement."""
    (found,) = beside.judge.disagreements
    return found


@on_virtual_time
async def test_the_same_node() -> None:
    """Agreement leaves no record."""
    beside = Beside(*two_nodes())
    await beside.judge_one(WEB, "b")
    assert {"Agreed": 1} == beside.verdicts
    assert (1, 0, []) == (beside.judge.bound, beside.judge.agreed_late, beside.judge.disagreements)


@on_virtual_time
async def test_a_node_of_the_same_score_is_a_tie() -> None:
    """Which of equal nodes is drawn is chance."""
    beside = Beside(*(make_node(f"n{number}") for number in range(50)))
    await beside.judge_one(WEB, "n49")
    assert {"Tie": 1} == beside.verdicts
    found = only(beside)
    assert f"n49 and {found.our_node} have the same score" == found.sentence


@on_virtual_time
async def test_a_lower_score_is_a_difference_with_its_plugins() -> None:
    """Both nodes fit in every state."""
    beside = Beside(*two_nodes())
    beside.judge.version = "41"
    await beside.judge_one(WEB, "a")
    found = only(beside)
    assert found == Disagreement(
        pod="default/web",
        uid="default/web",
        verdict=ShadowVerdict.DIFFERENT,
        sentence=found.sentence,
        their_node="a",
        our_node="b",
        seen_version="seen-1",
        decided_version="41",
        scores=found.scores,
    )
    assert found.sentence.startswith("bound to a, which scores lower than b: ")
    fit = next(each for each in found.scores if each.plugin == "NodeResourcesFit")
    assert isinstance(fit, ScoreDifference)
    assert fit.theirs < fit.ours


@on_virtual_time
async def test_a_large_cluster_is_searched_in_part() -> None:
    """With more than a hundred nodes, schedulers evaluate only some."""
    others = [make_node(f"n{number}") for number in range(100)]
    beside = Beside(*two_nodes("64"), *others, samples=True)
    await beside.judge_one(WEB, "a")
    assert {"Sampled": 1} == beside.verdicts


@on_virtual_time
async def test_a_node_that_does_not_fit() -> None:
    """The sentence names the plugin and the amounts."""
    beside = Beside(*two_nodes())
    await beside.judge_one(make_pod("large", requests={"cpu": "6"}), "a")
    assert (
        "bound to a, which does not fit (NodeResourcesFit: cpu: requested 6, free 4 of 4); "
        "kubesched chooses b"
    ) == only(beside).sentence


@on_virtual_time
async def test_left_pending_for_the_same_reasons() -> None:
    """The message is compared as a whole."""
    message = (
        "0/1 nodes are available: 1 Insufficient cpu. no new claims to deallocate, preemption: 0/1 "
        "nodes are available: 1 Preemption is not helpful for scheduling."
    )
    beside = Beside(two_nodes()[0])
    pod = make_pod("large", requests={"cpu": "6"})
    pending(beside, pod)
    beside.see(pod, number=1, message=message)
    beside.see(pod, number=1, message="0/1 nodes are available: 1 bad luck.")
    await beside.settle()
    assert {"Agreed": 1, "Different": 1} == beside.verdicts
    assert 0 == beside.judge.bound
    assert (
        f"left pending: 0/1 nodes are available: 1 bad luck. kubesched's reasons: {message}"
        == only(beside).sentence
    )


@on_virtual_time
async def test_left_pending_though_it_fits() -> None:
    """The node is named."""
    beside = Beside(make_node("a"))
    await beside.judge_one(WEB, message="not today")
    assert "left pending (not today); kubesched chooses a" == only(beside).sentence


@on_virtual_time
async def test_bindings_out_of_order() -> None:
    """The decision was made before another one whose binding was seen first."""
    beside = Beside(*two_nodes("5"))
    first, second = pods("first", "second")
    pending(beside, first, second)
    chosen = beside.judge.choose(PodInfo(first))
    beside.see(second, "b", number=2)
    # Without the second pod there, b is the better node.
    beside.decide(first, "b", number=1, first=replace_best(chosen))
    await beside.settle()
    found = beside.judge.disagreements[-1]
    assert found.verdict is ShadowVerdict.CHANGED
    assert found.sentence.endswith("; without 1 pod queued behind it, kubesched decides the same")


def replace_best(choice: Any) -> Any:
    """Return a first decision that was another one."""
    return replace(choice, node="nowhere", best=frozenset())


@on_virtual_time
async def test_a_binding_was_seen_late() -> None:
    """The other scheduler had assumed a pod already whose binding followed."""
    beside = Beside(*two_nodes("5"))
    first, second = pods("first", "second")
    pending(beside, first, second)
    chosen = beside.judge.choose(PodInfo(second))
    beside.decide(second, "a", number=2, first=replace_best(chosen))
    beside.see(first, "b", number=1)
    await beside.settle()
    found = beside.judge.disagreements[-1]
    assert found.verdict is ShadowVerdict.CHANGED
    assert found.sentence.endswith("; 2 changes later, kubesched decides the same")
    assert {"Agreed": 1, "Changed": 1} == beside.verdicts


@on_virtual_time
async def test_the_first_decision_counts_too() -> None:
    """It was made in the cluster as it was when the pod appeared."""
    beside = Beside(*two_nodes())
    pending(beside, WEB)
    beside.judge.version = "7"
    first = beside.judge.choose(PodInfo(WEB))
    beside.handlers.added(make_node("c", allocatable={"cpu": "64", "memory": "64Gi"}))
    beside.decide(WEB, "b", number=1, first=first)
    await beside.settle()
    found = only(beside)
    assert found.verdict is ShadowVerdict.CHANGED
    assert found.sentence.endswith("decided the same when the pod appeared, at version 7")


@on_virtual_time
async def test_open_decisions_are_judged_at_the_end() -> None:
    """Nothing is lost when the comparison ends within a second."""
    beside = Beside(*two_nodes())
    pending(beside, WEB)
    beside.see(WEB, "a", number=1)
    assert {} == beside.verdicts
    beside.judge.settle_all()
    await beside.settle()
    assert {"Different": 1} == beside.verdicts


@on_virtual_time
async def test_the_cache_is_restored() -> None:
    """Pods that are removed for a comparison are put back."""
    beside = Beside(*two_nodes())
    found = pods(*(f"p{number}" for number in range(9)))
    pending(beside, *found)
    for number, pod in enumerate(found):
        beside.see(pod, "ab"[number % 2], number=len(found) - number)
    await beside.settle()
    cache = beside.judge._cache
    cache.check()
    assert [5, 4] == [len(cache.nodes.pods[cache.nodes.row_of[name]]) for name in "ab"]


@on_virtual_time
async def test_a_deletion_was_seen_first() -> None:
    """The other scheduler left a pod pending while another was still on the node."""
    message = (
        "0/1 nodes are available: 1 Insufficient cpu. no new claims to deallocate, preemption: 0/1 "
        "nodes are available: 1 No preemption victims found for incoming pod."
    )
    beside = Beside(two_nodes()[0])
    there = make_pod("there", node_name="a", requests={"cpu": "3"})
    waits = make_pod("waits", requests={"cpu": "2"})
    beside.handlers.added(there)
    pending(beside, waits)
    beside.handlers.deleted(there)
    beside.judge.note_change(there, None)
    beside.see(waits, number=1, message=message)
    await beside.settle()
    found = only(beside)
    assert found.verdict is ShadowVerdict.CHANGED
    assert found.sentence.endswith("; 1 change earlier, kubesched decides the same")
    assert ("", "a") == (found.their_node, found.our_node)


@on_virtual_time
async def test_a_node_was_changed_before_the_binding_was_seen() -> None:
    """The other scheduler saw it without its taint; the cache has it again as it is."""
    taint = {"key": "k", "effect": "NoSchedule"}
    small, large = two_nodes()
    beside = Beside(small, large)
    pending(beside, WEB)
    tainted = make_node("b", allocatable={"cpu": "8", "memory": "16Gi"}, taints=[taint])
    beside.handlers.updated(large, tainted)
    beside.judge.note_change(large, tainted)
    beside.see(WEB, "b", number=1)
    await beside.settle()
    assert only(beside).sentence.endswith("; 1 change earlier, kubesched decides the same")
    assert "a" == beside.judge.choose(PodInfo(make_pod("next"))).node


@on_virtual_time
async def test_a_nomination_was_not_written_yet() -> None:
    """The pod goes to its nominated node, though another one is free by now."""
    small, large = two_nodes()
    beside = Beside(small)
    victim = make_pod("victim", node_name="a", requests={"cpu": "4"}, priority=0)
    waits = make_pod("waits", requests={"cpu": "2"}, priority=9)
    beside.handlers.added(victim)
    pending(beside, waits)
    beside.see(waits, number=1, message="0/1 nodes are available: 1 Insufficient cpu.")
    for number in range(20):
        beside.judge.note_change(None, make_pod(f"far-{number}", node_name="nowhere"))
    beside.handlers.deleted(victim)
    beside.handlers.added(large)
    empty = beside.judge.choose(PodInfo(waits))
    beside.decide(waits, "a", number=1, first=replace_best(empty))
    await beside.settle()
    assert {"Agreed": 1, "Changed": 1} == beside.verdicts
    assert only(beside).sentence.endswith(
        "; kubesched nominated it to that node, too, when it preempted"
    )


def nominated(name: str, node: str) -> tuple[Pod, Pod]:
    """Return a pod of high priority before and after its nomination, which takes a whole node."""
    before = make_pod(name, requests={"cpu": "4"}, priority=9)
    return before, replace(before, status=replace(before.status, nominated_node_name=node))


@on_virtual_time
async def test_a_nomination_was_seen_first() -> None:
    """The other scheduler decided before it nominated another pod, and wrote that first."""
    small = make_node("a", allocatable={"cpu": "4", "memory": "16Gi"})
    beside = Beside(small)
    waits, promised = nominated("waits", "a")
    pending(beside, waits, WEB)
    beside.handlers.updated(waits, promised)
    beside.judge.note_change(waits, promised, 2)
    chosen = beside.judge.choose(PodInfo(WEB))
    beside.decide(WEB, "a", number=1, first=replace_best(chosen))
    await beside.settle()
    found = only(beside)
    assert found.verdict is ShadowVerdict.CHANGED
    assert "with the pods nominated to the node (default/waits)" in found.sentence
    assert found.sentence.endswith("; 1 change earlier, kubesched decides the same")
    nominator = beside.judge._scheduler.queue.nominator
    nominator.check()
    assert "a" == nominator.node_of("default/waits")


@on_virtual_time
async def test_writes_are_throttled() -> None:
    """Two decisions were made while a third pod was still there, and written later."""
    amounts = ({"cpu": cpu, "memory": "64Gi"} for cpu in ("8", "6", "5"))
    beside = Beside(
        *(make_node(name, allocatable=given) for name, given in zip("abc", amounts, strict=True))
    )
    there = make_pod("there", node_name="a", requests={"cpu": "6", "memory": "1Gi"})
    first = make_pod("first", requests={"cpu": "2", "memory": "1Gi"})
    (second,) = pods("second")
    beside.handlers.added(there)
    pending(beside, first, second)
    chosen = beside.judge.choose(PodInfo(second))
    beside.handlers.deleted(there)
    beside.judge.note_change(there, None)
    for number in range(40):
        beside.judge.note_change(None, make_pod(f"far-{number}", node_name="nowhere"))
    beside.see(first, "b", number=1)
    beside.decide(second, "c", number=2, first=replace_best(chosen))
    await beside.settle()
    found = beside.judge.disagreements[-1]
    assert "bound to c, which scores lower than a: " in found.sentence
    assert found.verdict is ShadowVerdict.CHANGED
    assert found.sentence.endswith(
        " changes earlier, with what it had decided before, kubesched decides the same"
    )


@on_virtual_time
async def test_a_worse_node_in_every_state_is_different() -> None:
    """No order of events explains the decision."""
    beside = Beside(*two_nodes())
    for number in range(40):
        small = make_pod(f"small-{number}", node_name="ab"[number % 2], requests={"cpu": "1m"})
        beside.handlers.added(small)
        beside.judge.note_change(None, small)
    await beside.judge_one(WEB, "a")
    assert {"Different": 1} == beside.verdicts


@on_virtual_time
async def test_pods_that_were_bound_before_it_appeared_are_not_behind() -> None:
    """Whatever their priority: only with all of them on their nodes is the decision judged."""
    beside = Beside(*two_nodes("5"))
    for number, earlier in enumerate(pods("p0", "p1", "p2")):
        pending(beside, earlier)
        beside.see(earlier, "b", number=number)
    urgent = make_pod("urgent", requests=SMALL, priority=9)
    pending(beside, urgent)
    beside.see(urgent, "b", number=9)
    assert frozenset() == beside.judge._done_behind((-9, 9), since=3)
    assert 3 == len(beside.judge._done_behind((-9, 9), since=0))
    await asyncio.sleep(20)
    assert frozenset() == beside.judge._done_behind((-9, 9), since=0)


@pytest.mark.parametrize(("is_live", "verdict"), [(True, "Different"), (False, "Changed")])
@on_virtual_time
async def test_a_judge_of_a_live_cluster_keeps_up(
    monkeypatch: pytest.MonkeyPatch, is_live: bool, verdict: str
) -> None:
    """Without time it tries some states only, and counts the decisions for which it did."""
    monkeypatch.setattr(shadow_judge, "_SEARCH_SECONDS_MAX", 0.0)
    monkeypatch.setattr(shadow_judge, "_SEARCH_SHARE", 0.0)
    beside = Beside(two_nodes()[0], is_live=is_live)
    there = make_pod("there", node_name="a", requests={"cpu": "4"})
    waits = make_pod("waits", requests={"cpu": "2"})
    beside.handlers.added(there)
    pending(beside, waits)
    message = beside.judge.choose(PodInfo(waits)).message
    beside.handlers.deleted(there)
    beside.judge.note_change(there, None)
    for number in range(12):
        beside.judge.note_change(None, make_pod(f"far-{number}", node_name="nowhere"))
    first = replace_best(beside.judge.choose(PodInfo(waits)))
    beside.decide(waits, number=1, message=message, first=first)
    await beside.settle()
    assert {verdict: 1} == beside.verdicts
    assert is_live == beside.judge.hurried
