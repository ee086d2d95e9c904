"""Rejecting runs PostFilter when no row is feasible, and composes upstream's message.

Upstream: pkg/scheduler/schedule_one.go; framework/runtime, RunPostFilterPlugins (v1.36)
Differs:  nothing.
"""

from __future__ import annotations

from typing import Final

import msgspec

from kubesched.framework.diagnosis import Diagnosis
from kubesched.framework.phase_timer import FILTER, POST_FILTER, PRE_FILTER
from kubesched.framework.plugin import PostFilterPlugin, PostFilterResult
from kubesched.framework.status import Code, NodeToStatus, Status
from kubesched.scheduler.decision import Rejected
from kubesched.scheduler.plugin_failure import PluginFailure
from kubesched.scheduler.profile import Profile
from kubesched.scheduler.sampling import Restriction
from kubesched.scheduler.search import Attempt
from kubesched.snapshot.pod_info import PodInfo, PodTemplate

_TEMPLATES_MAX: Final = 8
"""The number of templates whose last rejection is kept, which has an entry per node."""


class Rejecting:
    """The PostFilter plugins of a profile."""

    def __init__(self, profile: Profile, restriction: Restriction) -> None:
        self._profile = profile
        self._restriction = restriction
        self._last: dict[PodTemplate, Rejected] = {}

    def last_diagnosis(self, pod: PodInfo) -> Diagnosis | None:
        """Return the last diagnosis of a pod of this template; None if it is not known."""
        last = self._last.get(pod.template)
        return None if last is None or self._restriction.skips_post_filters else last.diagnosis

    def reject(self, attempt: Attempt, diagnosis: Diagnosis) -> Rejected:
        """Run the PostFilter plugins and return the rejection with its message."""
        if not self.asks_plugins:
            return self.rejected(attempt, diagnosis)
        statuses = diagnosis.status_per_row(len(attempt.snapshot.nodes))
        with self._profile.timer.phases[POST_FILTER] as phase:
            result = self._post_filter(attempt, statuses)
            phase.code = result.status.code
        return self.rejected(attempt, diagnosis, result)

    @property
    def asks_plugins(self) -> bool:
        """Whether there are PostFilter plugins, and they are not left out at the moment."""
        return bool(self._profile.post_filter_plugins) and not self._restriction.skips_post_filters

    def rejected(
        self, attempt: Attempt, diagnosis: Diagnosis, result: PostFilterResult | None = None
    ) -> Rejected:
        """Return the rejection with its message; `result` is that of the PostFilter plugins."""
        pod, cycle = attempt.pod, attempt.cycle
        nodes = self._restriction.count(attempt.snapshot.nodes)
        if result is None:
            return Rejected(pod, diagnosis, diagnosis.fit_error(nodes), cycle)
        text, last = result.status.message, self._last.get(pod.template)
        if last is not None and diagnosis is last.diagnosis:
            if text == diagnosis.post_filter_message:
                return Rejected(pod, diagnosis, last.message, cycle, result)
        elif len(self._last) >= _TEMPLATES_MAX:
            self._last.clear()
        diagnosis = diagnosis.with_post_filter_message(text)
        rejected = Rejected(pod, diagnosis, diagnosis.fit_error(nodes), cycle, result)
        self._last[pod.template] = rejected
        return rejected

    def count_again(self, rejected: Rejected, times: int = 1) -> None:
        """Record the phases of recalled rejections, which took no time."""
        timer = self._profile.timer
        phases = [(PRE_FILTER, Code.SUCCESS), (FILTER, Code.SUCCESS)]
        if rejected.post_filter is not None:
            phases.append((POST_FILTER, rejected.post_filter.status.code))
            for plugin in self._profile.post_filter_plugins:
                timer.post_filtered(plugin.name, times)
        timer.recalled(phases, times)

    def _post_filter(self, attempt: Attempt, statuses: NodeToStatus) -> PostFilterResult:
        verdict = PostFilterVerdict()
        for plugin in self._profile.post_filter_plugins:
            result = self.ask(attempt, statuses, plugin)
            if attempt.trace is not None:
                attempt.trace.post_filters[plugin.name] = result
            outcome = verdict.add(plugin.name, result)
            if outcome is not None:
                return outcome
        return verdict.outcome()

    def ask(
        self, attempt: Attempt, statuses: NodeToStatus, plugin: PostFilterPlugin
    ) -> PostFilterResult:
        """Run one PostFilter plugin; a failure becomes a result."""
        cycle, pod, snapshot = attempt.cycle, attempt.pod, attempt.snapshot
        self._profile.timer.post_filtered(plugin.name)
        try:
            return self._profile.ask(plugin, plugin.post_filter, cycle, pod, snapshot, statuses)
        except PluginFailure as failure:
            # A PostFilter failure never changes the outcome of the cycle; it is only reported.
            return PostFilterResult(failure.status)


class PostFilterVerdict:
    """Combines the results of PostFilter plugins."""

    __slots__ = ("_last", "_reasons", "_rejector")

    def __init__(self) -> None:
        self._reasons: list[str] = []
        self._last: PostFilterResult | None = None
        self._rejector = ""

    def add(self, plugin: str, result: PostFilterResult) -> PostFilterResult | None:
        """Add a plugin's result; return the outcome if no other plugin is to run."""
        status = result.status.by(plugin)
        if status.is_success or status.code is Code.UNSCHEDULABLE_AND_UNRESOLVABLE:
            return result
        if not status.is_rejected:
            return PostFilterResult(Status(Code.ERROR, plugin=plugin, error=status.message))
        if result.nominated_node_name is not None:
            self._last = result
        self._reasons.extend(status.all_reasons)
        self._rejector = self._rejector or plugin
        return None

    def outcome(self) -> PostFilterResult:
        """Return the outcome after every plugin has run."""
        status = Status(Code.UNSCHEDULABLE, tuple(self._reasons), self._rejector)
        if self._last is None:
            return PostFilterResult(status)
        return msgspec.structs.replace(self._last, status=status)
