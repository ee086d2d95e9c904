"""Simulation schedules all pending pods of a cluster, one after another, until nothing changes.

Pods are tried in the order of the QueueSort plugin. The victims of a preemption leave at once, and
the preemptor is tried again with its nomination. When all pods have been tried, rejected pods are
tried again if something happened since that may help them, and so on.

Upstream: pkg/scheduler/schedule_one.go, pkg/scheduler/backend/queue (v1.36)
Invariants: the same cluster, pods and seed give the same report.
Differs:  nothing takes time: neither binding, eviction nor backoff; a pod that waits on Permit
          counts as placed; volumes and devices are reserved but never written, so a second pod of
          the same ResourceClaim is never scheduled.
"""

from __future__ import annotations

import heapq
from collections.abc import Collection, Iterable, Iterator
from datetime import UTC, datetime, timedelta
from typing import Final, TypeVar

import msgspec

from kubesched.api.core import Pod
from kubesched.api.meta import controller_of
from kubesched.api.times import parse_time, second_time
from kubesched.explain.details import awaited
from kubesched.framework.cycle_state import CycleState
from kubesched.framework.diagnosis import Diagnosis
from kubesched.framework.queued_pod_info import QueuedPodInfo
from kubesched.framework.status import SUCCESS, Code, NodeToStatus, Status
from kubesched.scheduler.decision import Placed, Rejected
from kubesched.scheduler.placer import ask_permit, reserve, unreserve
from kubesched.scheduler.profile import Profile
from kubesched.simulator.cluster import Cluster
from kubesched.simulator.report import (
    Eviction,
    Gated,
    Ignored,
    Placement,
    SimulationReport,
    Summary,
    Unplaced,
)
from kubesched.simulator.unknown_kinds import UnknownOutcomes
from kubesched.simulator.utilisation import Usage, Utilisation
from kubesched.simulator.waiting_pods import POD_ADDED, POD_DELETED, WaitingPods
from kubesched.snapshot.pod_info import PodInfo

T = TypeVar("T", Gated, Unplaced)

_PREEMPTIONS_MAX: Final = 10
"""Number of times a pod may preempt before the next pod is tried."""
_ATTEMPTS_MAX: Final = 100
"""Maximum number of attempts per pod; with in-tree plugins far fewer are needed."""
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_SECOND: Final = 1_000_000_000

# Upstream's message of a failure; {} is the plugin's name.


class Simulation:
    """One run: create it after loading the cluster, run it, and get the report.

    Attributes:
        tried: Number of pods that have been tried at least once.
        total: Number of pods to place.
    """

    def __init__(self, cluster: Cluster, *, seed: int = 0) -> None:
        self._cluster = cluster
        self._seed = seed
        self._ignored: list[Ignored] = []
        self._queued = {info.uid: QueuedPodInfo(info) for info in self._schedulable_pods()}
        self._set_timestamps()
        self._waiting = WaitingPods(cluster.profiles)
        self._placements: dict[str, Placement] = {}
        self._unplaced: dict[str, Unplaced] = {}
        self._gated: dict[str, Gated] = {}
        self._evictions: list[Eviction] = []
        self._preempted: dict[str, tuple[str, ...]] = {}
        self._displaced = 0
        self._had_choice: set[str] = set()
        self._attempts = 0
        self._before = Usage.of(cluster.cache.nodes)
        self._clock_seconds = self._latest_seconds()
        self.total = len(self._queued)
        self.tried = 0

    def _schedulable_pods(self) -> Iterator[PodInfo]:
        for info in list(self._cluster.pending.values()):
            reason = self._why_ignored(info)
            if reason:
                name = info.spec.scheduler_name or "default-scheduler"
                self._ignored.append(Ignored(info.key, name, reason))
            else:
                yield info

    def _why_ignored(self, info: PodInfo) -> str:
        if self._cluster.profile_of(info) is None:
            return "belongs to another scheduler"
        return "is being deleted" if info.is_terminating else ""

    def _set_timestamps(self) -> None:
        """Number the pods by creation time if all have one, else in order of arrival."""
        pods = list(self._queued.values())
        times = [_created(queued.pod_info.pod) for queued in pods]
        order = list(range(len(pods)))
        if None not in times:
            order.sort(key=lambda at: times[at] or 0)
        for rank, at in enumerate(order):
            pods[at].timestamp = pods[at].initial_attempt_timestamp = float(rank)

    def _latest_seconds(self) -> int:
        """Return the latest start time of the dump's pods; pods placed here start after it."""
        starts = (
            info.start_time or 0
            for pods in self._cluster.cache.nodes.pods
            for info in pods.values()
        )
        return max(starts, default=0) // _SECOND

    # The run.

    def run(self) -> Iterator[None]:
        """Yield after every attempt; the caller may stop in between.

        Raises:
            PluginError: if a plugin raises; there is no report then.
        """
        batch = list(self._queued.values())
        while batch:
            for queued in self._in_order(batch):
                yield from self._try(queued)
            batch = [q for q in self._waiting.woken() if q.attempts < _ATTEMPTS_MAX]
            self._cluster.check_plugins()

    def _in_order(self, batch: Iterable[QueuedPodInfo]) -> Iterator[QueuedPodInfo]:
        # As upstream, the first profile's plugin orders the pods of all profiles.
        key = next(iter(self._cluster.profiles.values())).queue_sort_plugin.sort_key
        heap = [(key(queued), at, queued) for at, queued in enumerate(batch)]
        heapq.heapify(heap)
        while heap:
            yield heapq.heappop(heap)[2]

    def _try(self, queued: QueuedPodInfo) -> Iterator[None]:
        uid = queued.pod_info.uid
        if not queued.attempts and uid not in self._gated:
            self.tried += 1
        for _ in range(_PREEMPTIONS_MAX):
            again = self._attempt(queued)
            self._cluster.check_plugins()
            yield
            if not again:
                return
        self._wait(queued)

    def _attempt(self, queued: QueuedPodInfo) -> bool:
        """Try a pod once; return whether it preempted others and is to be tried again."""
        info = queued.pod_info = self._cluster.pending[queued.pod_info.uid]
        held = self._cluster.pre_enqueue(info)
        if not held.is_success:
            self._gate(queued, held)
            return False
        self._gated.pop(info.uid, None)
        queued.attempts += 1
        self._attempts += 1
        decision = self._cluster.schedule_one(info)
        if isinstance(decision, Placed):
            status = self._place(queued, decision)
            if status.is_success:
                return False
            self._refuse(queued, decision, status)
        elif isinstance(decision, Rejected):
            self._reject(queued, decision)
            if decision.nominated_node_name:
                self._preempt(info, decision)
                return True
            if decision.nominated_node_name == "":
                self._cluster.nominate(info, "")
        else:
            self._fail(queued, decision.status)
        self._wait(queued)
        return False

    # A node was found.

    def _place(self, queued: QueuedPodInfo, placed: Placed) -> Status:
        """Carry out a placement, unless a plugin refuses it."""
        info, node_name = placed.pod, placed.node_name
        profile = self._profile(info)
        status = _reserve(profile, placed.cycle, info, node_name)
        if not status.is_success:
            return status
        nominated = self._cluster.nominator.node_of(info.uid) == node_name
        there = self._on_node(info, node_name)
        self._cluster.bind(there, node_name)
        self._unplaced.pop(info.uid, None)
        if placed.feasible > 1:
            self._had_choice.add(info.uid)
        preempted = self._preempted.get(info.uid, ())
        self._placements[info.uid] = Placement(
            info.key, node_name, queued.attempts, nominated, preempted, awaited(profile, placed)
        )
        self._waiting.happened(POD_ADDED, there)
        return SUCCESS

    def _refuse(self, queued: QueuedPodInfo, placed: Placed, status: Status) -> None:
        """Handle a pod that Reserve or Permit rejected after a node was chosen."""
        self._cluster.nominate(placed.pod, "")
        if not status.is_rejected:
            self._fail(queued, status)
            return
        # As upstream's message: as if there were only this node.
        diagnosis = Diagnosis.of_filter((placed.node_name,), NodeToStatus.of([status]))
        message = diagnosis.fit_error(1)
        self._reject(queued, Rejected(placed.pod, diagnosis, message, placed.cycle))

    def _on_node(self, info: PodInfo, node_name: str) -> PodInfo:
        """Return the pod as its kubelet would report it: running, each a second after the last."""
        self._clock_seconds += 1
        started = second_time(_EPOCH + timedelta(seconds=self._clock_seconds))
        pod = info.pod
        status = msgspec.structs.replace(
            pod.status, phase="Running", nominated_node_name="", start_time=started
        )
        spec = msgspec.structs.replace(pod.spec, node_name=node_name)
        there = info.on_node(node_name)
        there.pod = msgspec.structs.replace(pod, spec=spec, status=status)
        return there

    # No node was found.

    def _gate(self, queued: QueuedPodInfo, held: Status) -> None:
        info = queued.pod_info
        self._unplaced.pop(info.uid, None)
        self._gated[info.uid] = Gated(info.key, held.plugin, held.message)
        queued.gating_plugin = held.plugin
        queued.unschedulable_plugins = frozenset({held.plugin})
        self._wait(queued)

    def _reject(self, queued: QueuedPodInfo, rejected: Rejected) -> None:
        info, diagnosis = queued.pod_info, rejected.diagnosis
        queued.unschedulable_plugins = diagnosis.unschedulable_plugins
        queued.pending_plugins = diagnosis.pending_plugins
        if diagnosis.pre_filter_message:
            reasons = [diagnosis.pre_filter_message]
        else:
            reasons = sorted(diagnosis.reason_counts(len(self._cluster.cache.nodes)))
        self._unplaced[info.uid] = Unplaced(
            info.key,
            rejected.message,
            tuple(reasons),
            tuple(sorted(queued.rejecting_plugins)),
            queued.attempts,
            preempted=self._preempted.get(info.uid, ()),
        )

    def _fail(self, queued: QueuedPodInfo, status: Status) -> None:
        info = queued.pod_info
        queued.unschedulable_plugins = queued.pending_plugins = frozenset()
        self._cluster.nominate(info, "")
        self._unplaced[info.uid] = Unplaced(
            info.key,
            status.message,
            (status.message,),
            (status.plugin,) if status.plugin else (),
            queued.attempts,
            error=not status.is_rejected,
        )

    def _wait(self, queued: QueuedPodInfo) -> None:
        queued.timestamp = float(self.total + self._attempts)
        self._waiting.add(queued, self._profile(queued.pod_info).scheduler_name)

    def _preempt(self, info: PodInfo, rejected: Rejected) -> None:
        assert rejected.nominated_node_name, "only carried out with a nominated node"
        for victim in rejected.victims:
            self._evict(victim, info)
        self._cluster.nominate(info, rejected.nominated_node_name)

    def _evict(self, victim: PodInfo, preemptor: PodInfo) -> None:
        self._cluster.evict(victim)
        self._waiting.happened(POD_DELETED, victim)
        self._preempted[preemptor.uid] = (*self._preempted.get(preemptor.uid, ()), victim.key)
        placed_here = self._placements.pop(victim.uid, None) is not None
        self._displaced += placed_here
        controller = controller_of(victim.pod.metadata)
        self._evictions.append(
            Eviction(
                victim.key,
                victim.node_name,
                preemptor.key,
                victim.priority,
                f"{controller.kind} {controller.name}" if controller else "",
                placed_here,
            )
        )

    def _profile(self, info: PodInfo) -> Profile:
        profile = self._cluster.profile_of(info)
        assert profile is not None, f"{info} belongs to another scheduler"
        return profile

    # The report.

    def report(self, *, partial: bool = False) -> SimulationReport:
        """Return the report of the decisions so far."""
        placed: dict[str, int] = {}
        for placement in self._placements.values():
            placed[placement.node] = placed.get(placement.node, 0) + 1
        use = Utilisation(self._cluster.cache.nodes, self._before, placed)
        outcomes = UnknownOutcomes(self._cluster.snapshot())
        self._note_placed(outcomes)
        unplaced = tuple(
            self._judged(outcomes, uid, self._with_nomination(uid), self._unplaced[uid].plugins)
            for uid in self._queued
            if uid in self._unplaced
        )
        gated = tuple(
            self._judged(outcomes, uid, self._gated[uid], (self._gated[uid].plugin,))
            for uid in self._queued
            if uid in self._gated
        )
        decided = len(self._placements) + len(unplaced) + len(gated) + self._displaced
        return SimulationReport(
            partial=partial,
            seed=self._seed,
            summary=Summary(
                pods=self.total,
                placed=len(self._placements),
                unplaced=len(unplaced),
                gated=len(gated),
                not_tried=self.total - decided,
                displaced=self._displaced,
                ignored=len(self._ignored),
                evicted=len(self._evictions),
                attempts=self._attempts,
                nodes=len(self._cluster.cache.nodes),
                nodes_used=len(placed),
                resources=use.total(),
            ),
            placements=tuple(self._placements.values()),
            unplaced=unplaced,
            gated=gated,
            ignored=tuple(self._ignored),
            evictions=tuple(self._evictions),
            zones=use.zones(),
            nodes=use.nodes(),
            unknown=outcomes.unknown(),
        )

    def _note_placed(self, outcomes: UnknownOutcomes) -> None:
        for uid in self._placements:
            info = self._queued[uid].pod_info
            outcomes.placed(self._profile(info), info, had_choice=uid in self._had_choice)
        for uid in self._preempted:
            info = self._queued[uid].pod_info
            outcomes.preempted(self._profile(info), info)

    def _judged(
        self, outcomes: UnknownOutcomes, uid: str, found: T, rejecting: Collection[str]
    ) -> T:
        """Return an outcome; if it depends on objects that the files lack, mark it as unknown."""
        info = self._queued[uid].pod_info
        if not outcomes.is_guess(self._profile(info), info, rejecting):
            return found
        if isinstance(found, Unplaced):
            return msgspec.structs.replace(found, unknown=True, message="", reasons=())
        return msgspec.structs.replace(found, unknown=True, message="")

    def _with_nomination(self, uid: str) -> Unplaced:
        node_name = self._cluster.nominator.node_of(uid)
        found = self._unplaced[uid]
        return msgspec.structs.replace(found, nominated_node=node_name) if node_name else found


def _reserve(profile: Profile, cycle: CycleState, info: PodInfo, node_name: str) -> Status:
    """Run Reserve and Permit; on failure run Unreserve."""
    status = reserve(profile, cycle, info, node_name)
    if status.is_success:
        status, _ = ask_permit(profile, cycle, info, node_name)
        if status.code is Code.WAIT:
            return SUCCESS
    if not status.is_success:
        unreserve(profile, cycle, info, node_name)
    return status


def _created(pod: Pod) -> int | None:
    """Return the pod's creation time in nanoseconds; None if it is missing or invalid."""
    try:
        return parse_time(pod.metadata.creation_timestamp or "")
    except ValueError:
        return None
