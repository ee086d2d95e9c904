"""Rehearsal is the production scheduler in a world made of a cluster's objects, without latencies.

A command loads a cluster, lets it settle, changes something, lets it settle again, and reads the
outcomes:

    async def main() -> list[Placement]:
        rehearsal = Rehearsal(in_tree_setup(gates), seed=0)
        rehearsal.load(objects)                     # as decoded, with the API server's defaults
        await rehearsal.settle()
        for pod in rehearsal.pods_on("node-1"):
            evict(rehearsal.server, pod)            # asks the disruption budgets
            rehearsal.server.create(replacement_of(pod))
        await rehearsal.settle()
        return list(rehearsal.outcomes.placements.values())

    virtual_loop.run(main())

Pods on nodes stay there until they are deleted; nothing creates them again. Pods that are being
deleted stay too, unless a pod of higher priority is nominated to their node: it waits for them.
`settle` ends when the scheduler can do nothing more. That kube-scheduler tries every pod again
after five minutes does not count.

Upstream: pkg/scheduler/scheduler.go (v1.36)
Invariants: the same objects, changes and seed give the same outcomes.
Differs:  extenders are not called; a pod that was tried a hundred times is given up.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Coroutine, Iterable, Iterator
from random import Random
from typing import Any, Final

from msgspec.structs import replace

from kubesched.api.core import Node, Pod
from kubesched.api.meta import KubeObject, controller_of
from kubesched.api.times import parse_time
from kubesched.config.args import ignore_extender_resources
from kubesched.explain.explain import awaited
from kubesched.framework.plugin_error import PluginError
from kubesched.framework.preemption.eligibility import lower_priority_pods
from kubesched.framework.registry import SchedulerSetup
from kubesched.queue.moves import QueuePlace
from kubesched.scheduler.assembly import Writers, assemble, queue_options
from kubesched.scheduler.binding import Assumed
from kubesched.scheduler.decision import NOBODY_REJECTED, Decision, FailedAttempt, Placed
from kubesched.scheduler.eviction import Preemption
from kubesched.scheduler.loop import Scheduler
from kubesched.scheduler.observer import Observer
from kubesched.simulator.defaults import with_uid
from kubesched.simulator.instant_server import (
    InstantClaimWriter,
    InstantServer,
    InstantVolumeWriter,
)
from kubesched.simulator.livelock_guard import LivelockGuard
from kubesched.simulator.report import Eviction, Gated, PodPlacement, Unplaced
from kubesched.simulator.simulated_api import InstantApi
from kubesched.simulator.virtual_loop import seconds_of
from kubesched.snapshot.pod_info import PodInfo, uid_of


class Outcomes(Observer):
    """The last outcome of each pod that was tried, by uid.

    Attributes:
        placements: Pods that were bound and are still there, in the order of binding.
        unplaced: Pods whose last attempt failed, and which are still there.
        evictions: Evicted pods, in order.
        displaced: Pods that were bound and then deleted.
        had_choice: Bound pods with more than one feasible node.
        victims: The pods that were evicted for a pod; for a group, by the group's uid.
        attempts: Number of attempts by pod.
        failed_at: `server.changes` at the last failed attempt, before its own evictions.
        on_attempt: Called after each attempt.
    """

    def __init__(self, scheduler: Scheduler, server: InstantServer) -> None:
        """Follow a scheduler and the server it writes to."""
        self.placements: dict[str, PodPlacement] = {}
        self.unplaced: dict[str, Unplaced] = {}
        self.evictions: list[Eviction] = []
        self.displaced: dict[str, None] = {}
        self.had_choice: set[str] = set()
        self.victims: dict[str, tuple[str, ...]] = {}
        self.attempts: Counter[str] = Counter()
        self.failed_at: dict[str, int] = {}
        self.on_attempt: Callable[[], object] = lambda: None
        self._nominated: set[str] = set()
        self._evicting_at: int | None = None
        self._scheduler = scheduler
        self._server = server
        scheduler.observers.append(self)
        server.on_pod_deleted = self._deleted

    def decided(self, decision: Decision, started: float) -> None:
        """Count the attempt."""
        uid = decision.pod.uid
        self.attempts[uid] += 1
        nominator = self._scheduler.queue.nominator
        if nominator and isinstance(decision, Placed):
            if nominator.node_of(uid) == decision.node_name:
                self._nominated.add(uid)
            else:
                self._nominated.discard(uid)
        self.on_attempt()

    def bound(self, assumed: Assumed, now: float) -> None:
        """Note the placement."""
        pod = assumed.pod
        self.unplaced.pop(pod.uid, None)
        if assumed.feasible > 1:
            self.had_choice.add(pod.uid)
        self.placements[pod.uid] = PodPlacement(
            pod.key,
            pod.node_name,
            assumed.queued.attempts,
            pod.uid in self._nominated,
            self.victims.get(pod.uid, ()),
            awaited(assumed.profile, assumed.cycle, pod, pod.node_name),
        )

    def failed(self, attempt: FailedAttempt, now: float) -> None:
        """Note why the pod has no node."""
        queued, status, diagnosis = attempt.queued, attempt.status, attempt.diagnosis
        plugins = queued.rejecting_plugins
        if diagnosis is None or diagnosis is NOBODY_REJECTED:
            plugins = frozenset({status.plugin} if status.plugin else ())
        pod = queued.pod_info
        changes, evicting_at = self._server.changes, self._evicting_at
        self.failed_at[pod.uid] = changes if evicting_at is None else evicting_at
        self._evicting_at = None
        self.unplaced[pod.uid] = Unplaced(
            pod.key,
            attempt.message,
            reasons_of(attempt, len(self._scheduler.cache.nodes)),
            tuple(sorted(plugins)),
            queued.attempts,
            preempted=self.victims.get(pod.uid, ()),
            error=not status.is_rejected,
        )

    def preempting(self, victims: int) -> None:
        """Note when, as the attempt may fail only after its evictions."""
        self._evicting_at = self._server.changes

    def evicted(self, victim: PodInfo, preemption: Preemption) -> None:
        """Note the eviction."""
        preemptor = preemption.preemptor
        earlier = self.victims.get(preemptor.uid, ())
        self.victims[preemptor.uid] = (*earlier, victim.key)
        controller = controller_of(victim.pod.metadata)
        self.evictions.append(
            Eviction(
                victim.key,
                victim.node_name,
                preemptor.key,
                victim.priority,
                f"{controller.kind} {controller.name}" if controller else "",
                victim.uid in self.displaced,
            )
        )

    def preempted(self, preemption: Preemption, started: float, *, is_success: bool) -> None:
        """Try the preemptor again, without backoff: its victims are gone."""
        self._scheduler.activate(preemption.preemptor.pods)

    def _deleted(self, pod: Pod) -> None:
        uid = uid_of(pod)
        self.unplaced.pop(uid, None)
        if self.placements.pop(uid, None) is not None:
            self.displaced[uid] = None


def reasons_of(attempt: FailedAttempt, num_all_nodes: int) -> tuple[str, ...]:
    """Return why an attempt failed: sorted reasons without numbers of nodes."""
    diagnosis = attempt.diagnosis
    if diagnosis is None or diagnosis is NOBODY_REJECTED:
        return (attempt.message,)
    return diagnosis.reasons(num_all_nodes)


# Rehearsals.

_STEP_SECONDS: Final = 1.0
_PATIENCE_STEPS: Final = 3600
_TICK_SECONDS: Final = 1e-6
_NEVER_SECONDS: Final = 1e9
_ATTEMPTS_MAX: Final = 100
"""With in-tree plugins far fewer are needed."""


class Rehearsal:
    """A cluster and its scheduler; create it on a running virtual loop.

    Objects are created, updated and deleted through `server`. `scheduler.cache.nodes` has the nodes
    and the pods on them.
    """

    def __init__(
        self, setup: SchedulerSetup, *, seed: int = 0, random: Random | None = None
    ) -> None:
        """Set up an empty cluster; `seed` is of the random source that breaks ties.

        `random` breaks ties in place of a source with this seed. If its `random()` is always 0,
        ties go to the node that was loaded first. Raises ConfigError with every field error of the
        configuration.
        """
        loop = asyncio.get_running_loop()
        self.server = InstantServer(loop.time)
        options = queue_options(setup)
        self._max_backoff_seconds = options.max_backoff_seconds
        configuration = ignore_extender_resources(setup.configuration)
        self.scheduler, self._handlers = assemble(
            setup._replace(configuration=replace(configuration, extenders=())),
            InstantApi(self.server),
            random=random or Random(seed),
            options=replace(options, max_in_unschedulable_pods_seconds=_NEVER_SECONDS),
            writers=Writers(InstantClaimWriter(self.server), InstantVolumeWriter(self.server)),
            report_plugin_error=self._end_on_plugin_error,
        )
        self.scheduler.records_events = False
        self.scheduler.start_binding = self._bind_in_turn
        # Each pod is bound, and its victims are gone, before the next one is tried.
        self.scheduler.pods_per_slice = 1
        self.outcomes = Outcomes(self.scheduler, self.server)
        LivelockGuard(self.scheduler)
        self.server.connect(self._handlers)
        self._plugin_error: PluginError | None = None
        self._running: asyncio.Task[None] | None = None
        self._binding: asyncio.Task[None] | None = None
        self._to_bind: list[Coroutine[Any, Any, None]] = []

    def load(self, objects: Iterable[KubeObject]) -> None:
        """Take over a cluster.

        Pods without a node arrive in the order of their creation if all have a valid creation time,
        else in the given order.
        """
        nodes: list[Node] = []
        others: list[KubeObject] = []
        there: list[Pod] = []
        pending: list[Pod] = []
        for item in objects:
            if isinstance(item, Pod):
                (there if item.spec.node_name else pending).append(item)
            elif isinstance(item, Node):
                nodes.append(item)
            else:
                others.append(with_uid(item))
        first, last = [*others, *nodes], _by_creation(pending)
        starts = {pod.status.start_time for pod in there}
        latest_seconds = max((seconds_of(time) for time in starts if time), default=0.0)
        self.server.restore([*first, *there, *last], latest_seconds)
        for item in first:
            self._handlers.added(item)
        self._handlers.take_over(there)
        for pod in last:
            self._handlers.added(pod)

    def _bind_in_turn(self, cycle: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        """Bind the pods that are placed in one step of the loop in one task: none takes time."""
        if not self._to_bind or self._binding is None:
            self._binding = asyncio.get_running_loop().create_task(self._bind_all())
        self._to_bind.append(cycle)
        return self._binding

    async def _bind_all(self) -> None:
        cycles, self._to_bind = self._to_bind, []
        for cycle in cycles:
            await cycle

    def _end_on_plugin_error(self, error: PluginError) -> None:
        """End at a plugin's first error: decisions after it are not reliable."""
        self._plugin_error = self._plugin_error or error
        self.stop()

    def stop(self) -> None:
        """End `settle` after the current pod; it does not continue."""
        self.scheduler.stop()

    async def settle(self) -> None:
        """Schedule until nothing changes any more.

        Raises PluginError if a plugin raises, here or while objects were loaded.
        """
        if self._running is None:
            self._running = asyncio.ensure_future(self.scheduler.run())
        for _ in self._steps():
            await asyncio.wait([self._running], timeout=_STEP_SECONDS)
            # Everything that starts at this time ends before the clock moves on.
            await asyncio.sleep(_TICK_SECONDS)
            if self._plugin_error is not None:
                raise self._plugin_error
            if self._running.done():
                self._running.result()
                return
            if not (self._may_change() or self._end_victims()):
                return

    def _end_victims(self) -> bool:
        """Delete the pods whose end nominated pods wait for; return whether there were any."""
        queue, nodes = self.scheduler.queue, self.scheduler.cache.nodes
        victims: dict[str, Pod] = {}
        for queued in [*queue.pods(QueuePlace.UNSCHEDULABLE), *queue.pods(QueuePlace.BACKOFF)]:
            info = queued.pod_info
            row = nodes.row_of.get(queue.nominator.node_of(info.uid))
            if row is not None:
                lower = lower_priority_pods(info, nodes, row)
                victims |= {victim.uid: victim.pod for victim in lower if victim.is_terminating}
        for victim in victims.values():
            self.server.delete_pod(victim.metadata.namespace, victim.metadata.name)
        return bool(victims)

    async def pause(self) -> None:
        """Let time pass until no pod backs off."""
        await asyncio.sleep(self._max_backoff_seconds)

    def _steps(self) -> Iterator[None]:
        """Yield until nothing has changed for longer than any plugin waits."""
        last, patience = -1, 0
        while patience < _PATIENCE_STEPS:
            yield
            now = self.server.changes + self.outcomes.attempts.total()
            patience = patience + 1 if now == last else 0
            last = now

    def _may_change(self) -> bool:
        """Whether something may change with time, now that nothing is left to do at once."""
        scheduler = self.scheduler
        waiting = [each.pod.uid for each in scheduler.waiting_pods]
        if len(scheduler.bindings) > len(waiting) or len(scheduler.evictions):
            return True
        in_backoff = scheduler.queue.pods(QueuePlace.BACKOFF)
        retried = [*waiting, *(queued.pod_info.uid for queued in in_backoff)]
        return any(map(self._may_succeed, retried))

    def _may_succeed(self, uid: str) -> bool:
        """Whether a pod has not failed yet in the cluster as it is."""
        outcomes = self.outcomes
        failed_at = outcomes.failed_at.get(uid)
        is_new = failed_at is None or failed_at < self.server.changes
        return is_new and outcomes.attempts[uid] < _ATTEMPTS_MAX

    # Queries.

    def pods_on(self, node_name: str) -> list[Pod]:
        """Return the pods on a node; none if there is no such node."""
        nodes = self.scheduler.cache.nodes
        row = nodes.row_of.get(node_name)
        return [] if row is None else [info.pod for info in nodes.pods[row].values()]

    def gated(self) -> dict[str, Gated]:
        """Return the pods that PreEnqueue plugins hold back, by uid."""
        found: dict[str, Gated] = {}
        snapshot = self.scheduler.cache.snapshot(self.scheduler.queue.nominator)
        for queued in self.scheduler.queue.pods(QueuePlace.UNSCHEDULABLE):
            info = queued.pod_info
            if queued.is_gated:
                profile = self.scheduler.profiles[info.scheduler_name]
                plugin = next(
                    one for one in profile.pre_enqueue_plugins if one.name == queued.gating_plugin
                )
                status = profile.ask_pre_enqueue(plugin, info, snapshot)
                found[info.uid] = Gated(info.key, plugin.name, status.message)
        return found

    def unplaced(self) -> dict[str, Unplaced]:
        """Return the pods that were tried and have no node, by uid."""
        nominator = self.scheduler.queue.nominator
        found = {
            uid: replace(unplaced, nominated_node=nominator.node_of(uid))
            for uid, unplaced in self.outcomes.unplaced.items()
        }
        for pod in self.scheduler.cache.assumed_pods():
            waiting = self.scheduler.waiting_pods.get(pod.uid)
            plugins = () if waiting is None else tuple(sorted(waiting.pending_plugins))
            reason = f"waiting on permit of {', '.join(plugins)}" if plugins else "being bound"
            message = f"{reason} on node {pod.node_name}"
            attempts = self.outcomes.attempts[pod.uid]
            found[pod.uid] = Unplaced(pod.key, message, (reason,), plugins, attempts)
        return found


def _by_creation(pods: list[Pod]) -> list[Pod]:
    """Return the pods in the order of creation; as given if a creation time is missing."""
    try:
        return sorted(pods, key=lambda pod: parse_time(pod.metadata.creation_timestamp or ""))
    except ValueError:
        return pods
