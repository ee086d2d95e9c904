"""Gates runs PreEnqueue plugins, which may keep a pod out of activeQ.

Upstream: pkg/scheduler/backend/queue/scheduling_queue.go, runPreEnqueuePlugins (v1.36)
Differs:  plugins run in the order of the profile; upstream runs them in map order. When an event
          concerns a gated pod, its gating plugin is asked first, and again if it opens.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import compress
from typing import Final

import msgspec

from kubesched.framework.phase_timer import PRE_ENQUEUE, PhaseTimer
from kubesched.framework.queued_pod_info import QueuedPodInfo
from kubesched.framework.status import Status
from kubesched.queue.hinting import PodKind, QueueingHints, QueueingStrategy, StrategyOf, kind_of
from kubesched.queue.moves import ClusterChange
from kubesched.queue.registrations import Registration
from kubesched.snapshot.pod_info import PodInfo

PreEnqueue = Callable[[PodInfo], Status]
"""Runs one PreEnqueue plugin; it does not raise, because an exception becomes a status."""
StillGates = Callable[[Sequence[PodInfo]], Sequence[bool]]
"""Asks a PreEnqueue plugin which of the pods that it gates it still rejects."""


class ProfileRules(msgspec.Struct, frozen=True):
    """The parts of a profile that the queue needs.

    Attributes:
        pre_enqueue: PreEnqueue plugin -> function that runs it, in the order of the profile.
        still_gates: PreEnqueue plugin -> function that asks it about pods that it gates.
        registrations: The registrations of the profile's plugins (`registrations_of`).
        timer: Measures the PreEnqueue plugins.
    """

    pre_enqueue: Mapping[str, PreEnqueue] = {}
    still_gates: Mapping[str, StillGates] = {}
    registrations: Sequence[Registration] = ()
    timer: PhaseTimer = PhaseTimer()


_NO_RULES: Final = ProfileRules()


class Gates:
    """The PreEnqueue plugins of all profiles."""

    def __init__(
        self, profiles: Mapping[str, ProfileRules], rejections: Counter[tuple[str, str]]
    ) -> None:
        """Set up gates; `rejections` counts pods by plugin and profile."""
        self._profiles = profiles
        self._rejections = rejections

    def _rules_of(self, queued: QueuedPodInfo) -> ProfileRules:
        return self._profiles.get(queued.pod_info.scheduler_name, _NO_RULES)

    def ask(self, queued: QueuedPodInfo, pods: int = 1) -> None:
        """Set `queued.gating_plugin` to the first plugin that rejects the pod, or to "".

        If `pods` is more than 1, the pod stands for that many equal pods, which no plugin may
        reject.

        The plugin that gated the pod before runs first. A gating plugin also becomes one of
        `queued.unschedulable_plugins`, and remains so when it lets the pod pass.
        """
        rules = self._rules_of(queued)
        with rules.timer.phases[PRE_ENQUEUE] as phase:
            phase.pods = pods
            queued.gating_plugin = _first_rejecting(rules.pre_enqueue, queued)
        assert pods == 1 or not queued.is_gated, f"{queued.key} is gated, and those like it"
        if plugin := queued.gating_plugin:
            if plugin not in queued.rejecting_plugins:
                self._rejections[plugin, queued.pod_info.scheduler_name] += 1
            queued.unschedulable_plugins |= {plugin}

    def staying(
        self,
        gated: Iterable[QueuedPodInfo],
        change: ClusterChange,
        hints: QueueingHints,
        strategy_of: StrategyOf,
    ) -> Iterator[list[QueuedPodInfo]]:
        """Yield equal pods that a change would move, but that stay gated.

        Pods whose hints have to be called one by one are left out.
        """
        by_kind: dict[tuple[str, PodKind], list[QueuedPodInfo]] = {}
        for queued in gated:
            by_kind.setdefault((queued.gating_plugin, kind_of(queued)), []).append(queued)
        for equal in by_kind.values():
            first = equal[0]
            is_shared = hints.is_shared(first, change)
            if not is_shared or strategy_of(first) is QueueingStrategy.SKIP:
                continue
            if staying := self.still_gated(equal):
                yield staying

    def still_gated(self, gated: Sequence[QueuedPodInfo]) -> list[QueuedPodInfo]:
        """Return which of some equal pods are still rejected by the plugin that gates them.

        The pods are not changed.
        """
        rules = self._rules_of(gated[0])
        ask = rules.still_gates.get(gated[0].gating_plugin)
        if ask is None:
            return []
        with rules.timer.phases[PRE_ENQUEUE] as phase:
            rejected = ask([queued.pod_info for queued in gated])
            # The others count when all plugins are asked.
            phase.pods = sum(rejected)
            if not phase.pods:
                phase.code = None
        return list(compress(gated, rejected))


def _first_rejecting(plugins: Mapping[str, PreEnqueue], queued: QueuedPodInfo) -> str:
    """Return the first plugin that rejects the pod, or ""; that which gated it is asked first."""
    before, names = queued.gating_plugin, plugins.keys()
    if before in names:
        names = dict.fromkeys((before, *names)).keys()
    return next((name for name in names if not plugins[name](queued.pod_info).is_success), "")
