"""Replay decides recorded pods again, each in the state in which its decision was made.

    recorded events ─▶ ExactWatch, or ShadowWatch where decisions were only observed ─▶ judge

The recorded decision takes effect, whatever kubesched decides now: one difference does not lead to
others.

Invariants: a scheduler's own recording, replayed with its configuration and plugins, has no
            difference, unless a plugin depends on more than the cluster.
Differs:  upstream has no replay. Extenders are not asked, Permit plugins are not called, and pods
          of pod groups are not judged. Errors of an API server are not repeated.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from functools import partial
from typing import TypeAlias

from kubesched.api.core import Pod
from kubesched.api.meta import KubeObject
from kubesched.app.shadow import DecisionWatch, ShadowWatch
from kubesched.cache.cache import CacheError
from kubesched.explain.shadow_report import ReplayReport, ShadowVerdict
from kubesched.framework.cycle_state import CycleState
from kubesched.framework.registry import SchedulerSetup
from kubesched.scheduler.decision import Failed
from kubesched.scheduler.decision_recorder import RecordedBy, RecordedDecision
from kubesched.scheduler.placer import reserve, unreserve
from kubesched.snapshot.pod_info import PodInfo, uid_of

RecordedEvent: TypeAlias = Callable[[DecisionWatch], object]
"""What happened, as a call of a watch."""


class ExactWatch(DecisionWatch):
    """Follows the recording of a scheduler, which has each decision where it was made."""

    def __init__(self, setup: SchedulerSetup, seed: int) -> None:
        super().__init__(setup, seed, samples=True)
        # What releases the things that Reserve has kept, by pod.
        self._releases: dict[str, Callable[[], None]] = {}

    def synced(self) -> None:
        """Do nothing: the recording has each decision where it was made."""

    def deleted(self, item: KubeObject, *, is_final_state_known: bool = True) -> None:
        """Apply a deletion."""
        super().deleted(item, is_final_state_known=is_final_state_known)
        if isinstance(item, Pod):
            self._release(uid_of(item))

    def decided(self, decision: RecordedDecision) -> None:
        """Decide again, compare, and let the recorded decision take effect."""
        queued = self.scheduler.queue.get_pod(decision.pod)
        if queued is None or queued.pod_info.uid != decision.uid:
            # It was deleted while extenders were asked.
            return
        info, cycle = queued.pod_info, None
        if info.pod.spec.scheduling_group is not None:
            self.skipped += 1
        elif queued.is_gated:
            self.judge.judge_held(info, decision, queued.gating_plugin)
        else:
            ours = self.judge.judge_exactly(info, decision)
            cycle = None if isinstance(ours, Failed) else ours.cycle
        self.scheduler.cycles[info.scheduler_name].sampler.next_start = decision.next_start
        if decision.node:
            self._place(info, decision.node, cycle)
        else:
            self.scheduler.queue.nominator.add(info, decision.nominated_node)

    def _place(self, info: PodInfo, node: str, cycle: CycleState | None) -> None:
        try:
            there = self.scheduler.cache.assume_pod(info, node)
        except CacheError:
            # The informer knew already that the pod has a node.
            return
        self.scheduler.queue.nominator.delete(info.uid)
        if cycle is None:
            return
        profile = self.scheduler.profiles[info.scheduler_name]
        self._releases[info.uid] = partial(unreserve, profile, cycle, there)
        if not reserve(profile, cycle, there).is_success:
            # It does not fit there now, so plugins have nothing that they could reserve.
            self._release(info.uid)

    def undone(self, decision: RecordedDecision) -> None:
        """Take a pod off its node again: it was not bound."""
        self._release(decision.uid)
        cache, queue = self.scheduler.cache, self.scheduler.queue
        there = cache.get_pod(decision.uid)
        if there is not None and cache.is_assumed(decision.uid):
            cache.forget_pod(there)
        queued = queue.get_pod(decision.pod)
        if queued is None:
            return
        known = self.scheduler.pods.get(queued.pod_info.namespace, queued.pod_info.name)
        if known is not None and known is not queued.pod_info.pod:
            # Changes of assumed pods are not passed to the queue.
            queue.update(queued.pod_info, PodInfo(known), self.scheduler.now())
        queue.nominator.add(queued.pod_info, "")

    def _release(self, uid: str) -> None:
        release = self._releases.pop(uid, None)
        if release is not None:
            release()


async def replayed(
    recorded_by: RecordedBy,
    setup: SchedulerSetup,
    seed: int,
    events: Iterable[tuple[float, RecordedEvent]],
    may_continue: Callable[[], bool],
) -> ReplayReport:
    """Replay events at their times on the clock of the loop, and return the report.

    The configuration has a profile for each scheduler of the recording; `seed` is of the random
    source that breaks ties. Times are in seconds since the recording began. Before each event,
    `may_continue` is called; False ends the replay. Raises ConfigError for wrong arguments of a
    plugin.
    """
    new_watch = ShadowWatch if recorded_by is RecordedBy.SHADOW else ExactWatch
    watch: DecisionWatch = new_watch(setup, seed)
    loop = asyncio.get_running_loop()
    began, seconds, is_partial = loop.time(), 0.0, False
    for at, event in events:
        is_partial = not may_continue()
        if is_partial:
            break
        delay_seconds = began + at - loop.time()
        if delay_seconds > 0:
            await asyncio.sleep(delay_seconds)
        seconds = at
        event(watch)
    judge, counts = watch.judge, watch.judge.counts
    judge.settle_all()
    return ReplayReport(
        partial=is_partial,
        recorded_by=str(recorded_by),
        scheduler_names=tuple(each.scheduler_name for each in setup.configuration.profiles),
        seconds=round(seconds, 1),
        nodes=len(watch.scheduler.cache.nodes),
        judged=counts.total(),
        same=counts[ShadowVerdict.AGREED],
        ties=counts[ShadowVerdict.TIE],
        changed=counts[ShadowVerdict.CHANGED],
        sampled=counts[ShadowVerdict.SAMPLED],
        different=counts[ShadowVerdict.DIFFERENT],
        no_longer_placed=judge.lost,
        now_placed=judge.gained,
        skipped=watch.skipped,
        notes=watch.notes,
        disagreements=tuple(judge.disagreements),
    )
