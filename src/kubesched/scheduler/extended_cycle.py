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
from typing import Protocol, runtime_checkable

import msgspec
import numpy as np
from numpy.typing import NDArray

from kubesched.framework.cycle_state import CycleState
from kubesched.framework.diagnosis import Diagnosis
from kubesched.framework.plugin import PostFilterPlugin, PostFilterResult
from kubesched.framework.preemption.report import PreemptionReport
from kubesched.framework.status import NodeToStatus, Status, failure, unresolvable
from kubesched.queue.registrations import EXTENDER
from kubesched.scheduler.cycle import SchedulingCycle
from kubesched.scheduler.decision import NO_NODES, Decision, Failed, Placed, Rejected
from kubesched.scheduler.extender import ExtenderError
from kubesched.scheduler.extenders import Extenders, Passed
from kubesched.scheduler.phase_timer import POST_FILTER
from kubesched.scheduler.plugin_failure import PluginFailure
from kubesched.scheduler.profile import Profile
from kubesched.scheduler.rejecting import PostFilterVerdict
from kubesched.scheduler.sampling import NodeSampler
from kubesched.scheduler.search import Search
from kubesched.scheduler.select_host import select_host
from kubesched.snapshot.images import ImageStates
from kubesched.snapshot.node_table import NodeTable, SelectedRows
from kubesched.snapshot.pod_info import PodInfo
from kubesched.snapshot.snapshot import Snapshot

log = logging.getLogger(__name__)


@runtime_checkable
class PreemptingPlugin(Protocol):
    """A PostFilter plugin whose `details` are a PreemptionReport that extenders may narrow."""

    def result_of(self, report: PreemptionReport, num_all_nodes: int) -> PostFilterResult:
        """Return the result of PostFilter for a narrowed report."""
        ...


class ExtendedFeasible(msgspec.Struct, frozen=True):
    """The rows that pass plugins and extenders, in ascending order.

    Attributes:
        rows: The rows.
        evaluated: Number of rows evaluated.
        are_bare: Whether an extender returned the nodes without their pods.
    """

    rows: NDArray[np.intp]
    evaluated: int
    are_bare: bool = False


class ExtendedCycle(SchedulingCycle):
    """Schedules pods of one profile, one at a time, with extenders."""

    def __init__(self, profile: Profile, sampler: NodeSampler, extenders: Extenders) -> None:
        super().__init__(profile, sampler, remembers=False)
        self._extenders = extenders

    async def schedule_with_extenders(self, pod: PodInfo, snapshot: Snapshot) -> Decision:
        """Decide where `pod` goes in the cluster of `snapshot`."""
        if not self.restriction.count(snapshot.nodes):
            return Failed(pod, unresolvable(NO_NODES))
        timer = self.profile.timer
        timer.begin_cycle()
        try:
            return await self._schedule_extended(pod, snapshot)
        except PluginFailure as stopped:
            return Failed(pod, stopped.status)
        except ExtenderError as error:
            return Failed(pod, failure(str(error)))
        finally:
            timer.end_cycle()

    async def _schedule_extended(self, pod: PodInfo, snapshot: Snapshot) -> Decision:
        cycle = CycleState()
        found = await self._find_extended(cycle, pod, snapshot)
        if isinstance(found, Diagnosis):
            return await self._reject_extended(cycle, pod, snapshot, found)
        row = int(found.rows[0])
        if len(found.rows) > 1:
            row = int(found.rows[await self._choose(cycle, pod, snapshot, found)])
        name = snapshot.nodes.names[row]
        return Placed(pod, name, row, cycle, len(found.rows), found.evaluated)

    # Finding feasible rows.

    async def _find_extended(
        self, cycle: CycleState, pod: PodInfo, snapshot: Snapshot
    ) -> ExtendedFeasible | Diagnosis:
        nothing = self._no_answers(snapshot)
        plan = nothing.plan
        status, names, contributors = self._pre_filter(cycle, pod, snapshot, plan, None)
        if not status.is_success:
            return Diagnosis.of_pre_filter(status, contributors)
        search = Search(snapshot.nodes, names, contributors)
        failures: dict[int, Status] = {}
        passed = await self._pass_nominated(cycle, pod, snapshot, search, failures)
        if not len(passed.rows):
            rows = self._search(cycle, pod, snapshot, nothing, search, None).rows
            # As upstream: a nominated node that an extender refused is counted twice.
            rejected = search.rejected
            twice = sum(not rejected[row] for row in failures)
            self.sampler.advance(twice, self.restriction.count(snapshot.nodes))
            passed = await self._extenders.filter(pod, snapshot.nodes, rows, failures)
            if not len(passed.rows):
                diagnosis = _with_failures(search.diagnosis(), failures)
                return diagnosis.with_rejection_by(EXTENDER) if len(rows) else diagnosis
        rejected = search.rejected
        rejected[list(failures)] = True
        evaluated = len(passed.rows) + int(np.count_nonzero(rejected))
        return ExtendedFeasible(passed.rows, evaluated, passed.are_bare)

    async def _pass_nominated(
        self,
        cycle: CycleState,
        pod: PodInfo,
        snapshot: Snapshot,
        search: Search,
        failures: dict[int, Status],
    ) -> Passed:
        """Try the pod's nominated node; after a failure the search goes on with all nodes."""
        known = self._no_answers(snapshot)
        found = self._try_nominated(cycle, pod, snapshot, known, search, None)
        if found is None:
            return Passed(np.zeros(0, np.intp))
        try:
            return await self._extenders.filter(pod, snapshot.nodes, found.rows, failures)
        except ExtenderError as error:
            log.warning("Extender failed on the nominated node of pod %s: %s", pod.key, error)
            return Passed(np.zeros(0, np.intp))

    # Scoring.

    async def _choose(
        self, cycle: CycleState, pod: PodInfo, snapshot: Snapshot, found: ExtendedFeasible
    ) -> int:
        """Return the position of the best among the feasible rows."""
        rows = found.rows
        nodes: NodeTable = snapshot.nodes
        if found.are_bare:
            nodes = _without_pods(nodes, rows)
        elif len(rows) < len(nodes):
            nodes = nodes.take(rows)
        totals = self.scoring.score(cycle, pod, snapshot, rows, nodes)
        scores = await self._extenders.prioritize(pod, snapshot.nodes, rows)
        return select_scored_host(totals + scores.added, scores.are_given, self.profile.random)

    # When nothing is feasible.

    async def _reject_extended(
        self, cycle: CycleState, pod: PodInfo, snapshot: Snapshot, diagnosis: Diagnosis
    ) -> Rejected:
        nodes = self.restriction.count(snapshot.nodes)
        if self.restriction.skips_post_filters or not self.profile.post_filter_plugins:
            return Rejected(pod, diagnosis, diagnosis.fit_error(nodes), cycle)
        statuses = diagnosis.status_per_row(len(snapshot.nodes))
        timer = self.profile.timer
        timer.enter(POST_FILTER)
        result = await self._post_filter_extended(cycle, pod, snapshot, statuses)
        timer.leave(result.status.code)
        diagnosis = diagnosis.with_post_filter_message(result.status.message)
        return Rejected(pod, diagnosis, diagnosis.fit_error(nodes), cycle, result)

    async def _post_filter_extended(
        self, cycle: CycleState, pod: PodInfo, snapshot: Snapshot, statuses: NodeToStatus
    ) -> PostFilterResult:
        verdict = PostFilterVerdict()
        for plugin in self.profile.post_filter_plugins:
            result = self.rejecting.ask(cycle, pod, snapshot, statuses, plugin)
            result = await self._narrowed(plugin, result, pod, snapshot)
            outcome = verdict.add(plugin.name, result)
            if outcome is not None:
                return outcome
        return verdict.outcome()

    async def _narrowed(
        self, plugin: PostFilterPlugin, result: PostFilterResult, pod: PodInfo, snapshot: Snapshot
    ) -> PostFilterResult:
        """Let extenders narrow the candidates of a preemption before one is chosen."""
        report, nodes = result.details, snapshot.nodes
        if not isinstance(plugin, PreemptingPlugin) or not isinstance(report, PreemptionReport):
            return result
        if not report.candidates:
            return result
        try:
            candidates = await self._extenders.narrow(pod, report.candidates, nodes)
        except ExtenderError as error:
            return PostFilterResult(failure(f"preemption: {error}"), details=report)
        if candidates is None:
            return result
        return plugin.result_of(report.narrowed_to(candidates), len(nodes))


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
    bare.remove_pods([(row, pod) for row, pods in enumerate(bare.pods) for pod in pods.values()])
    bare.images = ImageStates()
    return bare
