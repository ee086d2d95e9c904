# ruff: noqa: N806 - S is a state, as in docs/model.md
"""Histories of a whole cluster: the runtime loop schedules while pods and nodes change.

Requests and watches take time and fail, victims stop gracefully, pods back off. Each decision is a
step the model allows from what the scheduler had seen; it carries out what it decided and nothing
else; what is bound stays where it may be; and who can be placed is placed in the end.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable, Coroutine
from functools import partial
from typing import Any, TypeVar

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from msgspec.structs import replace

from kubesched.api.core import Node, Pod
from kubesched.api.errors import NotFoundError
from kubesched.simulator.faults import FaultPlan, Latencies, RequestFaults, WatchFaults
from kubesched.simulator.traces import RUN_SECONDS
from kubesched.simulator.virtual_loop import VirtualLoop

from .clusters import nodes, pick, pods, weights
from .filters import Filter_2, Filter_3, IsAvoided, NodeAffinityHolds, PodAntiAffinityHolds
from .live import LiveCluster, enabled
from .model import SchedulingEnabled
from .ratings import Ratings
from .refinement import ClearingEnabled
from .state import Unbound, key

pytestmark = pytest.mark.slow

Item = TypeVar("Item")

NODES_MAX, PODS_MAX, ROUNDS_MAX = 4, 10, 40
NODE = "n"
ANY = st.integers(0, 99)
SECONDS = st.sampled_from([0.5, 0.005, 0.02, 2.0, 12.0, 45.0])
LATENCIES = st.sampled_from([Latencies(), Latencies(request=0.5, watch=1.0, pod_stop=10.0)])
FAULTS = st.sampled_from(
    [
        FaultPlan(),
        FaultPlan(
            bind=RequestFaults(conflict=0.2, error=0.1),
            status=RequestFaults(error=0.2, unanswered=0.1),
            delete=RequestFaults(error=0.3, unanswered=0.1),
        ),
        FaultPlan(watch=WatchFaults(every=20.0, outage=5.0)),
    ]
)
_FIRST_NODES = st.sampled_from([2, 1, 3]).flatmap(
    lambda count: st.tuples(*(nodes(NODE, plain=True) for _ in range(count)))
)


class LiveHistory(RuleBasedStateMachine):
    """Changes a cluster and lets time pass, while the scheduler does the rest."""

    @initialize(
        ratings=weights(),
        seed=st.integers(0, 3),
        latencies=LATENCIES,
        faults=FAULTS,
        first=_FIRST_NODES,
    )
    def start(
        self,
        ratings: Ratings,
        seed: int,
        latencies: Latencies,
        faults: FaultPlan,
        first: tuple[Node, ...],
    ) -> None:
        """Start with a few nodes without restrictions."""
        self.runner = asyncio.Runner(loop_factory=lambda: VirtualLoop(0.0, on_idle=lambda: None))
        self.born = 0
        self.relabelled: set[str] = set()

        async def begin() -> LiveCluster:
            return LiveCluster(ratings, seed, latencies, faults)

        self.live = self._run(begin())
        for node in first:
            self.node_comes(node)

    def _run(self, coroutine: Coroutine[Any, Any, Item]) -> Item:
        return self.runner.run(coroutine)

    def _do(self, action: Callable[..., object], *arguments: object) -> None:
        """Change the world on its loop, between two of its times."""

        async def act() -> None:
            action(*arguments)

        self._run(act())

    # Nodes.

    @rule(node=nodes(NODE))
    def node_comes(self, node: Node) -> None:
        """Add a node; names are not reused, as pods of the last one may still exist."""
        if len(self._nodes()) < NODES_MAX:
            self.born += 1
            name = f"{NODE}{self.born}"
            labels = {**node.metadata.labels, "host": name}
            metadata = replace(node.metadata, name=name, uid="", labels=labels)
            self._do(self.live.world.nodes.add, replace(node, metadata=metadata))

    @rule(which=ANY)
    @precondition(lambda self: len(self._nodes()) > 2)
    def node_goes(self, which: int) -> None:
        """Remove a node; its pods are collected some time later."""
        self._do(self.live.world.nodes.remove, self._pick_node(which))

    @rule(which=ANY, on=st.booleans())
    @precondition(lambda self: self._nodes())
    def node_is_cordoned_or_not(self, which: int, on: bool) -> None:
        """Cordon or uncordon a node."""
        self._do(partial(self.live.world.nodes.cordon, on=on), self._pick_node(which))

    @rule(which=ANY, rank=st.sampled_from(["1", "2", "11"]))
    @precondition(lambda self: self._nodes())
    def node_is_relabelled(self, which: int, rank: str) -> None:
        """Change a label that pods may have required when they were placed."""
        name = self._pick_node(which)
        self.relabelled.add(name)
        self._do(self.live.world.nodes.relabel, name, {"rank": rank})

    @rule(which=ANY, seconds=st.sampled_from([20, 100, 400]))
    @precondition(lambda self: self._nodes())
    def node_is_silent_for_a_while(self, which: int, seconds: int) -> None:
        """Let a node stop reporting, until its pods are evicted."""
        self._do(self.live.world.nodes.fail, self._pick_node(which), seconds)

    # Pods.

    @rule(
        arriving=st.lists(pods("p", plain=True), min_size=2, max_size=4),
        run_seconds=st.sampled_from([None, None, 5, 60, 500]),
    )
    def pods_arrive(self, arriving: list[Pod], run_seconds: int | None = None) -> None:
        """Create pods without constraints, up to the test's limit."""
        for p in arriving[: max(PODS_MAX - len(self._pods()), 0)]:
            self.born += 1
            annotations = {} if run_seconds is None else {RUN_SECONDS: str(run_seconds)}
            name = f"p{self.born}"
            metadata = replace(p.metadata, name=name, uid="", annotations=annotations)
            self._do(self.live.world.server.create, replace(p, metadata=metadata))

    @rule(p=pods("p"))
    def a_choosy_pod_arrives(self, p: Pod) -> None:
        """Create a pod with constraints."""
        self.pods_arrive([p])

    @rule(p=pods("p", priorities=(9, 5), plain=True), patient=st.booleans())
    @precondition(lambda self: self._pods())
    def an_important_pod_arrives(self, p: Pod, patient: bool) -> None:
        """Create a pod that may preempt, unless its policy is Never."""
        policy = "Never" if patient else ""
        self.pods_arrive([replace(p, spec=replace(p.spec, preemption_policy=policy))])

    @rule(
        arriving=st.lists(pods("p", priorities=(5, 9, 1, 0), plain=True), min_size=4, max_size=8),
        seconds=SECONDS,
    )
    def rush_hour(self, arriving: list[Pod], seconds: float) -> None:
        """Start ordinary pods, then create more important ones than there is room for."""
        half = len(arriving) // 2
        self.pods_arrive([replace(p, spec=replace(p.spec, priority=0)) for p in arriving[:half]])
        self.time_passes(4.0)
        self.pods_arrive(arriving[half:])
        self.time_passes(seconds)

    @rule(which=ANY)
    @precondition(lambda self: self._pods())
    def pod_is_deleted(self, which: int) -> None:
        """Delete a pod, wherever it is."""
        p = pick(self._pods(), which)
        self._do(self._delete, p)

    def _delete(self, p: Pod) -> None:
        try:
            self.live.world.server.delete_pod(p.metadata.namespace, p.metadata.name)
        except NotFoundError:
            return

    # Time.

    @rule(seconds=SECONDS)
    def time_passes(self, seconds: float) -> None:
        """The scheduler works, kubelets start and stop pods, requests are answered."""
        self._run(self.live.advance(seconds))

    @rule()
    def nothing_else_happens(self) -> None:
        """In the end every pod that can be placed is, and no nomination is left."""
        S = self._run(self.live.come_to_rest(ROUNDS_MAX))
        while held_back := self.live.held_back():
            # As upstream, they wait for others to knock.
            self._do(self.live.scheduler.activate, held_back)
            S = self._run(self.live.come_to_rest(ROUNDS_MAX))
        waiting = Unbound(S)
        assert [] == [key(p) for p in enabled(S)]
        assert [] == [key(p) for p in waiting if p.status.nominated_node_name]
        assert [] == [key(p) for p in waiting if SchedulingEnabled(p, S) or ClearingEnabled(p, S)]
        self.live.check_at_rest(S)

    def teardown(self) -> None:
        """Let time pass until nothing more happens."""
        if not hasattr(self, "runner"):
            return
        try:
            # After a failure there is nothing left to find out.
            if sys.exc_info()[0] is None:
                self.nothing_else_happens()
        finally:
            self.runner.close()

    # What holds at any time.

    @invariant()
    def the_scheduler_is_sound(self) -> None:
        """Cache and queue pass their checks."""
        self.live.scheduler.cache.check()
        self.live.scheduler.queue.check()

    @invariant()
    def the_bound_are_where_they_may_be(self) -> None:
        """Resources, labels, and anti-affinity in both directions.

        Cordons, taints and affinity to pods are for those who come: they may cease to hold later,
        and so may what a pod asked of its node's labels, if these change.
        """
        S = self.live.state()
        for p in (p for p in S.Pods if p.spec.node_name):
            n, others = S.nodes[p.spec.node_name], S - [p]
            assert Filter_2(p, n, others)
            assert Filter_3(p, n, others)
            assert n.metadata.name in self.relabelled or NodeAffinityHolds(p, n)
            assert not PodAntiAffinityHolds(p, n, others)
            assert not IsAvoided(p, n, others)

    def _nodes(self) -> list[Node]:
        return list(self.live.world.server.all(Node))

    def _pods(self) -> list[Pod]:
        return list(self.live.world.server.all(Pod))

    def _pick_node(self, which: int) -> str:
        return pick(self._nodes(), which).metadata.name


TestLiveHistories = LiveHistory.TestCase
TestLiveHistories.settings = settings(max_examples=50, stateful_step_count=25)
