# ruff: noqa: N803, N806 - S and T are states, as in docs/model.md
"""Histories: pods arrive and end, nodes change, and the real scheduler decides in between.

Whatever happens, each of its steps is one the model allows, what is bound stays where it may be,
and when nothing else changes everybody who can be placed is, after finitely many attempts.
"""

from __future__ import annotations

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from msgspec.structs import replace

from kubesched.api.core import Node, Pod
from kubesched.scheduler.decision import Placed, Rejected
from kubesched.snapshot.pod_info import PodInfo

from .clusters import make_cluster, nodes, pick, pods, weights
from .filters import Filter_2, Filter_3, IsAvoided, NodeAffinityHolds, PodAntiAffinityHolds
from .model import SchedulingEnabled
from .ratings import Ratings
from .refinement import ClearingEnabled, Refused, allows
from .state import Objects, On, Unbound, Victims, key, priority

pytestmark = pytest.mark.slow

NODES_MAX, PODS_MAX, ATTEMPTS_MAX = 5, 8, 200
NODE_NAMES = [f"n{number}" for number in range(NODES_MAX)]
SEVERAL = st.integers(1, 3)
ANY = st.integers(0, 99)
_FIRST_NODES = st.sampled_from([3, 2, 1, 4, 0]).flatmap(
    lambda count: st.tuples(*(nodes(name, plain=True) for name in NODE_NAMES[:count]))
)


class ClusterAndModel(RuleBasedStateMachine):
    """Changes a real cluster and a set of objects in the same way.

    `S` is the set; `aside` are the names of those who were rejected since something last changed.
    """

    @initialize(ratings=weights(), seed=st.integers(0, 3), first=_FIRST_NODES)
    def start(self, ratings: Ratings, seed: int, first: tuple[Node, ...]) -> None:
        """Start with a few nodes without restrictions."""
        self.ratings = ratings
        self.S = Objects()
        self.cluster = make_cluster([], ratings, seed=seed)
        self.aside: set[str] = set()
        self.born = self.started = 0
        for node in first:
            self.node_comes(node)

    # What others do.

    @rule(node=st.sampled_from(NODE_NAMES).flatmap(nodes))
    def node_comes(self, node: Node) -> None:
        """Add a node, if there is none of its name."""
        if node not in self.S:
            self.cluster.cache.add_node(node)
            self._changed(self.S.put(node))

    @rule(which=ANY)
    @precondition(lambda self: len(self.S.nodes) > 2)
    def node_goes(self, which: int) -> None:
        """Remove a node; its pods are collected."""
        node = pick(self.S.Nodes, which)
        for p in On(node, self.S):
            self._remove(p)
        self.cluster.cache.remove_node(node.metadata.name)
        left = {name: n for name, n in self.S.nodes.items() if n is not node}
        self._changed(Objects(left, self.S.pods))

    @rule(which=ANY)
    @precondition(lambda self: self.S.nodes)
    def node_is_cordoned_or_not(self, which: int) -> None:
        """Cordon or uncordon a node."""
        node = pick(self.S.Nodes, which)
        spec = replace(node.spec, unschedulable=not node.spec.unschedulable)
        node = replace(node, spec=spec)
        self.cluster.cache.add_node(node)
        self._changed(self.S.put(node))

    @rule(arriving=st.lists(pods("p", plain=True), min_size=2, max_size=4))
    def pods_arrive(self, arriving: list[Pod]) -> None:
        """Create pods without constraints, up to the test's limit."""
        for p in arriving[: PODS_MAX - len(self.S.pods)]:
            self.born += 1
            self._arrive(_with_uid(p, self.born))

    @rule(p=pods("p"))
    def a_choosy_pod_arrives(self, p: Pod) -> None:
        """Create a pod with constraints."""
        self.pods_arrive([p])

    @rule(p=pods("p", priorities=(9, 5), plain=True))
    @precondition(lambda self: Unbound(self.S) != [*self.S.Pods])
    def an_important_pod_arrives(self, p: Pod) -> None:
        """Create a pod that may have to preempt."""
        self.pods_arrive([p])

    @rule(which=ANY)
    @precondition(lambda self: self.S.pods)
    def pod_ends(self, which: int) -> None:
        """Finish a pod, or delete it before it is bound."""
        self._remove(pick(self.S.Pods, which))

    @rule(which=ANY)
    @precondition(lambda self: any(not p.status.start_time for p in _bound(self.S)))
    def pod_starts(self, which: int) -> None:
        """Report that a bound pod has started, later than all before."""
        p = pick([p for p in _bound(self.S) if not p.status.start_time], which)
        self.started += 1
        start_time = f"2026-01-01T00:{self.started // 60:02}:{self.started % 60:02}Z"
        p = replace(p, status=replace(p.status, phase="Running", start_time=start_time))
        self.cluster.cache.add_pod(p)
        self.S = self.S.put(p)

    # What the scheduler does.

    @rule(count=SEVERAL)
    def attempts(self, count: int) -> None:
        """Try the first pod in the queue, a few times."""
        for _ in range(count):
            if p := self._first():
                self._attempt(p)

    @rule(reborn=st.booleans())
    def settle(self, reborn: bool) -> None:
        """Change nothing else, except that a controller may replace evicted pods."""
        attempts = 0
        while p := self._first():
            attempts += 1
            assert attempts <= ATTEMPTS_MAX, "the queue never comes to rest"
            victims = self._attempt(p)
            for q in victims if reborn else ():
                self.born += 1
                self._arrive(_as_new(q, self.born))
        for p in Unbound(self.S):
            assert Refused(p, self.S)
            assert not p.status.nominated_node_name
            # Without nominations left this is what the page says.
            assert not SchedulingEnabled(p, self.S)
            assert not ClearingEnabled(p, self.S)

    def _first(self) -> Pod | None:
        """Return the next pod: of highest priority, then the earliest."""
        offered = self._offered()
        return min(offered, key=lambda p: -priority(p)) if offered else None

    def _offered(self) -> list[Pod]:
        return [p for p in Unbound(self.S) if key(p) not in self.aside]

    def _attempt(self, p: Pod) -> Victims:
        """Try a pod, check the decision, carry it out and check the step; return the victims."""
        S, offered = self.S, self._offered()
        info = self.cluster.pending[p.metadata.uid]
        decision = self.cluster.schedule_one(info)
        victims: Victims = ()
        if isinstance(decision, Placed):
            self.cluster.bind(info, decision.node_name)
            T = S.bind(p, S.nodes[decision.node_name])
            action = {"Scheduling"}
        else:
            if isinstance(decision, Rejected):
                victims = self._evict(decision.victims)
            T = S - victims
            action = {"Preemption"} if victims else {"Unchanged", "Stutter"}
        step = allows(S, T, tried=p, offered=offered, ratings=self.ratings)
        assert step is not None
        assert key(p) == step.pod
        assert step.action in action
        self._follow(p, T, decision.nominated_node_name if isinstance(decision, Rejected) else None)
        return victims

    def _evict(self, victims: tuple[PodInfo, ...]) -> Victims:
        for victim in victims:
            self.cluster.evict(victim)
        return tuple(self.S.pods[victim.key] for victim in victims)

    def _follow(self, p: Pod, T: Objects, nominated: str | None) -> None:
        """Move to the next state; set or clear a nomination."""
        before = p.status.nominated_node_name
        if nominated is not None and nominated != before:
            self.cluster.nominate(self.cluster.pending[p.metadata.uid], nominated)
        if len(Unbound(T)) < len(Unbound(self.S)) or len(T.pods) < len(self.S.pods):
            self._changed(T)
        elif nominated is not None and nominated != before:
            # Pods that the nomination kept away may try again; the pod itself was just rejected.
            self._changed(T)
            self.aside.add(key(p))
        else:
            self.aside.add(key(p))
        self._copy_nominations()

    # Both at once.

    def _arrive(self, p: Pod) -> None:
        self.cluster.add_pending(p)
        self._changed(self.S.put(p))

    def _remove(self, p: Pod) -> None:
        uid = p.metadata.uid
        if self.cluster.cache.remove_pod(uid) is None:
            del self.cluster.pending[uid]
            self.cluster.nominator.delete(uid)
        self._changed(self.S - [p])

    def _changed(self, T: Objects) -> None:
        self.S = T
        self.aside.clear()

    def _copy_nominations(self) -> None:
        for info in self.cluster.pending.values():
            self.S = self.S.put(info.pod)

    # What holds at any time.

    @invariant()
    def the_set_is_what_the_cluster_has(self) -> None:
        """The same bound and pending pods, with the same nominations."""
        cluster = self.cluster
        cluster.cache.check()
        cluster.nominator.check()
        there = zip(cluster.cache.nodes.names, cluster.cache.nodes.pods, strict=True)
        on_nodes = {name: {info.key for info in infos.values()} for name, infos in there}
        assert {name: {key(p) for p in On(n, self.S)} for name, n in self.S.nodes.items()} == (
            on_nodes
        )
        nominations = {key(p): p.status.nominated_node_name for p in Unbound(self.S)}
        assert nominations == {
            info.key: cluster.nominator.node_of(info.uid) for info in cluster.pending.values()
        }

    @invariant()
    def the_bound_are_where_they_may_be(self) -> None:
        """Resources, labels, and anti-affinity in both directions.

        Cordons and affinity to pods are for those who come: they may cease to hold later.
        """
        for p in _bound(self.S):
            n, others = self.S.nodes[p.spec.node_name], self.S - [p]
            assert Filter_2(p, n, others)
            assert Filter_3(p, n, others)
            assert NodeAffinityHolds(p, n)
            assert not PodAntiAffinityHolds(p, n, others)
            assert not IsAvoided(p, n, others)


def _bound(S: Objects) -> list[Pod]:
    return [p for p in S.Pods if p.spec.node_name]


def _with_uid(p: Pod, number: int) -> Pod:
    return replace(p, metadata=replace(p.metadata, name=f"p{number}", uid=f"uid-{number}"))


def _as_new(q: Pod, number: int) -> Pod:
    q = _with_uid(q, number)
    status = replace(q.status, phase="", start_time=None, nominated_node_name="")
    return replace(q, spec=replace(q.spec, node_name=""), status=status)


TestHistories = ClusterAndModel.TestCase
TestHistories.settings = settings(max_examples=60, stateful_step_count=30)
