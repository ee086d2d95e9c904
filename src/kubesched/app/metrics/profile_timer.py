"""ProfileTimer times the phases and plugins of one profile, and counts calls of plugins.

Upstream: pkg/scheduler/framework/runtime/framework.go, instrumented_plugins.go (v1.36)
Differs:  a plugin answers for many rows at once, so one of its durations is that of all rows, with
          the status Success if any row passed; answers that are remembered count as evaluations,
          but take no time of their own: updating them counts as the Filter phase; a row rejected by
          a filter that looks across rows still counts for the filters after it; a pod is
          signed when answers for it are looked up, once for all pods of its template, and by all
          plugins, where upstream signs each pod in the queue and stops at the first plugin that
          cannot; node hints are remembered answers: each cycle that looks them up counts as one
          attempt, whatever PreFilter and the outcome: `hint_used` if it was decided from the
          answers for an equal pod, with only changed rows updated, `hint_not_used` if these could
          not be used, `no_hint` if there were none, as for the first two equal pods; the gate
          OpportunisticBatching does not matter.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Final, ParamSpec, Self, TypeVar

import numpy as np
from numpy.typing import NDArray

from kubesched.app.metrics.family import Accumulators, Distribution, Labels, PluginCounts
from kubesched.framework import phase_timer as phases
from kubesched.framework.cycle_state import CycleState
from kubesched.framework.plugin import Plugin
from kubesched.framework.status import Code, NodeToStatus, Status
from kubesched.scheduler.first_rejections import PASSED
from kubesched.scheduler.profile import Profile

P = ParamSpec("P")
R = TypeVar("R")

SAMPLED: Final = 0.1
"""The share of cycles whose plugins are timed one by one."""

_POINTS: Final = {
    "pre_enqueue": phases.PRE_ENQUEUE,
    "pre_filter": phases.PRE_FILTER,
    "filter": phases.FILTER,
    "add_pod": "PreFilterExtensionAddPod",
    "remove_pod": "PreFilterExtensionRemovePod",
    "post_filter": phases.POST_FILTER,
    "pre_score": phases.PRE_SCORE,
    "score": phases.SCORE,
    "normalize_score": "ScoreExtensionNormalize",
    "reserve": phases.RESERVE,
    "permit": phases.PERMIT,
    "pre_bind_pre_flight": phases.PRE_BIND_PRE_FLIGHT,
    "generate_placements": phases.PLACEMENT_GENERATE,
    "score_placement": phases.PLACEMENT_SCORE,
    "normalize_placement_scores": "PlacementScoreExtensionNormalize",
}
"""Method -> the extension point, in the words of metrics."""
_OVERLAPPING: Final = frozenset((phases.PERMIT_WAIT, phases.PRE_BIND, phases.BIND))
"""Phases of several pods at a time."""
_SUCCESS: Final = Code.SUCCESS
_AFFINITY: Final = "InterPodAffinity"
_DIVIDED: Final = frozenset((_AFFINITY, "PodTopologySpread"))


class ProfileTimer(phases.PhaseTimer):
    """Times phases and plugins.

    `is_sampling` says whether single plugins are timed in this cycle; `ended` are its phases that
    have ended. `counts` are those of the profile's plugins.
    """

    def __init__(
        self,
        profile: Profile,
        own: Accumulators,
        clock: Callable[[], float],
        draw: Callable[[], float],
        counts: PluginCounts,
    ) -> None:
        """Set up; `own` has the metrics of the scheduler, `clock` is a monotonic clock in seconds.

        `draw` returns random numbers in [0, 1), to choose the cycles whose plugins are timed.
        """
        super().__init__(clock)
        self.phases = _MeasuredPhases(self)
        self.counts = counts
        self.is_sampling = False
        self._recalled_seconds = 0.0
        self._draw = draw
        self._point_seconds = own.histogram("framework_extension_point_duration_seconds")
        self._plugin_seconds = own.histogram("plugin_execution_duration_seconds")
        self._permit_waits = own.histogram("permit_wait_duration_seconds")
        self._hint_seconds = own.histogram("get_node_hint_duration_seconds")
        self._preemption_attempts = own.counter("preemption_attempts_total")
        self._name = profile.scheduler_name
        self._pre_filters = _Asked(phases.PRE_FILTER, profile.pre_filter_plugins)
        self._filters = _Asked(phases.FILTER, profile.filter_plugins)
        self._pre_scores = _Asked(phases.PRE_SCORE, profile.pre_score_plugins)
        self._scores = _Asked(phases.SCORE, profile.score_plugins)
        self._asked = (self._filters, self._pre_filters, self._pre_scores, self._scores)
        self._signers = {name for asked in self._asked for name in asked.names}
        self._look_ups: Counter[str] = Counter()
        self._affinity_asked = False
        self._points: dict[tuple[str, Code], Distribution] = {}
        self._signs: dict[tuple[Plugin, Code], Distribution] = {}
        self._codes_again: Sequence[Code] | None = None
        self._again: list[Distribution] = []
        self.ended: list[tuple[str, Code, float]] = []

    def reset(self) -> None:
        """Reset the counts."""
        self._points.clear()
        self._signs.clear()
        self._codes_again = None
        self._look_ups.clear()
        self._affinity_asked = False
        for asked in self._asked:
            asked.reset()
        self.counts.unsettled = 0

    def evaluations(self) -> list[tuple[Labels, float]]:
        """Return the calls by plugin, extension point and profile."""
        return [
            ((name, asked.point, self._name), times)
            for asked in self._asked
            for name, times in zip(asked.names, asked.times, strict=True)
        ]

    def batch_attempts(self) -> list[tuple[Labels, float]]:
        """Return the look-ups of remembered answers by profile and result."""
        counted = self._look_ups.items()
        return [((self._name, result), times) for result, times in counted if times]

    def plugins_with_workers(self) -> set[str]:
        """Return the plugins whose PreFilter or PreScore is parallel upstream."""
        running = {_AFFINITY} if self._affinity_asked else set()
        for asked in (self._pre_filters, self._pre_scores):
            counted = (name for name, times in zip(asked.names, asked.times, strict=True) if times)
            running.update(_DIVIDED.intersection(counted))
        return running

    # Phases.

    def sample(self) -> None:
        """Decide whether to time single plugins."""
        self.is_sampling = self._draw() < SAMPLED

    def begin_cycle(self) -> None:
        """Decide whether to time plugins in this cycle."""
        self.sample()
        if self.counts.unsettled:
            # Filters were called outside a cycle.
            self.counts.settle()

    def begin_again(self) -> None:
        """Drop the times and failures of this cycle, which starts over."""
        self._recalled_seconds = 0.0
        self.counts.unsettled = 0
        self.ended.clear()

    def end_cycle(self) -> None:
        """Observe the times of this cycle."""
        for point, code, seconds in self.ended:
            recalled = 0.0
            if point is phases.FILTER:
                recalled, self._recalled_seconds = self._recalled_seconds, 0.0
            self.series(point, code).observe(recalled + seconds)
        self.ended.clear()
        if self.counts.unsettled:
            self.counts.settle()

    def recalled(self, phases: Sequence[tuple[str, Code]], times: int) -> None:
        """Observe the phases of recalled rejections."""
        for point, code in phases:
            self.series(point, code).observe(0.0, times)

    def series(self, point: str, code: Code) -> Distribution:
        """Return the series of a phase with this outcome."""
        known = self._points.get((point, code))
        if known is None:
            if point is phases.PERMIT_WAIT:
                known = self._permit_waits[code.label,]
            else:
                known = self._point_seconds[point, code.label, self._name]
            self._points[point, code] = known
        return known

    # Signs.

    def signed(self, plugin: Plugin, code: Code, started: float) -> float:
        """Observe the time of a plugin's sign, sampled or not; return the time."""
        now = self.now()
        series = self._sign_series(plugin, code)
        if series is not None:
            series.observe(now - started)
        return now

    def signed_again(self, plugins: Sequence[Plugin], codes: Sequence[Code]) -> None:
        """Count signs that are those of another pod."""
        if codes is not self._codes_again:
            found = map(self._sign_series, plugins, codes)
            self._codes_again, self._again = codes, [each for each in found if each is not None]
        for series in self._again:
            series.observe(0.0)

    def _sign_series(self, plugin: Plugin, code: Code) -> Distribution | None:
        """Return the series of a plugin's signs, None if it has no part in the answers."""
        known = self._signs.get((plugin, code))
        if known is None and plugin.name in self._signers:
            known = self._plugin_seconds[plugin.name, phases.SIGN, code.label]
            self._signs[plugin, code] = known
        return known

    # Remembered answers.

    def got_node_hint(self, seconds: float, *, is_hinted: bool) -> None:
        """Observe the time of a look-up."""
        self._look_ups["hint_used" if is_hinted else "no_hint"] += 1
        self._hint_seconds["hint" if is_hinted else "no_hint", self._name].observe(seconds)
        self._recalled_seconds = seconds

    def hint_not_used(self) -> None:
        """Count a hint that was not usable."""
        self._look_ups["hint_used"] -= 1
        self._look_ups["hint_not_used"] += 1

    # Single plugins.

    def timed(self, plugin: Plugin, question: Callable[P, R]) -> Callable[P, R]:
        """Return a plugin's method such that calling it is timed."""
        point = _POINTS.get(getattr(question, "__name__", "").removesuffix("_row"))
        if point is None:
            return question

        def ask(*args: P.args, **kwargs: P.kwargs) -> R:
            began = self.now()
            try:
                answer = question(*args, **kwargs)
            except Exception:
                self.answered(point, plugin.name, Code.ERROR, began)
                raise
            self.answered(point, plugin.name, _code_of(answer), began)
            return answer

        return ask

    def answered(self, extension_point: str, plugin: str, code: Code, started: float) -> None:
        """Observe the time of a plugin."""
        series = self._plugin_seconds[plugin, extension_point, code.label]
        series.observe(self.now() - started)

    # Counts of calls.

    def pre_filtered(self, cycle: CycleState) -> None:
        """Count the PreFilter plugins that were not skipped."""
        self._pre_filters.count_with_state(cycle.filter_states, cycle.skip_filter)
        if not self._affinity_asked:
            # Even if it skipped.
            self._affinity_asked = _AFFINITY in cycle.filter_states

    def scored(self, cycle: CycleState, rows: int) -> None:
        """Count the PreScore plugins that were not skipped, and rows for each Score plugin."""
        self._pre_scores.count_with_state(cycle.score_states, cycle.skip_score)
        self._scores.count(cycle.skip_score, rows)

    def filtered(self, cycle: CycleState, failed_at: NDArray[np.int16]) -> None:
        """Count, for each filter, the rows that no filter before it rejected."""
        rows = len(failed_at)
        if not rows:
            return
        first = int(failed_at.min())
        if first == PASSED:
            self._filters.count(cycle.skip_filter, rows)
            return
        # Rows with nominated pods were counted when they were filtered; they are at -1.
        rejected = [0] * (first + 1) + [int(np.count_nonzero(failed_at == first))]
        if rejected[-1] + np.count_nonzero(failed_at == PASSED) < rows:
            # More than one filter has rejected rows, which takes three times as long to count.
            rejected = np.bincount(failed_at[failed_at != PASSED] + 1, minlength=1).tolist()
        self._filters.count_falling(cycle.skip_filter, rows, rejected)

    def filtered_one(self, cycle: CycleState, failed_at: int, times: int = 1) -> None:
        """Count rows for each filter up to the one that rejected them."""
        self._filters.count(cycle.skip_filter, times, failed_at)

    def post_filtered(self, plugin: str, times: int = 1) -> None:
        """Count attempts to preempt."""
        if plugin == "DefaultPreemption":
            self._preemption_attempts[()] += times


class _MeasuredPhases(dict[str, phases.Phase]):
    """The phases by extension point; one that may overlap itself is not kept."""

    def __init__(self, timer: ProfileTimer) -> None:
        super().__init__()
        self._timer = timer

    def __missing__(self, point: str) -> phases.Phase:
        phase = _PHASES.get(point, _MeasuredPhase)(self._timer, point)
        if point not in _OVERLAPPING:
            self[point] = phase
        return phase


class _MeasuredPhase(phases.Phase):
    """A phase that is observed when it ends."""

    __slots__ = ("_began", "_point", "_timer")

    def __init__(self, timer: ProfileTimer, point: str) -> None:
        super().__init__()
        self._timer = timer
        self._point = point

    def __enter__(self) -> Self:
        self.code, self.pods = _SUCCESS, 1
        self._began = self._timer.now()
        return self

    def __exit__(self, kind: object, error: object, traceback: object) -> None:
        seconds, code = self._timer.now() - self._began, self.code
        # As upstream, the Sign phase counts as a success whatever the plugins return.
        if kind is not None and self._point is not phases.SIGN:
            code = Code.ERROR
        if code is not None:
            self._observe(code, seconds)

    def _observe(self, code: Code, seconds: float) -> None:
        self._timer.series(self._point, code).observe(seconds / self.pods, self.pods)


class _CyclePhase(_MeasuredPhase):
    """A phase that does not count if the cycle starts over."""

    __slots__ = ()

    def _observe(self, code: Code, seconds: float) -> None:
        self._timer.ended.append((self._point, code, seconds))


class _GatesPhase(_MeasuredPhase):
    """A phase before which it is decided whether to time single plugins."""

    __slots__ = ()

    def __enter__(self) -> Self:
        self._timer.sample()
        return super().__enter__()


class _UnsampledPhase(_MeasuredPhase):
    """A phase whose plugins are always timed."""

    __slots__ = ("_was_sampling",)

    def __enter__(self) -> Self:
        self._was_sampling, self._timer.is_sampling = self._timer.is_sampling, True
        return super().__enter__()

    def _observe(self, code: Code, seconds: float) -> None:
        self._timer.is_sampling = self._was_sampling
        super()._observe(code, seconds)


_PHASES: Final[Mapping[str, type[_MeasuredPhase]]] = {
    phases.PRE_ENQUEUE: _GatesPhase,
    phases.PRE_FILTER: _CyclePhase,
    phases.FILTER: _CyclePhase,
    phases.POST_FILTER: _CyclePhase,
    phases.PRE_SCORE: _CyclePhase,
    phases.SCORE: _CyclePhase,
    phases.PLACEMENT_GENERATE: _UnsampledPhase,
    phases.PLACEMENT_SCORE: _UnsampledPhase,
}


class _Asked:
    """The calls of the plugins of one extension point."""

    def __init__(self, point: str, plugins: Sequence[Plugin]) -> None:
        self.point = point
        self.names = [plugin.name for plugin in plugins]
        self.times = [0] * len(self.names)

    def reset(self) -> None:
        self.times = [0] * len(self.names)

    def count_with_state(self, states: dict[str, object], skipped: set[str]) -> None:
        for at, name in enumerate(self.names):
            if name not in skipped and name in states:
                self.times[at] += 1

    def count(self, skipped: set[str], rows: int, last: int = PASSED) -> None:
        for at, name in enumerate(self.names):
            if at > last:
                break
            if name not in skipped:
                self.times[at] += rows

    def count_falling(self, skipped: set[str], rows: int, rejected: Sequence[int]) -> None:
        """Count a decreasing number of rows: `rejected[0]` at first, then those of each plugin."""
        for at, name in enumerate(self.names):
            if at < len(rejected):
                rows -= rejected[at]
            if name not in skipped:
                self.times[at] += rows


def _code_of(answer: object) -> Code:
    if isinstance(answer, tuple):
        answer = next((each for each in answer if isinstance(each, Status)), None)
    if isinstance(answer, Status):
        return answer.code
    if isinstance(answer, NodeToStatus):
        all_rejected = len(answer.index) > 0 and answer.index.all()
        return answer[0].code if all_rejected else Code.SUCCESS
    status = getattr(answer, "status", None)
    return status.code if isinstance(status, Status) else Code.SUCCESS
