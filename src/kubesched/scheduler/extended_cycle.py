"""ExtendedCycle is a scheduling cycle that awaits HTTP extenders between its phases.

    pre_filter, filter ─▶ extenders filter ─▶ score ─▶ extenders prioritize ─▶ choose
                               └─▶ nothing left: post_filter ─▶ extenders preempt

The loop holds back changes of the cluster while the cycle waits.

Upstream: pkg/scheduler/schedule_one.go (v1.36)
Differs:  as `cycle`; among nodes with the same best total, nodes that an extender scored come
          first, as upstream.
"""

from __future__ import annotations

import logging
from random import Random

import msgspec
import numpy as np
from numpy.typing import NDArray

from kubesched.framework.diagnosis import Diagnosis
from kubesched.framework.phase_timer import POST_FILTER
from kubesched.framework.plugin import PostFilterResult
from kubesched.framework.preemption.report import PreemptionReport
from kubesched.framework.status import NodeToStatus, Status, failure, unresolvable
from kubesched.queue.registrations import EXTENDER
from kubesched.scheduler.cycle import SchedulingCycle
from kubesched.scheduler.decision import NO_NODES, Decision, Failed, Placed, Rejected
from kubesched.scheduler.extenders import ExtenderError, Extenders, Passed
from kubesched.scheduler.plugin_failure import PluginFailure
from kubesched.scheduler.profile import Profile
from kubesched.scheduler.rejecting import PostFilterVerdict
from kubesched.scheduler.sampling import NodeSampler
from kubesched.scheduler.search import Attempt, Search
from kubesched.scheduler.select_host import select_host
from kubesched.scheduler.trace import Trace
from kubesched.snapshot.images import ImageStates
from kubesched.snapshot.node_table import NodeTable, SelectedRows
from kubesched.snapshot.pod_info import PodInfo
from kubesched.snapshot.snapshot import Snapshot

log = logging.getLogger(__name__)


class ExtendedCycle(SchedulingCycle):
    """Schedules pods of one profile, one at a time, with extenders."""

    def __init__(self, profile: Profile, sampler: NodeSampler, extenders: Extenders) -> None:
        super().__init__(profile, sampler, remembers=False)
        self._extenders = extenders

    async def schedule_with_extenders(
        self, pod: PodInfo, snapshot: Snapshot, trace: Trace | None = None
    ) -> Decision:
        """Decide where `pod` goes in the cluster of `snapshot`; record each answer in `trace`.

        Its totals include the extenders' scores; their other answers are not recorded.
        """
        if not self.restriction.count(snapshot.nodes):
            return Failed(pod, unresolvable(NO_NODES))
        timer = self.profile.timer
        timer.begin_cycle()
        try:
            return await self._schedule_extended(self._new_attempt(pod, snapshot, trace))
        except PluginFailure as stopped:
            return Failed(pod, stopped.status)
        except ExtenderError as error:
            return Failed(pod, failure(str(error)))
        finally:
            timer.end_cycle()

    async def _schedule_extended(self, attempt: Attempt) -> Decision:
        found = await self._find_extended(attempt)
        if isinstance(found, Diagnosis):
            return await self._reject_extended(attempt, found)
        passed, evaluated = found
        feasible = len(passed.rows)
        row = passed.rows.item(0) if feasible == 1 else await self._choose(attempt, passed)
        name = attempt.snapshot.nodes.names[row]
        return Placed(attempt.pod, name, row, attempt.cycle, feasible, evaluated)

    # Finding feasible rows.

    async def _find_extended(self, attempt: Attempt) -> tuple[Passed, int] | Diagnosis:
        """Return the rows that pass plugins and extenders, and the number of rows evaluated."""
        pod, nodes = attempt.pod, attempt.snapshot.nodes
        search = self._pre_filter(attempt)
        if isinstance(search, Diagnosis):
            return search
        failures: dict[int, Status] = {}
        passed = await self._pass_nominated(attempt, search, failures)
        if not len(passed.rows):
            rows = self._search(attempt, search).rows
            # As upstream: a nominated node that an extender refused is counted twice.
            rejected = search.rejected
            twice = sum(not rejected[row] for row in failures)
            self.sampler.advance(twice, self.restriction.count(nodes))
            passed = await self._extenders.filter(pod, nodes, rows, failures)
            if not len(passed.rows):
                diagnosis = _with_failures(search.diagnosis(), failures)
                return diagnosis.with_rejection_by(EXTENDER) if len(rows) else diagnosis
        rejected = search.rejected
        rejected[list(failures)] = True
        evaluated = len(passed.rows) + int(np.count_nonzero(rejected))
        return passed, evaluated

    async def _pass_nominated(
        self, attempt: Attempt, search: Search, failures: dict[int, Status]
    ) -> Passed:
        """Try the pod's nominated node; after a failure the search goes on with all nodes."""
        pod, nodes = attempt.pod, attempt.snapshot.nodes
        found = self._try_nominated(attempt, search)
        if found is None:
            return Passed(np.zeros(0, np.intp))
        try:
            return await self._extenders.filter(pod, nodes, found.rows, failures)
        except ExtenderError as error:
            log.warning("Extender failed on the nominated node of pod %s: %s", pod.key, error)
            return Passed(np.zeros(0, np.intp))

    # Scoring.

    async def _choose(self, attempt: Attempt, passed: Passed) -> int:
        """Return the best of the feasible rows."""
        rows = passed.rows
        every = attempt.snapshot.nodes
        nodes: NodeTable = every
        if passed.are_bare:
            nodes = _without_pods(every, rows)
        elif len(rows) < len(every):
            nodes = every.take(rows)
        totals = self.scoring.score(attempt, rows, nodes)
        scores = await self._extenders.prioritize(attempt.pod, every, rows)
        totals += scores.added
        if attempt.trace is not None:
            attempt.trace.feasible_rows, attempt.trace.totals = rows, totals
        return rows.item(select_scored_host(totals, scores.are_given, self.profile.random))

    # When nothing is feasible.

    async def _reject_extended(self, attempt: Attempt, diagnosis: Diagnosis) -> Rejected:
        if not self.rejecting.asks_plugins:
            return self.rejecting.rejected(attempt, diagnosis)
        statuses = diagnosis.status_per_row(len(attempt.snapshot.nodes))
        with self.profile.timer.phases[POST_FILTER] as phase:
            result = await self._post_filter_extended(attempt, statuses)
            phase.code = result.status.code
        return self.rejecting.rejected(attempt, diagnosis, result)

    async def _post_filter_extended(
        self, attempt: Attempt, statuses: NodeToStatus
    ) -> PostFilterResult:
        verdict = PostFilterVerdict()
        for plugin in self.profile.post_filter_plugins:
            result = self.rejecting.ask(attempt, statuses, plugin)
            result = await self._narrowed(result, attempt.pod, attempt.snapshot)
            outcome = verdict.add(plugin.name, result)
            if outcome is not None:
                return outcome
        return verdict.outcome()

    async def _narrowed(
        self, result: PostFilterResult, pod: PodInfo, snapshot: Snapshot
    ) -> PostFilterResult:
        """Let extenders narrow the candidates of a preemption before one is chosen."""
        report, nodes = result.details, snapshot.nodes
        if not isinstance(report, PreemptionReport) or not report.candidates:
            return result
        try:
            candidates = await self._extenders.narrow(pod, report.candidates, nodes)
        except ExtenderError as error:
            return PostFilterResult(failure(f"preemption: {error}"), details=report)
        if candidates is None:
            return result
        return report.narrowed_to(candidates).result(len(nodes))


def select_scored_host(
    totals: NDArray[np.int64], are_scored: NDArray[np.bool_], random: Random
) -> int:
    """Return the position of a largest total, at random among equals.

    Equals that an extender scored take precedence over those that none scored.
    """
    best = totals == totals.max()
    drawn = best & are_scored
    return select_host((drawn if drawn.any() else best).astype(np.int64), random)


def _with_failures(diagnosis: Diagnosis, failures: dict[int, Status]) -> Diagnosis:
    """Replace statuses of plugins by those of extenders; keep the rejecting plugins."""
    if not failures:
        return diagnosis
    found = diagnosis.node_to_status
    statuses = list(found.statuses)
    index = found.index.copy()
    for row, status in failures.items():
        index[row] = len(statuses)
        statuses.append(status)
    return msgspec.structs.replace(diagnosis, node_to_status=NodeToStatus(index, statuses))


def _without_pods(nodes: NodeTable, rows: NDArray[np.intp]) -> SelectedRows:
    """Return the rows as upstream rebuilds nodes from an extender's response.

    They have the Node object alone: no pods, and no image states.
    """
    bare = nodes.take(rows)
    bare.remove_all_pods()
    bare.images = ImageStates()
    return bare
