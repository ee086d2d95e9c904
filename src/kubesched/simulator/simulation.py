"""Simulation schedules all pending pods of a cluster until nothing changes, and reports it.

The scheduler is the production one, see `rehearsal`. Outcomes that depend on kinds which the files
lack are reported as unknown.

Invariants: the same objects and seed give the same report.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable
from typing import NamedTuple, TypeVar

from msgspec.structs import replace

from kubesched.api.core import FINISHED, Pod
from kubesched.api.meta import KubeObject
from kubesched.explain.unknown import UnknownOutcomes
from kubesched.framework.registry import SchedulerSetup
from kubesched.scheduler.profile import Profile
from kubesched.simulator import virtual_loop
from kubesched.simulator.rehearsal import Rehearsal
from kubesched.simulator.report import Gated, Ignored, SimulationReport, Summary, Unplaced
from kubesched.simulator.utilisation import Utilisation
from kubesched.snapshot.node_table import NodeTable
from kubesched.snapshot.pod_info import PodInfo, scheduler_name_of

T = TypeVar("T", Gated, Unplaced)

Watch = Callable[[int, int], bool]
"""(pods tried, pods to place) -> whether to continue."""


class SimulationEnd(NamedTuple):
    """A report, and the nodes with the pods that are on them at the end."""

    report: SimulationReport
    nodes: NodeTable


def simulate_cluster(
    setup: SchedulerSetup,
    objects: Iterable[KubeObject],
    *,
    seed: int = 0,
    complete: Iterable[type] = (),
    watch: Watch | None = None,
) -> SimulationEnd:
    """Place all pending pods of a cluster; `seed` is of the random source that breaks ties.

    `complete` are the kinds of which there are no other objects. `watch` is called with the
    numbers of pods tried and of all, before the first attempt and after each. If it returns False,
    the report is partial. Raises ConfigError with every field error of the configuration, and
    PluginError if a plugin raises.
    """

    async def main() -> SimulationEnd:
        rehearsal = Rehearsal(setup, seed=seed)
        simulation = Simulation(rehearsal, objects, seed, watch)
        rehearsal.scheduler.cache.declare_complete(complete)
        await rehearsal.settle()
        return SimulationEnd(simulation.report(), rehearsal.scheduler.cache.nodes)

    return virtual_loop.run(main())


class Simulation:
    """The pods to place in a rehearsal, and their outcomes."""

    def __init__(
        self,
        rehearsal: Rehearsal,
        objects: Iterable[KubeObject],
        seed: int,
        watch: Watch | None = None,
    ) -> None:
        """Load the objects; see `simulate_cluster`."""
        self._rehearsal = rehearsal
        self._scheduler = rehearsal.scheduler
        self._seed = seed
        self._watch = watch
        self._partial = False
        self._ignored: list[Ignored] = []
        self._pods: dict[str, PodInfo] = {}
        found = list(objects)
        rehearsal.load(found)
        for item in found:
            if isinstance(item, Pod) and not item.spec.node_name:
                self._add(item)
        self._use = Utilisation(self._scheduler.cache.nodes)
        if watch is not None:
            rehearsal.outcomes.on_attempt = self._call_watch
            self._call_watch()

    def _add(self, pod: Pod) -> None:
        metadata, name = pod.metadata, scheduler_name_of(pod)
        if pod.status.phase in FINISHED:
            return
        if name not in self._scheduler.profiles:
            reason = "belongs to another scheduler"
        elif metadata.deletion_timestamp is not None:
            reason = "is being deleted"
        else:
            queued = self._scheduler.queue.get_pod(metadata.key)
            assert queued is not None, "every pending pod is queued"
            self._pods[queued.pod_info.uid] = queued.pod_info
            return
        self._ignored.append(Ignored(metadata.key, name, reason))

    def _call_watch(self) -> None:
        tried = len(self._rehearsal.outcomes.attempts)
        if self._watch is not None and not self._watch(tried, len(self._pods)):
            self._partial = True
            self._rehearsal.stop()

    def report(self) -> SimulationReport:
        """Return the report of the decisions so far."""
        rehearsal, scheduler = self._rehearsal, self._scheduler
        outcomes = rehearsal.outcomes
        placements = outcomes.placements
        placed = Counter(placement.node for placement in placements.values())
        snapshot = scheduler.cache.snapshot(scheduler.queue.nominator)
        unknown = UnknownOutcomes(snapshot)
        for uid in placements:
            info = self._pods[uid]
            unknown.placed(self._profile(info), info, had_choice=uid in outcomes.had_choice)
        for uid in outcomes.victims:
            if uid in self._pods:
                unknown.preempted(self._profile(self._pods[uid]), self._pods[uid])
        held = rehearsal.gated()
        rejected = {uid: found for uid, found in rehearsal.unplaced().items() if uid not in held}
        unplaced = tuple(
            self._judged(unknown, info, rejected[uid], rejected[uid].plugins)
            for uid, info in self._pods.items()
            if uid in rejected
        )
        gated = tuple(
            self._judged(unknown, info, held[uid], (held[uid].plugin,))
            for uid, info in self._pods.items()
            if uid in held
        )
        decided = len(placements) + len(unplaced) + len(gated) + len(outcomes.displaced)
        return SimulationReport(
            partial=self._partial,
            seed=self._seed,
            summary=Summary(
                pods=len(self._pods),
                placed=len(placements),
                unplaced=len(unplaced),
                gated=len(gated),
                not_tried=len(self._pods) - decided,
                displaced=len(outcomes.displaced),
                ignored=len(self._ignored),
                evicted=len(outcomes.evictions),
                attempts=outcomes.attempts.total(),
                nodes=len(scheduler.cache.nodes),
                nodes_used=len(placed),
                resources=self._use.total(),
            ),
            placements=tuple(placements.values()),
            unplaced=unplaced,
            gated=gated,
            ignored=tuple(self._ignored),
            evictions=tuple(outcomes.evictions),
            zones=self._use.zones(placed),
            nodes=self._use.nodes(placed),
            unknown=unknown.kinds(),
        )

    def _profile(self, info: PodInfo) -> Profile:
        return self._scheduler.profiles[info.scheduler_name]

    def _judged(
        self, unknown: UnknownOutcomes, info: PodInfo, found: T, rejecting: Collection[str]
    ) -> T:
        """Return an outcome; if it depends on objects that the files lack, mark it as unknown."""
        if not unknown.rejected(self._profile(info), info, rejecting):
            return found
        if isinstance(found, Unplaced):
            return replace(found, unknown=True, message="", reasons=())
        return replace(found, unknown=True, message="")
