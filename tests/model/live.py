# ruff: noqa: N803, N806 - S and T are states, as in docs/model.md
"""The whole scheduler on virtual time, with each step checked against the model.

informers ──▶ Seen ──▶ the scheduler's event handlers
               │
decisions ──▶ `Witness`: is this a step from what has been seen and assumed?
requests  ──▶ `Ledger`:  is this what was decided?
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from typing import Final

from msgspec.structs import replace

from kubesched.api.conditions import ConditionPatch
from kubesched.api.core import EventRecord as Event
from kubesched.api.core import Node, Pod
from kubesched.api.meta import KubeObject, ResourceEventHandler
from kubesched.api.scheduling import PodGroup
from kubesched.framework.status import Status
from kubesched.plugins.registry import in_tree_setup
from kubesched.queue.moves import QueuePlace
from kubesched.scheduler.api_client import ApiClient
from kubesched.scheduler.assembly import assemble
from kubesched.scheduler.binding import Assumed
from kubesched.scheduler.decision import Decision, Placed, Rejected
from kubesched.scheduler.loop import Scheduler
from kubesched.scheduler.observer import Observer
from kubesched.simulator.faults import NO_FAULTS, FaultPlan, Latencies, RandomStreams
from kubesched.simulator.object_server import NODES, PODS
from kubesched.simulator.simulated_api import SimulatedApi
from kubesched.simulator.world import World
from kubesched.snapshot.pod_info import PodInfo

from .clusters import GATES, configuration_of
from .ratings import Ratings
from .refinement import Refused, Waits, allows
from .state import Objects, key

_FLUSH_SECONDS: Final = 5 * 60 + 30
"""When at the latest a pod is tried again that nothing has helped."""
_BACKOFF_SECONDS: Final = 10
REST_SECONDS: Final = _FLUSH_SECONDS + 2 * _BACKOFF_SECONDS
"""Who can be placed, and is left alone so long, is tried."""


class Seen:
    """Nodes and pods that the scheduler has received; kept without its cache.

    Attributes:
        assumed: Pods that were placed and are not yet seen on their node: uid -> pod, node's name.
    """

    def __init__(self, handlers: ResourceEventHandler) -> None:
        self._handlers = handlers
        self._nodes: dict[str, Node] = {}
        self._pods: dict[str, Pod] = {}
        self.assumed: dict[str, tuple[Pod, str]] = {}

    def added(self, item: KubeObject) -> None:
        """Add the object."""
        self._take(item)
        self._handlers.added(item)

    def updated(self, old: KubeObject, new: KubeObject) -> None:
        """Update the object."""
        self._take(new)
        self._handlers.updated(old, new)

    def deleted(self, item: KubeObject, *, is_final_state_known: bool = True) -> None:
        """Delete the object."""
        if isinstance(item, Node):
            del self._nodes[item.metadata.name]
        elif isinstance(item, Pod):
            self._pods.pop(item.metadata.uid, None)
            self.assumed.pop(item.metadata.uid, None)
        self._handlers.deleted(item, is_final_state_known=is_final_state_known)

    def _take(self, item: KubeObject) -> None:
        if isinstance(item, Node):
            self._nodes[item.metadata.name] = item
        elif isinstance(item, Pod):
            self._pods[item.metadata.uid] = item
            if item.spec.node_name:
                self.assumed.pop(item.metadata.uid, None)

    def state(self, nomination_of: Callable[[Pod], str]) -> Objects:
        """Return S: the received objects, with later assumptions and nominations.

        A pod whose node is deleted is left out, as other components delete it.
        """
        pods: list[object] = []
        for uid, pod in self._pods.items():
            name = self.assumed[uid][1] if uid in self.assumed else pod.spec.node_name
            if name:
                there = replace(pod, spec=replace(pod.spec, node_name=name))
                pods += [there] if name in self._nodes else []
            else:
                status = replace(pod.status, nominated_node_name=nomination_of(pod))
                pods.append(replace(pod, status=status))
        return Objects.of([*self._nodes.values(), *pods])


class Witness(Observer):
    """Checks each decision against the model, and records it.

    Attributes:
        faults: What the model does not allow; the run is void after the first.
        steps: How often each action was seen.
        placed: Pod's uid -> where it was placed last.
        nominated: Pod's uid -> the nodes it was ever nominated to.
        condemned: Uids of the pods that were ever chosen as victims.
    """

    def __init__(self, ratings: Ratings) -> None:
        self._ratings = ratings
        self.scheduler: Scheduler | None = None
        self.seen: Seen | None = None
        self.faults: list[AssertionError] = []
        self.steps: dict[str, int] = {}
        self.placed: dict[str, str] = {}
        self.nominated: dict[str, set[str]] = {}
        self.condemned: set[str] = set()

    def decided(self, decision: Decision, started: float) -> None:
        """Check the decision; the cluster is still as it was."""
        try:
            self._check(decision)
        except AssertionError as fault:
            self.faults.append(fault)

    def _check(self, decision: Decision) -> None:
        assert self.scheduler is not None
        assert self.seen is not None
        uid = decision.pod.uid
        S = self._state(decision.pod.pod)
        assert decision.pod.key in S.pods, "a pod was tried that is gone"
        p = S.pods[decision.pod.key]
        T, actions, node_name = self._carried_out(S, p, decision)
        waiting = self.scheduler.queue.pods(QueuePlace.ACTIVE)
        offered = [p, *(S.pods[q.pod_info.key] for q in waiting if q.pod_info.key in S.pods)]
        step = allows(S, T, tried=p, offered=offered, ratings=self._ratings)
        assert step is not None, f"{decision} is not a step from {S}"
        assert step.pod == key(p)
        assert step.action in actions
        assert step.node in ("", node_name)
        self.steps[step.action] = self.steps.get(step.action, 0) + 1
        if Waits(p, S) and not isinstance(decision, Placed):
            self.steps["Waits"] = self.steps.get("Waits", 0) + 1
        if isinstance(decision, Placed):
            self.placed[uid] = decision.node_name
            self.seen.assumed[uid] = (p, decision.node_name)
        elif node_name:
            self.nominated.setdefault(uid, set()).add(node_name)

    def _state(self, tried: Pod) -> Objects:
        """Return S: the tried pod has the nomination of its status, others the recorded ones."""
        assert self.scheduler is not None
        assert self.seen is not None
        nominator = self.scheduler.queue.nominator

        def nomination_of(pod: Pod) -> str:
            if pod.metadata.uid == tried.metadata.uid:
                return tried.status.nominated_node_name
            return nominator.node_of(pod.metadata.uid)

        return self.seen.state(nomination_of)

    def _carried_out(self, S: Objects, p: Pod, decision: Decision) -> tuple[Objects, set[str], str]:
        """Return T, the allowed actions, and the node of the placement or nomination."""
        if isinstance(decision, Placed):
            name = decision.node_name
            return S.bind(p, S.nodes[name]), {"Scheduling"}, name
        if not isinstance(decision, Rejected):
            assert not S.nodes, decision.message
            return S, {"Unchanged", "Stutter"}, ""
        name = decision.nominated_node_name or ""
        if not decision.victims:
            assert not name, "a pod is nominated without victims"
            return S, {"Unchanged", "Stutter"}, ""
        self.condemned.update(victim.uid for victim in decision.victims)
        return S - [S.pods[victim.key] for victim in decision.victims], {"Preemption"}, name

    def binding_failed(self, assumed: Assumed, status: Status, now: float) -> None:
        """Undo the placement."""
        assert self.seen is not None
        self.seen.assumed.pop(assumed.pod.uid, None)
        self.placed.pop(assumed.pod.uid, None)


class Ledger:
    """An API client that passes decided writes on and records all others.

    Attributes:
        api: Carries it out.
    """

    def __init__(self, api: ApiClient, witness: Witness) -> None:
        self.api = api
        self._witness = witness

    def _expect(self, holds: bool, words: str) -> None:
        if not holds:
            self._witness.faults.append(AssertionError(words))

    async def bind(self, pod: Pod, node_name: str) -> None:
        """Check that the pod is bound where it was placed."""
        placed = self._witness.placed.get(pod.metadata.uid)
        self._expect(placed == node_name, f"{key(pod)} is bound to {node_name}, not to {placed}")
        await self.api.bind(pod, node_name)

    async def patch_pod_status(
        self,
        pod: Pod,
        condition: ConditionPatch | None = None,
        nominated_node_name: str | None = None,
    ) -> None:
        """Check nominations, and that only victims are disrupted."""
        uid = pod.metadata.uid
        nominated = {"", *self._witness.nominated.get(uid, ())}
        if nominated_node_name is not None:
            words = f"{key(pod)} is nominated to {nominated_node_name}, out of {sorted(nominated)}"
            self._expect(nominated_node_name in nominated, words)
        if condition is not None and condition.type == "DisruptionTarget":
            self._expect(uid in self._witness.condemned, f"{key(pod)} is not a victim")
        await self.api.patch_pod_status(pod, condition, nominated_node_name)

    async def patch_pod_group_status(self, group: PodGroup, condition: ConditionPatch) -> None:
        """Not used: there are no groups."""
        self._expect(holds=False, words=f"a group {group.metadata.name} out of nowhere")

    async def delete_pod(self, pod: Pod) -> None:
        """Check that only victims are deleted."""
        self._expect(pod.metadata.uid in self._witness.condemned, f"{key(pod)} is not a victim")
        await self.api.delete_pod(pod)

    def record_event(self, event: Event) -> None:
        """Ignore the event."""
        self.api.record_event(event)


class LiveCluster:
    """A simulated cluster with the real scheduler, whose time is advanced by hand.

    Attributes:
        world: The cluster.
        witness: Checks what the scheduler does.
        scheduler: The real one.
    """

    def __init__(
        self, ratings: Ratings, seed: int, latencies: Latencies, faults: FaultPlan
    ) -> None:
        """Start empty; there must be a running event loop."""
        self.world = World(RandomStreams(seed), latencies, faults)
        self.witness = Witness(ratings)
        self._ledger = Ledger(self.world.api, self.witness)
        self._calm = SimulatedApi(
            self.world.server, self.world.random_streams, latencies, NO_FAULTS
        )
        self.scheduler, handlers = assemble(
            in_tree_setup(GATES, configuration_of(ratings)),
            self._ledger,
            random=self.world.random_streams.stream("scheduler"),
            observers=[self.witness],
        )
        seen = Seen(handlers)
        self.witness.scheduler, self.witness.seen = self.scheduler, seen
        self.world.connect(seen, (NODES, PODS))
        self._task = asyncio.ensure_future(self.scheduler.run())

    async def advance(self, seconds: float) -> None:
        """Let time pass.

        Raises:
            AssertionError: The scheduler did what the model does not allow.
        """
        await asyncio.sleep(seconds)
        if self.witness.faults:
            raise self.witness.faults[0]
        assert not self._task.done(), self._task.exception()

    def state(self) -> Objects:
        """Return S of the API server; a pod whose node is deleted is left out."""
        server = self.world.server
        S = Objects.of([*server.all(Node), *server.all(Pod)])
        return S - [p for p in S.Pods if p.spec.node_name and p.spec.node_name not in S.nodes]

    @property
    def _version(self) -> int:
        """Return the number of writes so far."""
        return self.world.server.store.version

    async def come_to_rest(self, rounds_max: int) -> Objects:
        """Let time pass without request failures until nothing is written any more; return S.

        Raises:
            AssertionError: That takes too long, or the model forbids a step.
        """
        self._ledger.api = self._calm
        for _ in range(rounds_max):
            before = self._version
            await self.advance(REST_SECONDS)
            if self._version == before:
                self._ledger.api = self.world.api
                return self.state()
        raise AssertionError("the cluster never comes to rest")

    def held_back(self) -> list[PodInfo]:
        """Return the pods that are gated by a preemption that has ended.

        Its gate is looked at only when a pod is deleted and a hint says that this helps. If all
        victims leave on their own while they are being evicted, it may be too early each time, and
        the flush leaves out who is gated; in upstream, too.
        """
        return [
            queued.pod_info
            for queued in self.scheduler.queue.pods(QueuePlace.UNSCHEDULABLE)
            if queued.gating_plugin == "DefaultPreemption"
            and not self.scheduler.evictions.is_running(queued.pod_info.uid)
        ]

    def check_at_rest(self, S: Objects) -> None:
        """Assert that the scheduler has the server's objects, and nothing is in progress.

        Raises:
            AssertionError: It does not.
        """
        assert self.witness.seen is not None
        nominator = self.scheduler.queue.nominator
        seen = self.witness.seen.state(lambda pod: nominator.node_of(pod.metadata.uid))
        assert not self.witness.seen.assumed
        assert seen.nodes == S.nodes
        assert seen.pods == S.pods


def enabled(S: Objects) -> Iterable[Pod]:
    """Return the pending pods that could be placed or preempt."""
    return [p for p in S.Pods if not p.spec.node_name and not Refused(p, S)]
